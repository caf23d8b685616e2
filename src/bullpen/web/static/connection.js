// What is wrong with the connection, and what to do about it.
"use strict";

const connection = (() => {
  const UNAUTHORIZED = 401;
  // A stream that is opened again at once was not lost for anybody.
  const PATIENCE_MILLISECONDS = 1500;
  let timer = null;

  function show(words, link) {
    const place = document.getElementById("connection");
    const text = document.createElement("p");
    text.className = "problem";
    text.textContent = `${words} `;
    if (link) {
      const anchor = document.createElement("a");
      anchor.href = location.href;
      anchor.textContent = link;
      text.append(anchor);
    }
    if (place.textContent !== text.textContent) place.replaceChildren(text);
  }

  function isLost(status) {
    document.body.classList.add("unreachable");
    if (status === UNAUTHORIZED) {
      clearTimeout(timer);
      show("This browser is not signed in any more. Open an address from `bullpen serve --new-address`; this page then continues by itself. What you typed is kept.", "How do I sign in?");
    } else if (timer === null) {
      timer = setTimeout(() => show("The server cannot be reached. Is `bullpen serve` still running? This page continues by itself as soon as it is back."), PATIENCE_MILLISECONDS);
    }
  }

  function isBack() {
    clearTimeout(timer);
    timer = null;
    document.body.classList.remove("unreachable");
    document.getElementById("connection").replaceChildren();
  }

  return { isLost, isBack };
})();
