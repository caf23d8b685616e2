// What Enter does with what is typed. The server knows, and does just that; an answer for an earlier text is dropped.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("composer");
  if (!form) return;
  const text = document.getElementById("text");
  const place = document.getElementById("addressees");
  const base = form.getAttribute("action").replace(/\/messages$/, "");
  const PAUSE_MILLISECONDS = 120;

  let timer = 0;
  let asked = 0;

  function chip(kind, words) {
    const node = document.createElement("span");
    node.className = kind;
    node.textContent = words;
    return node;
  }

  function show(found) {
    if (text.dataset.completes) return place.replaceChildren(chip("why", `completes ${text.dataset.completes}`));
    if (found && "line" in found) return place.replaceChildren(...(found.line ? [chip(found.problem ? "problem" : "why", found.line)] : []));
    const steps = (found?.steps ?? []).map((step) => chip("chip", step.join(" & ")));
    const nobody = found && !steps.length ? [chip("chip nobody", "nobody")] : [];
    const reason = found?.reason ? [chip("why", found.reason)] : [];
    const queued = found?.queued ? [chip("why", found.queued)] : [];
    const problems = (found?.problems ?? []).map((words) => chip("problem", words));
    const who = [...steps, ...nobody].flatMap((node, index) => (index ? [chip("then", "then"), node] : [node]));
    place.replaceChildren(...(found ? [chip("to", "to")] : []), ...who, ...reason, ...problems, ...queued);
  }

  async function ask() {
    const question = ++asked;
    if (!text.value.trim()) return show(null);
    const body = new URLSearchParams({ text: text.value, sender: form.elements.sender?.value ?? "", asked: form.elements.asked.value });
    const answer = await fetch(`${base}/addressees`, { method: "POST", body }).catch(() => null);
    const found = answer?.ok ? await answer.json() : null;
    if (question === asked) show(found);
  }

  function askSoon() {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MILLISECONDS);
    // Whom the message asked that this was a moment ago.
    if (/^(\/|$)/.test(text.value)) show(null);
  }

  text.addEventListener("input", askSoon);
  text.addEventListener("completes", askSoon);
  // Who works, and what waits for an answer, decides as well.
  for (const id of ["decisions", "live"]) new MutationObserver(askSoon).observe(document.getElementById(id), { childList: true, subtree: id === "decisions" });
  form.addEventListener("change", askSoon);
  form.addEventListener("htmx:afterRequest", () => setTimeout(ask));
  ask();
});
