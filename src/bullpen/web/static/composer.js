// The composer: typed text survives a reload, a message is sent once however often it is sent, names are completed.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("composer");
  if (!form) return;
  const text = document.getElementById("text");
  const choices = document.getElementById("choices");
  const status = document.getElementById("sending");
  const key = `draft:${form.getAttribute("action")}`;
  const names = JSON.parse(form.dataset.names);
  const commands = JSON.parse(form.dataset.commands);
  const RETRY_MILLISECONDS = 2000;

  const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

  // Its id stays with a text until the server has it: sent twice, it is still one message.
  function remember() {
    sessionStorage.setItem(key, JSON.stringify({ text: text.value, id: form.elements.id.value }));
  }

  function begin() {
    text.value = "";
    form.elements.id.value = newId();
    sessionStorage.removeItem(key);
    grow();
  }

  function grow() {
    text.style.setProperty("height", "auto");
    text.style.setProperty("height", `${Math.min(text.scrollHeight + 2, window.innerHeight * 0.4)}px`);
  }

  const draft = JSON.parse(sessionStorage.getItem(key) ?? "null");
  if (draft) {
    text.value = draft.text;
    form.elements.id.value = draft.id;
    grow();
  }
  const person = form.elements.sender;
  if (person) {
    person.value = localStorage.getItem("speaks-as") ?? person.value;
    if (!person.value) person.selectedIndex = 0;
    person.addEventListener("change", () => localStorage.setItem("speaks-as", person.value));
  }

  text.addEventListener("input", () => { remember(); grow(); complete(); });

  let sent = "";
  form.addEventListener("htmx:beforeRequest", () => { sent = text.value; remember(); status.textContent = "sending"; });
  form.addEventListener("htmx:afterRequest", (event) => {
    const answered = event.detail.xhr.status > 0;
    status.textContent = event.detail.successful || answered ? "" : "not sent yet, trying again";
    if (event.detail.successful) {
      // What was typed while it was on its way is the beginning of the next message.
      const since = text.value === sent ? "" : text.value.startsWith(sent) ? text.value.slice(sent.length) : text.value;
      begin();
      close();
      if (since) { text.value = since; remember(); grow(); }
    }
    // Its first version arrived after all: what stands here now is another message.
    else if (event.detail.xhr.status === 409) { form.elements.id.value = newId(); remember(); }
    else if (!answered) setTimeout(() => form.requestSubmit(), RETRY_MILLISECONDS);
  });

  // What is being completed: "@na", "[NEXT: na" or "/co" right before the cursor.
  function asked() {
    const before = text.value.slice(0, text.selectionStart);
    const command = /^\/([\w-]*)$/.exec(before);
    if (command) return { word: command[0], options: Object.keys(commands).map((name) => ({ name, note: commands[name], put: `${name} ` })) };
    const inside = /\[NEXT:(?:[^\]]*[,&])?\s*([^\],&]*)$/i.exec(before);
    if (inside) return { word: inside[1], options: names.map((name) => ({ name, note: "", put: name })) };
    const at = /(?:^|\s)@([\p{L}\p{N}_-]*)$/u.exec(before);
    if (at) return { word: at[1], extra: 1, options: names.map((name) => ({ name, note: "answers next", put: `[NEXT: ${name}] ` })) };
    return null;
  }

  let shown = [];
  let chosen = 0;

  function complete() {
    const wanted = asked();
    const word = wanted?.word.toLowerCase() ?? "";
    shown = wanted ? wanted.options.filter(({ name }) => name.toLowerCase().startsWith(word) && name.toLowerCase() !== word).slice(0, 8) : [];
    chosen = 0;
    show();
  }

  function show() {
    choices.replaceChildren(...shown.map(({ name, note }, index) => {
      const item = document.createElement("li");
      item.id = `choice-${index}`;
      item.role = "option";
      item.setAttribute("aria-selected", String(index === chosen));
      const label = document.createElement("b");
      label.textContent = name;
      const more = document.createElement("span");
      more.textContent = note;
      item.append(label, more);
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); chosen = index; take(); });
      return item;
    }));
    choices.hidden = !shown.length;
    if (shown.length) text.setAttribute("aria-activedescendant", `choice-${chosen}`);
    else text.removeAttribute("aria-activedescendant");
  }

  function close() { shown = []; show(); }

  function take() {
    const wanted = asked();
    const from = text.selectionStart - wanted.word.length - (wanted.extra ?? 0);
    text.setRangeText(shown[chosen].put, from, text.selectionStart, "end");
    remember();
    close();
    text.focus();
  }

  text.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (shown.length) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { event.preventDefault(); chosen = (chosen + step + shown.length) % shown.length; show(); return; }
      if (event.key === "Tab" || event.key === "Enter") { event.preventDefault(); take(); return; }
      if (event.key === "Escape") { event.preventDefault(); close(); return; }
    }
    // On a phone the key for a new line is the only one there is.
    const sends = event.key === "Enter" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches;
    if (sends || (event.key === "Enter" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      if (text.value.trim()) form.requestSubmit();
    }
  });
  text.addEventListener("blur", close);
});
