// The text of a running turn. The server renders it and sends what changes; only that part of the page changes.
"use strict";

const growing = (() => {
  const open = new WeakMap(); // article → the HTML of its text that may still change

  function parsed(html) {
    const template = document.createElement("template");
    template.innerHTML = html; // rendered by our server, which has sanitized the text of agents
    return template.content;
  }

  function begin(article) {
    open.set(article, article.dataset.open);
    article.removeAttribute("data-open");
  }

  // Makes one part of the page like another, and leaves alone what is the same: what is selected stays selected.
  function liken(have, want) {
    const before = [...have.childNodes];
    const after = [...want.childNodes];
    after.forEach((node, index) => {
      const old = before[index];
      if (!old) have.append(node);
      else if (old.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) likenText(old, node.data);
      else if (old.cloneNode(false).isEqualNode(node.cloneNode(false))) liken(old, node);
      else old.replaceWith(node);
    });
    for (const node of before.slice(after.length)) node.remove();
  }

  function likenText(node, text) {
    if (text.startsWith(node.data)) node.appendData(text.slice(node.length));
    else node.data = text;
  }

  // Returns false if a change before this one is missing.
  function grow(article, change) {
    const version = Number(article.dataset.version);
    if (change.version <= version) return true;
    if (change.version > version + 1) return false;
    const html = open.get(article).slice(0, change.keep) + change.rest;
    const place = article.querySelector(".body > .open");
    liken(place, parsed(html));
    for (let done = parsed(html.slice(0, change.done)).childNodes.length; done > 0; done -= 1) place.before(place.firstChild);
    open.set(article, html.slice(change.done));
    article.dataset.version = change.version;
    return true;
  }

  return { begin, grow };
})();
