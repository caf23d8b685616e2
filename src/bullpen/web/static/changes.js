// The page of changes: keys for files and lines, two columns that scroll together, comments on lines.
"use strict";

(() => {
  const main = document.getElementById("main");
  const UNDO = 'form[action$="/do/undo"] button';
  const mayComment = main.dataset.comments === "yes";

  const isTyping = (event) => event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog");
  const files = () => [...main.querySelectorAll(".file")];
  // Of two columns, those of the one that is read: what is on both sides is there once.
  const rows = () => [...main.querySelectorAll("[data-line]")].filter((row) => row.checkVisibility() && !isTwin(row));
  const isTwin = (row) => row.matches(".context") && row.closest(".halves > .box:first-child");

  // The one that is focused or was last, and else the first that can be seen.
  function next(all, here, step) {
    const at = all.indexOf(here);
    if (at >= 0) return all[at + step];
    const below = all.findIndex((one) => one.getBoundingClientRect().top > 60);
    return step > 0 ? all[Math.max(0, below)] : all[(below < 0 ? all.length : below) - 1];
  }

  function toFile(step) {
    const file = next(files(), document.activeElement?.closest(".file"), step);
    if (!file) return;
    file.querySelector("summary").focus({ preventScroll: true });
    file.scrollIntoView({ block: "start", behavior: "instant" });
  }

  function toLine(step) {
    const here = document.activeElement;
    const all = rows();
    let row = here?.matches("[data-line]") ? all[all.indexOf(here) + step] : null;
    if (!here?.matches("[data-line]")) {
      const side = step > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
      const beyond = all.filter((one) => here?.compareDocumentPosition(one) & side);
      row = here?.closest(".file") ? beyond.at(step > 0 ? 0 : -1) : next(all, null, step);
    }
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  function comment(row) {
    const file = row?.closest(".lines");
    if (!mayComment || !file) return;
    asked = row;
    htmx.ajax("GET", `${file.dataset.file}/comment?line=${row.dataset.line}`, { target: "#dialogs", swap: "innerHTML" });
  }

  let asked = null; // the line that is commented on, which is focused again afterwards

  const keys = {
    n: () => toFile(1),
    p: () => toFile(-1),
    j: () => toLine(1),
    k: () => toLine(-1),
    c: () => comment(document.activeElement?.closest("[data-line]")),
    Enter: () => comment(document.activeElement?.closest("[data-line]")),
    s: () => document.querySelector("#columns a:not([aria-current])").click(),
    u: () => (document.activeElement?.closest(".changes")?.querySelector(UNDO) ?? main.querySelector(UNDO))?.click(),
  };

  document.addEventListener("keydown", (event) => {
    const act = isTyping(event) ? null : keys[event.key];
    if (!act || (event.key === "Enter" && !event.target.matches("[data-line]"))) return;
    event.preventDefault();
    act();
  });

  main.addEventListener("click", (event) => {
    const number = event.target.closest(".number");
    if (number) comment(number.closest("[data-line]"));
  });

  // It does not bubble.
  main.addEventListener("scroll", (event) => {
    const halves = event.target.closest?.(".halves");
    for (const box of halves?.children ?? []) if (box !== event.target) box.scrollLeft = event.target.scrollLeft;
  }, true);

  document.addEventListener("click", (event) => event.target.closest("[data-close]")?.closest("dialog").close());
  // It comes a moment after closing: by then, somebody may be at another file.
  document.addEventListener("close", (event) => {
    if (event.target.matches?.("dialog.comment") && !document.activeElement?.closest(".file")) asked?.focus();
  }, true);

  document.addEventListener("htmx:afterRequest", (event) => {
    const dialog = event.target.closest?.("dialog.comment");
    if (!dialog || event.detail.elt.tagName !== "FORM") return;
    if (event.detail.successful) {
      dialog.close();
      return;
    }
    // A problem below the dialog would not be seen.
    const said = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html").querySelector(".problem");
    dialog.querySelector(".bad").textContent = said?.firstChild.textContent ?? "The server cannot be reached.";
  });

  // What was taken back is another record, and this page lists them.
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.target.closest?.(".undo") && event.detail.successful) location.reload();
  });

  // What is changed while the page is open comes to it: a new section at the top, or a sum that is another one.
  const titleOf = (section) => section.querySelector("h2").textContent;
  const nameOf = (file) => file.querySelector("summary code").textContent;

  function place(section) {
    const known = [...main.querySelectorAll("section.changes")];
    const old = known.find((one) => (section.id ? one.id === section.id : titleOf(one) === titleOf(section)));
    if (!old && known.length && main.dataset.by === "turn") known[0].before(section);
    else if (!old && known.length) known.at(-1).after(section);
    else if (!old) main.querySelector(".empty")?.replaceWith(section);
    else if (section.id || old.textContent === section.textContent || old.contains(document.activeElement)) return;
    else {
      const open = new Set([...old.querySelectorAll(".file[open]")].map(nameOf));
      for (const file of section.querySelectorAll(".file")) file.open = open.has(nameOf(file));
      old.replaceWith(section);
    }
    htmx.process(section);
  }

  let renewing = null;

  async function renew() {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    main.querySelector(".headline").replaceWith(page.querySelector("#main .headline"));
    for (const section of [...page.querySelectorAll("section.changes")].reverse()) place(section);
  }

  if (main.dataset.stream) {
    const source = new EventSource(main.dataset.stream);
    // One after the other: each reads all there is.
    for (const name of ["changed", "lagged"]) source.addEventListener(name, () => { renewing = Promise.resolve(renewing).then(renew); });
  }

  // What is read of a file that is opened may fail; it is read when it is opened again.
  document.addEventListener("htmx:responseError", (event) => {
    if (event.target.matches?.(".loading")) event.target.closest("details").open = false;
  });
})();
