// Cards that a key answers: the first one, where nothing is written, once it has been on the page for half a second.
// What is pressed sooner was meant for what was there before: a digit then neither answers nor writes.
"use strict";

const answers = (() => {
  const SETTLED_MILLISECONDS = 500;
  const settled = new WeakMap(); // card → since when a key may be about it
  const waits = new WeakSet();
  let first = null;
  let firstSettled = Infinity;

  const cards = () => [...document.querySelectorAll("#decisions .decide[data-turn]")];

  // Painted first: a page that is hidden paints nothing.
  function settle(card, done) {
    requestAnimationFrame(() => setTimeout(() => done(performance.now()), SETTLED_MILLISECONDS));
  }

  function look() {
    for (const card of cards().filter((one) => !waits.has(one))) {
      waits.add(card);
      settle(card, (at) => settled.set(card, at));
    }
    const now = document.querySelector("#decisions .decide");
    if (now === first) return;
    first = now;
    firstSettled = Infinity;
    if (now) settle(now, (at) => { if (first === now) { firstSettled = at; now.dataset.answers = ""; } });
  }

  const names = (some) => JSON.stringify(some.map((one) => [one.dataset.turn, one.dataset.question ?? ""]));

  // What a person has read by now that waits for an answer.
  const seen = () => names(cards().filter((one) => settled.has(one)));

  // Words are to follow, about this card.
  function begin(words, card) {
    const text = document.getElementById("text");
    if (!text) return;
    text.form.elements.asked.value = names([card]);
    text.focus();
    text.setRangeText(words, 0, text.value.length, "end");
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-begins]");
    if (!button) return;
    event.preventDefault();
    begin(button.dataset.begins, button.closest(".decide"));
  });

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
    const field = event.target.closest("input, textarea, select, [contenteditable]");
    if ((field && (field.id !== "text" || field.value)) || document.querySelector("dialog[open]")) return;
    const key = event.key === "Escape" ? "esc" : event.key;
    const buttons = first?.isConnected ? [...first.querySelectorAll("[data-key]")] : [];
    const isTooEarly = event.timeStamp < firstSettled;
    const button = buttons.find((one) => one.dataset.key === key);
    if (isTooEarly ? !buttons.length || !/^\d$/.test(key) : !button) return;
    event.preventDefault();
    if (!isTooEarly) button.click();
  });

  document.addEventListener("DOMContentLoaded", () => {
    const place = document.querySelector(".dock");
    if (!place) return;
    new MutationObserver(look).observe(place, { childList: true, subtree: true });
    look();
  });

  return { seen };
})();
