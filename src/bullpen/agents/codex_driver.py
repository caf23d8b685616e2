"""Codex's app-server: JSON-RPC in lines, in both directions. People are asked, and can say something meanwhile."""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from bullpen import __version__
from bullpen.agents.codex_items import IGNORED, CodexItems, changes_in
from bullpen.agents.codex_questions import Item, Question, RequestId, edit_asked, is_free_request, question_from
from bullpen.agents.driver import Opening, stopped_by_a_person
from bullpen.agents.free_reading import only_reads
from bullpen.agents.gate import went_past
from bullpen.approvals import Answer
from bullpen.turn_events import ApprovalOver, Event, Failed, Finished, Notice, Started

MOST_ITEMS = 1000
"""How many items are known at once. A request about one that is not known any more is asked without its diff."""
METHODS = {"new": "thread/start", "rebuilt": "thread/start", "resumed": "thread/resume", "forked": "thread/fork"}
NOT_SUPPORTED = {"code": -32601, "message": "This client cannot do that."}
# It asks for more than one command needs, so nothing is granted: a yes is always to one thing.
NOTHING_GRANTED = {"permissions": {}, "scope": "turn"}
ASKS = {"approvalPolicy": "untrusted", "approvalsReviewer": "user"}
"""Every command is asked for, and it is a person who answers: with other settings a model would."""
# A thread that may write from its beginning makes Codex trust the folder, and write that into the user's settings.
SANDBOX_OF_THREAD = {"asked": "read-only", "got": "readOnly"}
SANDBOX_OF_TURN = {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False}
WOULD_NOT_ASK = Failed(
    kind="permission_refused",
    message="It would not ask before it runs a command: settings on this machine forbid that.",
    hint="Choose other permissions for this member, or let `codex` be used with approvals.",
)


class Own(IntEnum):
    """The ids of our requests that begin the turn, each after the reply to the one before it."""

    INITIALIZE = 1
    THREAD = 2
    TURN = 3
    NONE = 4


