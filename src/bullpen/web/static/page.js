// Shared by all pages: local times, notices that can be dismissed, menus that close.
"use strict";

const two = (number) => String(number).padStart(2, "0");
const hour = (date) => `${two(date.getHours())}:${two(date.getMinutes())}`;
const moment = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${hour(date)}`;

function localize(root) {
  for (const time of root.querySelectorAll("time:not([title])")) {
    const date = new Date(time.dateTime);
    time.title = moment(date);
    time.textContent = date.toDateString() === new Date().toDateString() ? hour(date) : moment(date);
  }
}

function took(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  if (!minutes) return `${seconds} s`;
  return minutes < 60 ? `${minutes} min ${two(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

function count() {
  // Nobody knows what happens while the server cannot be reached.
  if (document.body.classList.contains("unreachable")) return;
  for (const since of document.querySelectorAll("[data-since]")) {
    since.textContent = took(Date.now() - Number(since.dataset.since));
  }
  for (const until of document.querySelectorAll("[data-until]")) {
    until.textContent = `(in ${took(Number(until.dataset.until) - Date.now())})`;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-dismiss]");
  if (button) button.parentElement.remove();
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// A new request makes an older error message obsolete.
document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  document.getElementById("problem").replaceChildren();
  detail.elt.addEventListener("htmx:beforeOnLoad", answerInSight, { once: true });
});

// The button may be gone before its answer comes: that of a turn that was cancelled. htmx would find no place for it.
function answerInSight(event) {
  const { elt, xhr } = event.detail;
  if (elt.isConnected || !(xhr.status >= 400 || xhr.getResponseHeader("HX-Retarget") === "#problem")) return;
  event.preventDefault();
  htmx.swap("#problem", xhr.responseText, { swapStyle: "innerHTML" });
}
document.addEventListener("htmx:sendError", () => {
  const text = document.createElement("p");
  text.className = "problem";
  text.textContent = "The server cannot be reached. Is `bullpen serve` still running?";
  document.getElementById("problem").replaceChildren(text);
});
document.addEventListener("htmx:load", (event) => localize(event.detail.elt));
document.addEventListener("focusin", (event) => event.target.matches("input.url") && event.target.select());
document.addEventListener("DOMContentLoaded", () => {
  localize(document);
  count();
  setInterval(count, 1000);
});
