// What can be done with a message: copy it, quote it, fork there, copy its code.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const talk = document.getElementById("talk");
  const messages = document.getElementById("messages");
  const dock = document.querySelector(".dock");
  const base = `/c/${talk.dataset.id}`;
  const TOLD_MILLISECONDS = 1600;

  const DRAWINGS = {
    Copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
    Quote: "M6.5 4.5c-2 .5-3 2-3 4v3h3v-3h-2M12.5 4.5c-2 .5-3 2-3 4v3h3v-3h-2",
    More: "M3 8h.01M8 8h.01M13 8h.01",
    "Fork here": "M5 4v8M5 8c4 0 6-1 6-4M3.5 2.5h3v1.5h-3zM3.5 12h3v1.5h-3zM9.5 2.5h3v1.5h-3z",
    "Fork with files": "M3.5 13.5v-11h5.5l3.5 3.5v7.5zM9 2.5v3.5h3.5M6.5 7v4.5M6.5 9.5c2.5 0 3.5-.6 3.5-2",
    Copied: "M3 8.5l3.2 3.2L13 4.8",
    "Not copied": "M4 4l8 8M12 4l-8 8",
  };
  DRAWINGS["Copy code"] = DRAWINGS.Copy;

  function draw(made, name) {
    made.setAttribute("aria-label", name);
    made.title = name;
    made.innerHTML = `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${DRAWINGS[name]}"/></svg>`;
  }

  function button(name, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "quiet icon";
    if (name) draw(made, name);
    made.addEventListener("click", () => act(made));
    return made;
  }

  async function copy(text, made, name) {
    draw(made, await navigator.clipboard.writeText(text).then(() => "Copied", () => "Not copied"));
    setTimeout(() => draw(made, name), TOLD_MILLISECONDS);
  }

  // The text as it was written; a page has it only rendered.
  async function textOf(article) {
    const answer = await fetch(`${base}/messages/${article.dataset.sequence}`).catch(() => null);
    return answer?.ok ? answer.text() : article.querySelector(".body").innerText;
  }

  function selectedIn(article) {
    const selection = document.getSelection();
    const isInside = selection.rangeCount && article.querySelector(".body").contains(selection.getRangeAt(0).commonAncestorContainer);
    return isInside ? selection.toString().trim() : "";
  }

  function quote(text) {
    const box = document.getElementById("text");
    const quoted = text.trim().split("\n").map((line) => (line ? `> ${line}` : ">")).join("\n");
    const before = box.value.trimEnd();
    box.value = `${before ? `${before}\n\n` : ""}${quoted}\n\n`;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
    box.scrollTop = box.scrollHeight;
  }

  // A plain form: the answer is the page of the new conversation.
  function forkForm(sequence) {
    const form = document.createElement("form");
    form.method = "post";
    form.action = `${base}/fork`;
    const at = document.createElement("input");
    at.type = "hidden";
    at.name = "at";
    at.value = sequence;
    const made = button("Fork here", () => {});
    made.type = "submit";
    made.title = "Fork here: a new conversation with the messages up to this one";
    const withFiles = button("Fork with files", () => {});
    withFiles.type = "submit";
    withFiles.name = "files";
    withFiles.value = "yes";
    withFiles.title = "Fork with files: a new conversation up to this message whose agents work in a folder of their own, with the files as they were then";
    form.append(at, made, withFiles);
    return form;
  }

  function addActions(article) {
    const actions = document.createElement("span");
    actions.className = "actions";
    // Shown only on touch screens, in place of the others until it is tapped.
    const more = button("More", () => more.setAttribute("aria-expanded", String(actions.classList.toggle("open"))));
    more.classList.add("all");
    actions.append(more, button("Copy", async (made) => copy(await textOf(article), made, "Copy")));
    if (document.getElementById("text")) {
      const made = button("Quote", async () => quote(made.selected || (await textOf(article))));
      // A click may end the selection before it arrives.
      made.addEventListener("pointerdown", () => { made.selected = selectedIn(article); });
      made.addEventListener("keydown", () => { made.selected = selectedIn(article); });
      actions.append(made);
    }
    if (!document.body.classList.contains("reads")) actions.append(forkForm(article.dataset.sequence));
    article.querySelector(":scope > header .when").before(actions);
  }

  function frameCode(article) {
    for (const code of article.querySelectorAll(".body pre.code")) {
      const frame = document.createElement("div");
      frame.className = "code-frame";
      code.replaceWith(frame);
      frame.append(code, button("Copy code", (made) => copy(code.textContent.replace(/\n$/, ""), made, "Copy code")));
    }
  }

  function equip(article) {
    if (article.dataset.equipped) return;
    article.dataset.equipped = "yes";
    addActions(article);
    frameCode(article);
  }

  // What opens below a message comes into view, as far as there is room above the dock.
  function reveal(steps) {
    if (!steps) return;
    document.documentElement.style.setProperty("--dock", `${dock.offsetHeight}px`);
    steps.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  document.addEventListener("htmx:afterSettle", (event) => { if (event.target.matches?.(".did[open] ~ .steps")) reveal(event.target); });
  // It does not bubble.
  document.addEventListener("toggle", (event) => { if (event.target.matches?.(".did[open]")) reveal(event.target.parentElement.querySelector(":scope > .steps")); }, true);

  new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) if (node.matches?.("article")) equip(node);
  }).observe(messages, { childList: true });
  document.addEventListener("htmx:load", (event) => {
    for (const article of event.detail.elt.querySelectorAll?.("article.message:not(.live)") ?? []) equip(article);
  });
  document.addEventListener("turn-ended", (event) => {
    const place = messages.querySelector(`[data-turn="${CSS.escape(event.detail.turn)}"] .spent`);
    if (place && event.detail.spent) place.textContent = event.detail.spent;
  });
  for (const article of messages.children) equip(article);
});
