// Brings a part of the page up to date, and replaces only what differs: a button that is being clicked stays the same one.
"use strict";

const merge = (() => {
  const LISTS = "section, ul, ol, #side, #decisions, #conversations";
  const asSent = new WeakMap(); // element → its HTML as the server sent it, before the page opened or counted anything in it

  function remember(node) {
    asSent.set(node, node.outerHTML);
    if (node.matches(LISTS)) for (const row of node.children) remember(row);
  }

  // A list and its new version: the same kind of element with the same label.
  const list = (node) => (node.matches(LISTS) ? `${node.tagName} ${node.getAttribute("aria-labelledby")}` : null);

  function merge(old, fresh, isReady) {
    const html = fresh.outerHTML;
    if (asSent.get(old) === html) return;
    if (list(old) === null || list(old) !== list(fresh)) {
      remember(fresh);
      old.replaceWith(fresh);
      isReady(fresh);
      return;
    }
    for (const { name, value } of fresh.attributes) old.setAttribute(name, value);
    mergeRows(old, [...fresh.children], isReady);
    asSent.set(old, html);
  }

  function mergeRows(old, fresh, isReady) {
    const left = new Set(old.children);
    const take = (isSame) => {
      const found = [...left].find(isSame);
      left.delete(found);
      return found;
    };
    const kept = fresh.map((row) => take((one) => asSent.get(one) === row.outerHTML));
    const rows = fresh.map((row, at) => kept[at] ?? (list(row) && take((one) => list(one) === list(row))));
    for (const one of left) one.remove();
    fresh.forEach((row, at) => {
      const wanted = rows[at] ?? row;
      // A row is never taken out to be put back: a click that has begun on it would be lost.
      if (old.children[at] !== wanted) old.insertBefore(wanted, old.children[at] ?? null);
      if (wanted !== row) merge(wanted, row, isReady);
      else {
        remember(row);
        isReady(row);
      }
    });
  }

  for (const node of document.querySelectorAll("#title, #side, #decisions, #conversations")) remember(node);
  return merge;
})();
