// Dialogs that the server sends, and buttons that copy.
"use strict";

document.addEventListener("htmx:load", (event) => {
  const dialog = event.detail.elt.closest("dialog[data-show]");
  if (!dialog || dialog.open) return;
  dialog.addEventListener("close", () => dialog.remove());
  // A click beside it closes it.
  dialog.addEventListener("click", (click) => { if (click.target === dialog) dialog.close(); });
  dialog.showModal();
  for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    // Without permission the text is selected, and one key copies it.
    button.parentElement.querySelector("input")?.select();
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { button.textContent = words; }, 2000);
});