class CodexDriver:
    """One turn in one thread. Every command is asked for, but those that only read; so are edits outside the folder."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._items = CodexItems()
        self._at_work: dict[str, Item] = {}
        """Items that have begun: only they have the changes that a question is about."""
        self._unasked: dict[str, str] = {}
        """Commands that have begun, and that it has not asked about so far."""
        self._asked_for: dict[str, bool] = {}
        """Items that it has asked about, and whether they got a yes, or need none."""
        self._open: dict[str, Question] = {}
        self._told: dict[int, str] = {}
        """Words that it has not taken yet, by the request that brought them."""
        self._held: list[Any] = []
        """Answers that wait until it has taken those words: otherwise its model could be asked without them."""
        self._awaited = Own.INITIALIZE
        self._requests = int(Own.NONE)
        self._thread = ""
        self._turn = ""
        self._stopped_because: str | None = None
        self._past: Failed | None = None
        """How the turn ends if it has run something that it had to ask for."""
        capabilities = {"optOutNotificationMethods": IGNORED}
        client = {"name": "bullpen", "title": "bullpen", "version": __version__}
        self.outgoing: list[Any] = [
            _request(Own.INITIALIZE, "initialize", clientInfo=client, capabilities=capabilities)
        ]

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield the events of one record."""
        match record:
            case {"method": str(method), "id": int() | str() as request}:
                params = record.get("params")
                yield from self._requested(method, request, params if isinstance(params, dict) else {})
            case {"method": str(method), "params": dict(params)}:
                yield from self._notified(method, params)
            case {"id": int(number), "result": dict(result)}:
                yield from self._replied(number, result)
            case {"id": int(number), "error": {"message": str(message)}}:
                yield from self._refused(number, message)
            case _:
                yield Notice(kind="unknown", text=str(record))

    def answer(self, question: str, answer: Answer) -> None:
        """Answer a question. The reason of a no goes ahead of it, as words of a person."""
        asked = self._open.pop(question, None)
        if asked is None:
            return
        reply = asked.answer(answer, question)
        if reply is None:
            return
        if answer.verdict == "yes":
            _remember(self._asked_for, asked.item, True)
        elif answer.verdict == "stop":
            self._stopped_because = answer.reason
        elif answer.verdict == "no" and answer.reason and not asked.fields:
            self._steer(f"That was refused: {answer.reason}", asked.thread, asked.turn)
        self._forget(asked)
        self._held.append({"id": asked.request, "result": reply})
        if not self._told or answer.verdict == "stop":
            self._release()
        if answer.verdict == "stop":
            self._interrupt()

    def tell(self, text: str) -> bool:
        """Steer the turn, if there is one."""
        if self._turn:
            self._steer(text, self._thread, self._turn)
        return bool(self._turn)

    def interrupt(self) -> None:
        """Cancel what it asks, and the turn."""
        self._release()
        cancelled = Answer(verdict="stop")
        for question, asked in list(self._open.items()):
            if self._open.pop(question, None) and (reply := asked.answer(cancelled, question)):
                self.outgoing.append({"id": asked.request, "result": reply})
                self._forget(asked)
        self._interrupt()

    def _release(self) -> None:
        self.outgoing += self._held
        self._held = []

    def _interrupt(self) -> None:
        if self._turn:
            self._send("turn/interrupt", threadId=self._thread, turnId=self._turn)

    def _send(self, method: str, **params: Any) -> int:
        self._requests += 1
        self.outgoing.append(_request(self._requests, method, **params))
        return self._requests

    def _steer(self, text: str, thread: str, turn: str) -> None:
        number = self._send("turn/steer", threadId=thread, expectedTurnId=turn, input=[{"type": "text", "text": text}])
        self._told[number] = text

    def _replied(self, number: int, result: dict[str, Any]) -> Iterator[Event]:
        if self._told.pop(number, None) is not None and not self._told:
            self._release()
        if number != self._awaited:
            return
        match self._awaited, result:
            case Own.INITIALIZE, _:
                self.outgoing.append({"method": "initialized"})
                self._begin(Own.THREAD, *self._thread_wanted())
            case Own.THREAD, {"thread": {"id": str(thread)} as about}:
                self._thread = thread
                yield Started(session_id=thread, model=result.get("model"), cli_version=about.get("cliVersion"))
                if not _would_ask(result):
                    self._awaited = Own.NONE
                    yield WOULD_NOT_ASK
                    return
                given = [{"type": "text", "text": self._opening.prompt}]
                params = {"threadId": thread, "input": given, "sandboxPolicy": SANDBOX_OF_TURN}
                self._begin(Own.TURN, "turn/start", params)
            case Own.TURN, {"turn": {"id": str(turn)}}:
                self._awaited, self._turn = Own.NONE, turn

    def _begin(self, step: Own, method: str, params: dict[str, Any]) -> None:
        self._awaited = step
        self.outgoing.append(_request(step, method, **params))

    def _thread_wanted(self) -> tuple[str, dict[str, Any]]:
        """Return how the thread begins."""
        opening, use = self._opening, self._opening.session
        params = {"cwd": opening.folder, "sandbox": SANDBOX_OF_THREAD["asked"], **ASKS}
        if opening.model:
            params["model"] = opening.model
        if use and use.is_continued:
            params["threadId"] = use.id
        return METHODS[use.origin if use else "new"], params

    def _refused(self, number: int, message: str) -> Iterator[Event]:
        if number in self._told:
            yield _not_told(self._told.pop(number))
            if not self._told:
                self._release()
        elif number == self._awaited:
            self._awaited = Own.NONE
            yield Failed(kind="crashed", message=message)

    def _notified(self, method: str, params: dict[str, Any]) -> Iterator[Event]:
        match method, params:
            case "item/started", {"item": {"type": "fileChange" | "mcpToolCall", "id": str(item_id)} as item}:
                _remember(self._at_work, item_id, item)
            case "item/started", {"item": {"type": "commandExecution", "id": str(item_id), "command": str(command)}}:
                _remember(self._unasked, item_id, command)
            case "item/completed", {"item": {"id": str(item_id)} as item}:
                self._at_work.pop(item_id, None)
                command = self._unasked.pop(item_id, "")
                is_done = item.get("status") != "declined" and self._stopped_because is None
                if command and is_done and self._asked_for.get(item_id) is False:
                    self._go_past(command)
                elif command and is_done and item_id not in self._asked_for:
                    self._on_unasked(command)
                if item.get("type") == "fileChange" and item.get("status") == "completed":
                    self._on_changed(item_id, item)
            case "serverRequest/resolved", {"requestId": request}:
                yield from self._taken_back(request)
        if params.get("threadId") not in (None, self._thread) or method == "serverRequest/resolved":
            # Its own helpers have threads of their own. Only their questions are for people.
            return
        match method, params:
            case "turn/started", {"turn": {"id": str(turn)}}:
                self._turn = self._turn or (turn if self._awaited == Own.TURN else "")
            case "turn/completed", {"turn": {"id": str(turn)} as about}:
                if turn == self._turn:
                    yield from self._ended(about)
            case _:
                yield from self._items.notified(method, params)

    def _ended(self, turn: dict[str, Any]) -> Iterator[Event]:
        self._awaited, self._turn = Own.NONE, ""
        for text in self._told.values():
            yield _not_told(text)
        self._told.clear()
        for command in [one for item, one in self._unasked.items() if item not in self._asked_for]:
            self._on_unasked(command)
        match turn:
            case _ if self._past is not None:
                yield self._past
            case {"status": "completed"}:
                yield self._items.usage
                yield Finished(self._items.answer) if self._stopped_because is None else self._stopped()
            case {"status": "interrupted"} if self._stopped_because is not None:
                yield self._stopped()
            case {"status": "failed", "error": {"message": str(message)}}:
                yield Failed(kind="crashed", message=message)
            case _:
                yield Failed(
                    kind="crashed", message=f"Its turn ended as {turn.get('status')!r} without giving a reason."
                )

    def _stopped(self) -> Failed:
        return stopped_by_a_person(self._stopped_because or "")

    def _requested(self, method: str, request: RequestId, params: dict[str, Any]) -> Iterator[Event]:
        """Ask people what a request asks; answer what may be done unasked, and refuse what no person can answer."""
        item = str(params.get("itemId"))
        _remember(self._asked_for, item, self._asked_for.get(item, False))
        if any(str(one.request) == str(request) for one in self._open.values()):
            return
        folder = self._opening.folder
        question = question_from(method, request, params, self._at_work, folder)
        if question is not None and all(is_free_request(asked, params, folder) for asked in question.asked):
            self._asked_for[item] = True
            self.outgoing.append({"id": request, "result": {"decision": "accept"}})
            return
        if question is not None:
            for asked in question.asked:
                self._open[asked.id] = question
                yield asked
            return
        if method == "item/permissions/requestApproval":
            self.outgoing.append({"id": request, "result": NOTHING_GRANTED})
        elif method == "mcpServer/elicitation/request":
            self.outgoing.append({"id": request, "result": {"action": "decline", "content": None}})
        else:
            self.outgoing.append({"id": request, "error": NOT_SUPPORTED})
        yield Notice(kind="warning", text=f"It asked for something that bullpen cannot answer: {method}")

    def _on_changed(self, item_id: str, item: Item) -> None:
        """End the turn if it needed a yes for what it has changed."""
        changed = edit_asked("", {}, changes_in(item), self._opening.folder)
        is_refused = self._asked_for.get(item_id) is False
        if is_refused or (item_id not in self._asked_for and not is_free_request(changed, {}, self._opening.folder)):
            self._go_past(" ".join(changed.paths))

    def _on_unasked(self, command: str) -> None:
        """End the turn if it needed a yes for what it has run: a rule in the user's own settings may have let it."""
        if not only_reads(command, self._opening.folder, self._opening.folder):
            self._go_past(command)

    def _go_past(self, what: str) -> None:
        if self._past is None:
            self._past = went_past(what)
            self._interrupt()

    def _taken_back(self, request: object) -> Iterator[Event]:
        for question, asked in list(self._open.items()):
            if asked.request == request:
                del self._open[question]
                yield ApprovalOver(id=question, is_answered=False)

    def _forget(self, asked: Question) -> None:
        for one in asked.asked:
            self._open.pop(one.id, None)


def _would_ask(thread: dict[str, Any]) -> bool:
    """Return whether a thread is as we want it: a company's requirements may have changed that."""
    sandbox = thread.get("sandbox")
    is_safe = isinstance(sandbox, dict) and sandbox.get("type") == SANDBOX_OF_THREAD["got"]
    return is_safe and all(thread.get(name) == value for name, value in ASKS.items())


def _request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"id": number, "method": method, "params": params}


def _remember(items: dict[str, Any], item_id: str, item: Any) -> None:
    """Keep an item; the oldest goes if there are too many."""
    if len(items) >= MOST_ITEMS:
        del items[next(iter(items))]
    items[item_id] = item


def _not_told(text: str) -> Notice:
    return Notice(kind="warning", text=f"It did not get this in this turn: {text}")
