// The editor of a team file: line numbers, and each problem beside its line.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const text = document.getElementById("team-text");
  const gutter = document.querySelector(".gutter");
  const wide = matchMedia("(min-width: 56.01rem)");
  const LINE_PIXELS = parseFloat(getComputedStyle(text).lineHeight);
  const TOP_PIXELS = parseFloat(getComputedStyle(text).paddingTop);
  const problems = () => document.getElementById("problems");

  function number() {
    const lines = text.value.split("\n").length;
    const worst = new Map();
    for (const item of problems().querySelectorAll("[data-line]")) {
      if (worst.get(item.dataset.line) !== "error") worst.set(item.dataset.line, item.className);
    }
    gutter.replaceChildren(...Array.from({ length: lines }, (_, index) => {
      const one = document.createElement("span");
      one.className = worst.get(String(index + 1)) ?? "";
      one.textContent = `${index + 1}\n`;
      return one;
    }));
    text.rows = Math.max(lines + 1, 12);
  }

  // Beside their lines; one that has no room there comes after the one before it.
  function place() {
    const list = problems();
    list.classList.toggle("placed", wide.matches);
    let free = 0;
    for (const item of list.children) {
      if (!wide.matches) {
        item.style.removeProperty("top");
        continue;
      }
      const top = Math.max(free, TOP_PIXELS + (Number(item.dataset.line ?? 1) - 1) * LINE_PIXELS);
      item.style.setProperty("top", `${top}px`);
      free = top + item.offsetHeight + 4;
    }
    list.style.setProperty("min-height", wide.matches ? `${free}px` : "0");
  }

  function show() {
    number();
    place();
  }

  text.addEventListener("input", number);
  document.addEventListener("htmx:afterSettle", show);
  wide.addEventListener("change", show);
  window.addEventListener("resize", place);
  show();
});
