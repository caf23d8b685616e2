// Tells a person that they are needed: in the title of every tab, and by a notification if they want that.
"use strict";

(() => {
  // A browser that is not signed in is told nothing.
  if (document.body.matches(".stranger")) return;
  const own = document.getElementById("talk")?.dataset.id; // undefined on pages about all conversations
  const CHANNEL = "bullpen-attention";
  const RETRY_MILLISECONDS = 10000;
  const channel = new BroadcastChannel(CHANNEL);
  const known = new Map(); // conversation → what it needs
  let notified = "";

  const wantsNotifications = () => localStorage.getItem("notify") === "yes" && window.Notification?.permission === "granted";

  function showTitle() {
    const title = known.get(own)?.title;
    const base = title ? `${title} · bullpen` : document.title.replace(/^(?:[●◆○✗] )?(?:\(\d+\) )?/, "");
    const counts = own ? [known.get(own)?.count ?? 0] : [...known.values()].map((one) => one.count);
    const count = counts.reduce((sum, one) => sum + one, 0);
    const counted = `${own ? known.get(own)?.sign ?? "" : ""} ${count ? `(${count}) ` : ""}${base}`.trim();
    if (document.title !== counted) document.title = counted;
  }

  function notify(needed) {
    const words = needed.count ? `${needed.count} ${needed.text}` : "";
    if (words && words !== notified && document.hidden && wantsNotifications()) {
      // With the same tag, a second tab of this conversation replaces it instead of adding one.
      const shown = new Notification(needed.title || "bullpen", { body: needed.text, tag: needed.id });
      shown.onclick = () => { window.focus(); shown.close(); };
    }
    notified = words;
  }

  function take(needed) {
    const isOther = known.get(needed.id)?.sign !== needed.sign;
    known.set(needed.id, needed);
    if (isOther) document.dispatchEvent(new Event("activity-changed"));
    if (needed.id === own) notify(needed);
    showTitle();
  }

  // A browser opens few streams at a time to one server, so one tab listens for all. When it closes, another one does.
  function listen() {
    channel.addEventListener("message", (event) => {
      if (event.data.asks) for (const needed of known.values()) channel.postMessage({ needed });
    });
    open();
    return new Promise(() => {});
  }

  function open() {
    const source = new EventSource("/attention");
    source.addEventListener("attention", (event) => {
      const needed = JSON.parse(event.data);
      take(needed);
      channel.postMessage({ needed });
    });
    // A refusal ends a stream permanently: this browser may be signed in again later.
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY_MILLISECONDS); };
  }

  function showOwn() {
    const place = document.getElementById("decisions");
    const title = document.getElementById("title")?.textContent.trim() ?? "";
    if (place) take({ id: own, title, count: Number(place.dataset.needed), text: place.dataset.text, sign: place.dataset.sign });
  }

  function offerNotifications() {
    const button = document.getElementById("notify");
    if (!button || !window.Notification) return;
    const show = () => {
      button.setAttribute("aria-pressed", String(wantsNotifications()));
      button.textContent = wantsNotifications() ? "Stop notifying me" : "Notify me when I am needed";
    };
    button.hidden = false;
    button.addEventListener("click", async () => {
      if (wantsNotifications()) localStorage.setItem("notify", "no");
      else if ((await Notification.requestPermission()) === "granted") localStorage.setItem("notify", "yes");
      else button.textContent = "Your browser does not allow it";
      if (window.Notification.permission === "granted") show();
    });
    show();
  }

  channel.addEventListener("message", (event) => { if (event.data.needed) take(event.data.needed); });
  document.addEventListener("state-shown", showOwn);
  document.addEventListener("DOMContentLoaded", () => {
    if (own) showOwn();
    offerNotifications();
    channel.postMessage({ asks: true });
    if (navigator.locks) navigator.locks.request(CHANNEL, listen);
    else listen();
  });
})();
