// One conversation, live. Every event has a number; the page sends the last one it has seen, and gets the later ones.
"use strict";

(() => {
  const talk = document.getElementById("talk");
  const base = `/c/${talk.dataset.id}`;
  const messages = document.getElementById("messages");
  const live = document.getElementById("live");
  const isOpen = talk.dataset.open === "yes";
  // A page around a search hit ends before the newest message. New messages would follow a gap; a link leads to them.
  const endsEarly = talk.dataset.ends === "early";
  const POLL_MILLISECONDS = 3000;

  let number = Number(talk.dataset.number);
  let source = null;
  let late = null; // what came while the page was catching up

  function element(html) {
    const template = document.createElement("template");
    template.innerHTML = html; // rendered by our server, which has sanitized the text of people and agents
    return template.content;
  }

  function ready(node) {
    localize(node);
    htmx.process(node);
  }

  const turn = (id) => document.getElementById(`turn-${id}`);
  const lastSequence = () => Number(messages.lastElementChild?.dataset.sequence ?? 0);

  function addMessage(sequence, html) {
    if (document.getElementById(`m${sequence}`) || (endsEarly && Number(sequence) > lastSequence())) return;
    const node = element(html).firstElementChild;
    const later = [...messages.children].find((one) => Number(one.dataset.sequence) > Number(sequence));
    messages.insertBefore(node, later ?? null);
    document.getElementById("nothing")?.remove();
    ready(node);
  }

  // A turn without a reply stays, folded, after the message that was the last one when it ended.
  function addUnanswered(html) {
    const node = element(html).firstElementChild;
    if (!node || document.querySelector(`[data-unanswered="${CSS.escape(node.dataset.unanswered)}"]`)) return;
    // Its message may not be here yet, or no longer.
    [...messages.children].filter((one) => Number(one.dataset.sequence) <= Number(node.dataset.after)).pop()?.append(node);
    ready(node);
  }

  // What a turn changed stands below its reply; what others changed, after the message that was the last one then.
  function addChange(html) {
    const made = element(html).firstElementChild;
    const { turn: id, kind, after } = made.dataset;
    const [link, line] = made.children;
    const ofTurn = (selector) => (kind === "turn" ? messages.querySelector(selector.replace("ID", CSS.escape(id))) : null);
    const footer = ofTurn('article[data-turn="ID"] > footer');
    const node = footer ? link : line;
    const old = messages.querySelector(`[data-change="${node.dataset.change}"]`);
    if (old?.outerHTML === node.outerHTML) return;
    if (old) old.replaceWith(node);
    else if (footer) footer.querySelector(".spent").after(node);
    else if (kind === "turn") ofTurn('[data-unanswered="ID"]')?.after(node);
    else [...messages.children].filter((one) => Number(one.dataset.sequence) <= Number(after)).pop()?.append(node);
  }

  // What a check says stands below the reply of its turn, in a line of its own; while it runs and when it has ended.
  function addCheck(html) {
    const node = element(html).firstElementChild;
    const { check, turn: id, after } = node.dataset;
    const old = messages.querySelector(`[data-check="${CSS.escape(check)}"]`);
    if (old) {
      node.open = old.open;
      if (old.outerHTML === node.outerHTML) return;
      const hadFocus = old.contains(document.activeElement);
      old.replaceWith(node);
      if (hadFocus) node.querySelector("summary").focus();
      return;
    }
    const place = messages.querySelector(`article[data-turn="${CSS.escape(id)}"] > footer`)
      ?? messages.querySelector(`[data-unanswered="${CSS.escape(id)}"]`);
    const others = place ? [...place.parentElement.querySelectorAll(`:scope > [data-check][data-turn="${CSS.escape(id)}"]`)] : [];
    if (place) (others.pop() ?? place).after(node);
    else [...messages.children].filter((one) => Number(one.dataset.sequence) <= Number(after)).pop()?.append(node);
  }

  function addLive(html) {
    const node = element(html).firstElementChild;
    if (!node) return;
    const old = turn(node.dataset.turn);
    if (old) old.replaceWith(node);
    else live.append(node);
    begin(node);
    ready(node);
  }

  function begin(node) {
    growing.begin(node);
    foldSteps(node);
  }

  // The reply takes the place of the turn: a person who reads its text must not lose the line.
  function becomeMessage(id, data) {
    const body = () => (document.getElementById(`m${data.sequence}`) ?? turn(id))?.querySelector(".body");
    const did = turn(id)?.querySelector(".steps > *, .thinking:not([hidden])");
    tail.keepPlace(body, () => {
      addMessage(data.sequence, data.html);
      if (!did) for (const node of document.querySelectorAll(`#m${data.sequence} footer :is(.did, .steps)`)) node.remove();
      turn(id)?.remove();
    });
  }

  function doing(id, what) {
    for (const place of document.querySelectorAll(`#turn-${id} .what, .doing[data-turn="${id}"] .what`)) {
      if (place.textContent !== what) place.textContent = what;
    }
  }

  function addStep(node, data) {
    const key = CSS.escape(data.key);
    const step = element(data.html).firstElementChild;
    const old = node.querySelector(`.steps [data-key="${key}"]`);
    if (old && data.finishes) {
      old.querySelector(".result").replaceWith(step.querySelector(".result"));
      old.querySelector(".result-word").replaceWith(step.querySelector(".result-word"));
      old.classList.remove("open");
      old.classList.toggle("failed", step.classList.contains("failed"));
    } else if (old) {
      old.replaceWith(step);
    } else {
      node.querySelector(".steps").append(step);
      foldSteps(node);
    }
  }

  // Of many tools, the last three are shown, and a line above them says how many there were.
  function foldSteps(node) {
    const fold = node.querySelector(":scope > .earlier");
    const earlier = (kind) => node.querySelectorAll(`:scope > .steps > ${kind}:not(.todo):nth-last-child(n + 4)`).length;
    const [all, tools, failed] = [earlier(".step"), earlier(".tool"), earlier(".failed")];
    const words = [tools ? `${tools} earlier tool${tools > 1 ? "s" : ""}` : "earlier notes", failed && `${failed} failed`];
    fold.hidden = !all;
    fold.querySelector("summary").textContent = words.filter(Boolean).join(" · ");
  }

  function showState(html) {
    const focused = document.activeElement?.id;
    const open = new Set([...document.querySelectorAll("#side details[open], #decisions details[open]")].map((one) => one.id));
    const typed = document.getElementById("task-text")?.value;
    for (const node of [...element(html).children]) {
      const old = document.getElementById(node.id);
      // Do not replace the task while it is being edited.
      if (!old || (node.id === "side" && open.has("task-edit") && old.contains(document.activeElement))) continue;
      merge(old, node, ready);
    }
    for (const id of open) if (id) document.getElementById(id)?.setAttribute("open", "");
    const task = document.getElementById("task-text");
    if (task && typed !== undefined && open.has("task-edit")) task.value = typed;
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
    // A turn says what its member says: whether it works, or waits for somebody.
    for (const now of document.querySelectorAll("#side .doing .now")) {
      const head = turn(now.closest(".doing").dataset.turn)?.querySelector("header .now");
      if (head && head.className !== now.className) head.replaceWith(now.cloneNode(true));
    }
    count();
    document.dispatchEvent(new Event("state-shown"));
  }

  // Reads again everything that the page may have missed; what comes in the meantime waits.
  async function catchUp() {
    if (late) return;
    late = [];
    await readNewer();
    const waiting = late;
    late = null;
    for (const data of waiting) handlers.text(data);
  }

  async function readNewer() {
    const after = endsEarly ? Number.MAX_SAFE_INTEGER : lastSequence();
    const answer = await fetch(`${base}/newer?after=${after}`, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer?.ok) return;
    const fresh = element(await answer.text());
    const came = fresh.querySelectorAll(".new-messages > article").length;
    const state = ["title", "side", "decisions"].map((id) => fresh.querySelector(`#${id}`)?.outerHTML ?? "").join("");
    for (const node of fresh.querySelectorAll(".new-messages > article")) addMessage(node.dataset.sequence, node.outerHTML);
    for (const node of fresh.querySelectorAll(".new-unanswered > details")) addUnanswered(node.outerHTML);
    for (const node of fresh.querySelectorAll(".new-changes > div")) addChange(node.outerHTML);
    for (const node of fresh.querySelectorAll(".new-checks > details")) addCheck(node.outerHTML);
    const running = new Set([...fresh.querySelectorAll(".new-live > article")].map((node) => node.dataset.turn));
    for (const node of [...live.children]) if (!running.has(node.dataset.turn)) node.remove();
    for (const node of fresh.querySelectorAll(".new-live > article")) addLive(node.outerHTML);
    showState(state);
    // Messages come page by page; a page without new ones is the last.
    if (came > 0 && isOpen) await readNewer();
  }

  const handlers = {
    over: (data) => document.querySelector(`#problem [data-about="${CSS.escape(data.about)}"]`)?.remove(),
    said: (data) => {
      if (data.turn && turn(data.turn)) becomeMessage(data.turn, data);
      else addMessage(data.sequence, data.html);
    },
    began: (data) => turn(data.turn) || addLive(data.html),
    ended: (data) => {
      turn(data.turn)?.remove();
      if (data.html) addUnanswered(data.html);
      document.dispatchEvent(new CustomEvent("turn-ended", { detail: data }));
    },
    changed: (data) => addChange(data.html),
    checked: (data) => addCheck(data.html),
    text: (data) => {
      const node = turn(data.turn);
      if (late) late.push(data);
      if (late || !node) return;
      if (!growing.grow(node, data)) catchUp();
      doing(data.turn, "writing");
    },
    thinking: (data) => {
      const node = turn(data.turn)?.querySelector(".thinking");
      if (!node) return;
      node.hidden = false;
      node.querySelector(".thought").append(data.text);
      doing(data.turn, "thinking");
    },
    step: (data) => {
      const node = turn(data.turn);
      if (node && data.html) addStep(node, data);
      if (data.doing) doing(data.turn, data.doing);
    },
    lagged: catchUp,
    reload: () => location.reload(),
  };

  function connect() {
    source = new EventSource(`${base}/stream?epoch=${talk.dataset.epoch}&after=${number}`);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) number = Math.max(number, Number(event.lastEventId));
        handle(JSON.parse(event.data));
      });
    }
    source.addEventListener("state", (event) => {
      if (event.lastEventId) number = Math.max(number, Number(event.lastEventId));
      showState(event.data);
    });
    source.addEventListener("trouble", (event) => {
      const place = document.getElementById("problem");
      place.replaceChildren(element(event.data));
    });
    source.onopen = () => connection.isBack();
    source.onerror = () => {
      connection.isLost();
      // A refusal ends a stream permanently, so we check ourselves whether the server is back.
      if (source.readyState === EventSource.CLOSED) setTimeout(reloadWhenBack, POLL_MILLISECONDS);
    };
  }

  async function poll() {
    if (!document.hidden) await catchUp();
    setTimeout(poll, POLL_MILLISECONDS);
  }

  async function reloadWhenBack() {
    const answer = await fetch(`${base}/newer?after=${lastSequence()}`).catch(() => null);
    if (answer?.ok) location.reload();
    else setTimeout(reloadWhenBack, POLL_MILLISECONDS);
    connection.isLost(answer?.status);
  }

  // A browser opens few streams at a time to one server, so a hidden tab closes its own.
  function connectIfVisible() {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (source === null) {
      connect();
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const node of live.children) begin(node);
    if (isOpen) {
      document.addEventListener("visibilitychange", connectIfVisible);
      connectIfVisible();
    } else {
      poll();
    }
  });
})();
