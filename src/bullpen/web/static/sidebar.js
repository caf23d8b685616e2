// The list of conversations stays true while a page is open: others change it, too.
"use strict";

(() => {
  const EVERY_MILLISECONDS = 10000;
  const SOON_MILLISECONDS = 300;

  async function refresh() {
    const sidebar = document.getElementById("sidebar");
    if (document.hidden || !sidebar) return;
    const answer = await fetch(sidebar.dataset.from, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer?.ok) return;
    const template = document.createElement("template");
    template.innerHTML = await answer.text(); // rendered by our server
    const fresh = template.content.firstElementChild;
    const old = document.getElementById("conversations");
    if (!fresh) return;
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    merge(old, fresh, localize);
    if (focused && document.activeElement === document.body) old.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    showBadge(Number(fresh.dataset.needing));
  }

  function showBadge(needing) {
    const drawer = document.querySelector(".drawer");
    let badge = drawer.querySelector(".badge");
    if (!needing) return badge?.remove();
    if (!badge) {
      badge = document.createElement("span");
      badge.className = "badge";
      drawer.append(badge);
    }
    const words = document.createElement("span");
    words.className = "hidden";
    words.textContent = " need you";
    badge.replaceChildren(String(needing), words);
  }

  let soon = null;
  function refreshSoon() {
    soon ??= setTimeout(() => { soon = null; refresh(); }, SOON_MILLISECONDS);
  }

  document.addEventListener("DOMContentLoaded", () => {
    setInterval(refresh, EVERY_MILLISECONDS);
    // The title of this conversation is replaced when it changes: with the first message, or when it is renamed.
    new MutationObserver(refreshSoon).observe(document.querySelector(".top"), { childList: true });
  });
  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("turn-ended", refreshSoon);
  document.addEventListener("activity-changed", refreshSoon);
})();
