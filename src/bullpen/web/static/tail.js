// The page stays at the end of the conversation until a person scrolls up, or opens something to read. As soon as the end
// is in view again, the page follows it again. Nothing else scrolls this page to its end.
"use strict";

const tail = (() => {
  const talk = document.getElementById("talk");
  const messages = document.getElementById("messages");
  const root = document.documentElement;
  const NEAR_PIXELS = 4;
  const SCROLLED_PIXELS = 2;
  // A page around a search hit ends before the newest message.
  const endsEarly = talk.dataset.ends === "early";
  // A person who comes back to a place in the middle finds it again: the browser scrolls there.
  const [visit] = performance.getEntriesByType("navigation");
  const returns = visit?.type !== "navigate" && history.scrollRestoration === "auto";

  let isOn = !endsEarly && !location.hash && !returns;
  let place = 0;
  let drawnEnd = 0; // where the end was when the page was last drawn: text that grows does not scroll
  let unread = 0;
  let isSending = false;

  const end = () => Math.max(0, root.scrollHeight - window.innerHeight);
  const sees = (wanted) => window.scrollY >= wanted - NEAR_PIXELS;

  function set(on) {
    const before = isOn;
    isOn = on && !endsEarly;
    root.classList.toggle("at-end", isOn);
    // Told at once: while a page is left, it may be too late.
    if (isOn !== before) history.scrollRestoration = isOn ? "manual" : "auto";
    if (isOn) unread = 0;
    showJump();
  }

  // Called before each drawing in which the page has another size.
  function settle() {
    if (isOn) window.scrollTo({ top: end(), behavior: "instant" });
    else set(sees(end()));
    [place, drawnEnd] = [window.scrollY, end()];
  }

  function scrolled() {
    const wanted = Math.min(end(), drawnEnd);
    if (window.scrollY < place && window.scrollY < wanted - SCROLLED_PIXELS) set(false);
    else if (sees(wanted)) set(true);
    place = window.scrollY;
  }

  function follow() {
    set(true);
    settle();
  }

  // Change something, and keep what is read above the end where it is.
  function keepPlace(find, change) {
    const before = isOn ? null : find()?.getBoundingClientRect();
    change();
    if (!before || before.bottom < 0 || before.top > window.innerHeight) return;
    const after = find()?.getBoundingClientRect();
    if (after) window.scrollBy({ top: after.bottom - before.bottom, behavior: "instant" });
  }

  const jump = document.createElement("button");
  jump.type = "button";
  jump.className = "jump";
  jump.addEventListener("click", () => {
    if (endsEarly) location.href = `/c/${talk.dataset.id}`;
    else follow();
  });

  function showJump() {
    jump.hidden = isOn || sees(end());
    const text = unread ? `↓ ${unread} new` : "↓ Newest";
    if (jump.textContent !== text) jump.textContent = text;
    jump.setAttribute("aria-label", unread ? `${unread} new messages: go to the newest` : "Go to the newest message");
    jump.classList.toggle("unread", unread > 0);
  }

  function came(node) {
    if (!node.matches?.("article") || node !== messages.lastElementChild) return;
    // Who writes wants to see it arrive.
    if (isSending && node.matches(".human")) {
      isSending = false;
      follow();
    } else if (!isOn) {
      unread += 1;
      showJump();
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelector(".dock").prepend(jump);
    document.getElementById("composer")?.addEventListener("htmx:beforeRequest", () => { isSending = true; });
    new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach(came))).observe(messages, { childList: true });
    // Buttons open something to fill in, and lines something to read.
    talk.addEventListener("click", (event) => {
      const line = event.target.closest("#messages summary, #live summary:not(.button), .older button");
      if (line && !line.parentElement.open) set(false);
    });
    history.scrollRestoration = isOn ? "manual" : "auto";
    set(isOn);
    new ResizeObserver(settle).observe(document.body);
    window.addEventListener("resize", settle);
    window.addEventListener("scroll", scrolled, { passive: true });
  });

  return { keepPlace, settle };
})();
