// The composer: typed text survives a reload, a message is never stored twice, names are completed.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("composer");
  if (!form) return;
  const text = document.getElementById("text");
  const choices = document.getElementById("choices");
  const status = document.getElementById("sending");
  const key = `draft:${form.getAttribute("action")}`;
  const base = form.getAttribute("action").replace(/\/messages$/, "");
  const RETRY_MILLISECONDS = 2000;

  const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

  let sent = ""; // what the server has not answered yet
  let next = null; // what is sent instead of the whole text
  let retry = 0;

  // A text keeps its id until the server has it: sent twice, it is still one message.
  function remember() {
    const { id, asked } = form.elements;
    sessionStorage.setItem(key, JSON.stringify({ text: text.value, id: id.value, asked: asked.value, sent }));
  }

  function send(words) {
    next = words;
    form.requestSubmit();
  }

  // A command has no id: sent twice, it could be done twice. Who changes a text wants another one to be sent.
  function sendAgain() {
    if (sent.startsWith("/")) status.textContent = "no answer: press Enter to send it again";
    else if (text.value.startsWith(sent)) send(sent);
    else status.textContent = "";
  }

  // An answer is about what was on the page when it was begun.
  function see() {
    if (!form.elements.asked.value) form.elements.asked.value = answers.seen();
  }

  function begin() {
    form.elements.asked.value = "";
    text.value = "";
    form.elements.id.value = newId();
    sessionStorage.removeItem(key);
    grow();
  }

  function grow() {
    text.style.setProperty("height", "auto");
    text.style.setProperty("height", `${Math.min(text.scrollHeight + 2, window.innerHeight * 0.4)}px`);
    // While it was measured the page was shorter, and the browser has scrolled up for that.
    tail.settle();
  }

  const draft = JSON.parse(sessionStorage.getItem(key) ?? "null");
  if (draft) {
    text.value = draft.text;
    form.elements.id.value = draft.id;
    form.elements.asked.value = draft.asked ?? "";
    sent = draft.sent ?? "";
    grow();
  }
  const person = form.elements.sender;
  if (person) {
    person.value = localStorage.getItem("speaks-as") ?? person.value;
    if (!person.value) person.selectedIndex = 0;
    person.addEventListener("change", () => localStorage.setItem("speaks-as", person.value));
    // Who speaks also decides.
    document.addEventListener("htmx:configRequest", (event) => {
      if (event.detail.elt.matches(`form[action^="${base}/do/"]`)) event.detail.parameters.sender = person.value;
    });
  }

  // The same words need more lines in a narrower window.
  window.addEventListener("resize", grow);

  text.addEventListener("input", () => { if (text.value) see(); else form.elements.asked.value = ""; remember(); grow(); if (early === null) complete(); });

  form.addEventListener("htmx:configRequest", (event) => {
    see();
    sent = next ?? text.value;
    next = null;
    Object.assign(event.detail.parameters, { text: sent, asked: form.elements.asked.value });
  });
  form.addEventListener("htmx:beforeRequest", () => { clearTimeout(retry); remember(); status.textContent = "sending"; });
  form.addEventListener("htmx:afterRequest", (event) => {
    const code = event.detail.xhr.status;
    if (!code) {
      status.textContent = "not sent yet, trying again";
      if (sent.startsWith("/")) sendAgain(); else retry = setTimeout(sendAgain, RETRY_MILLISECONDS);
      return;
    }
    const had = sent;
    sent = status.textContent = "";
    // Who has read why it was not done may mean what is asked now.
    form.elements.asked.value = "";
    // An answer that leads to another page is not called successful by htmx.
    if (code >= 200 && code < 400) {
      // Text typed during the request is the beginning of the next message.
      const since = text.value.startsWith(had) ? text.value.slice(had.length) : text.value;
      begin();
      close();
      if (since) { text.value = since; remember(); grow(); }
      return;
    }
    // Its first version has arrived after all: the text is now another message.
    if (code === 409) form.elements.id.value = newId();
    remember();
  });

  let shown = [];
  let chosen = 0;
  let asked = 0;
  let pending = null; // what was asked and not answered yet
  let at = 0; // where the cursor was when the options were asked for
  let early = null; // the text when a key was pressed that waits for them

  // The server has the completions; an answer for an earlier text is dropped.
  function complete() {
    const answer = ask();
    pending = answer;
    answer.finally(() => { if (pending === answer) pending = null; });
  }

  async function ask() {
    const question = ++asked;
    const end = text.selectionStart;
    const whole = text.value.slice(0, end);
    // Only a command is looked at from its beginning; of anything else, the end of its last line.
    const before = whole.startsWith("/") && whole.length <= 1000 ? whole : `\n${whole.slice(whole.lastIndexOf("\n") + 1).slice(-1000)}`;
    const wanted = /^\/|[@[]/.test(before);
    const answer = wanted ? await fetch(`${base}/complete?before=${encodeURIComponent(before)}`).catch(() => null) : null;
    const options = answer?.ok ? await answer.json() : [];
    if (question !== asked) return;
    shown = early !== null || text.selectionStart === end ? options : [];
    at = end;
    chosen = 0;
    show();
  }

  function show() {
    choices.replaceChildren(...shown.map((option, index) => {
      const item = document.createElement("li");
      item.id = `choice-${index}`;
      item.role = "option";
      item.setAttribute("aria-selected", String(index === chosen));
      const label = document.createElement("b");
      label.textContent = option.label;
      const more = document.createElement("span");
      more.textContent = option.help;
      item.append(label, more);
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); chosen = index; insertChosen(); });
      return item;
    }));
    choices.hidden = !shown.length;
    text.dataset.completes = shown.length && !isTyped(shown[chosen]) ? shown[chosen].label : "";
    text.dispatchEvent(new Event("completes"));
    if (shown.length) text.setAttribute("aria-activedescendant", `choice-${chosen}`);
    else text.removeAttribute("aria-activedescendant");
  }

  function close() { asked += 1; shown = []; show(); }

  // The server counts characters, a text field counts UTF-16 units.
  function replacedBy(option) {
    return option.replaces ? [...text.value.slice(0, at)].slice(-option.replaces).join("") : "";
  }

  // Enter sends what has been typed out already.
  const isTyped = (option) => replacedBy(option) === option.insert.trimEnd();

  function insertChosen() {
    const option = shown[chosen];
    const replaced = replacedBy(option);
    text.setRangeText(option.insert, at - replaced.length, at, text.selectionStart === at ? "end" : "preserve");
    remember();
    close();
    text.focus();
  }

  function insertOrSend(key) {
    if (shown.length && !(key === "Enter" && isTyped(shown[chosen]))) insertChosen();
    else if (key === "Enter" && (early ?? text.value).trim()) send(early);
  }

  // Typed faster than the server answers: what it says decides what the key does, and what is typed meanwhile comes after.
  async function waitWith(key) {
    early ??= text.value;
    await pending;
    insertOrSend(key);
    if (early !== null && text.value !== early) complete();
    early = null;
  }

  text.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    // On a phone the key for a new line is the only one there is.
    const sends = event.key === "Enter" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches;
    const sendsAlways = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (pending && (event.key === "Tab" || sends)) {
      event.preventDefault();
      waitWith(event.key);
      return;
    }
    if (shown.length && text.selectionStart !== at) close();
    if (shown.length) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { event.preventDefault(); chosen = (chosen + step + shown.length) % shown.length; show(); return; }
      if (event.key === "Tab" || event.key === "Enter") { event.preventDefault(); insertOrSend(event.key); return; }
      if (event.key === "Escape") { event.preventDefault(); close(); return; }
    }
    if (sends || sendsAlways) {
      event.preventDefault();
      if (text.value.trim()) form.requestSubmit();
    }
  });
  text.addEventListener("blur", close);
  if (sent) sendAgain();
});
