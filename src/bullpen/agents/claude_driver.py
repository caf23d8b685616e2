"""Speaks with Claude Code during a turn, in the control protocol on the stream that it reads and writes.

Words of people are messages with an id of ours. The CLI says of each when it is queued, and when it goes to the model:
with the next result of a tool; or, if there is none, after its own result, in another request of its own. So a result
is the end of the turn only if no words are still on their way.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

from bullpen.agents.claude_questions import Request
from bullpen.agents.claude_rules import ASKED
from bullpen.agents.driver import Opening, stopped_by_a_person
from bullpen.agents.gate import is_free, went_past
from bullpen.agents.spec import StreamParser
from bullpen.approvals import Answer
from bullpen.turn_events import (
    ApprovalOver,
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    ToolFinished,
    ToolStarted,
)

OURS = frozenset(
    {"control_request", "control_cancel_request", "control_response", "command_lifecycle", "result", "system"}
)
"""The types of the records that say more than what the agent does."""
PROBE = "bullpen-are-words-queued"
"""A request of ours. It is answered after the CLI has said of all words before it that they are queued."""
BETWEEN_ANSWERS = "\n\n"


class ClaudeDriver:
    """One turn of Claude Code."""

    def __init__(self, opening: Opening, parser: StreamParser) -> None:
        self.outgoing: list[Any] = [_message(opening.prompt)]
        self._parser = parser
        self._folder = opening.folder
        self._open: dict[str, Request] = {}
        """By the questions of each."""
        self._told: dict[str, bool] = {}
        """The words that are on their way to the model, and whether the CLI has said that they are queued."""
        self._answers: list[str] = []
        """Its answers from before words that came too late for them."""
        self._waits_for_words = False
        """Whether it has given an answer, and words are to go to the model that are not there yet."""
        self._stopped: Failed | None = None
        self._must_ask = opening.permissions == "ask"
        self._granted: set[str] = set()
        """Its calls that got a yes, or need none."""
        self._to_ask: dict[str, str] = {}
        """What its calls do that it has to ask for."""
        self._has_started = False
        self._is_over = False

    def parse(self, record: Any) -> Iterable[Event]:
        """Return the events of a record."""
        if record.get("type") in OURS:
            return self._parse_ours(record)
        if self._must_ask and record.get("type") in ("assistant", "user"):
            return self._watched(record)
        return self._parser.parse(record)

    def _watched(self, record: Any) -> Iterator[Event]:
        """Yield the events of a record, and end the turn if it has done something for which it needed a yes."""
        for event in self._parser.parse(record):
            match event:
                case ToolStarted(id=call, name=name, input=given) if name in ASKED:
                    self._to_ask[call] = str(given.get("command") or given.get("file_path") or name)
                case ToolFinished(id=call, failed=False) if call in self._to_ask and call not in self._granted:
                    if self._stopped is None:
                        self._stopped = went_past(self._to_ask[call])
                        self._request(str(uuid4()), "interrupt")
            yield event

    def answer(self, question: str, answer: Answer) -> None:
        """Answer a question."""
        request = self._open.pop(question, None)
        if request is None:
            return
        if answer.verdict == "stop":
            self._stopped = stopped_by_a_person(answer.reason)
        decision = request.answer(question, answer)
        if decision is not None:
            if decision["behavior"] == "allow":
                self._granted.add(request.call)
            self._close(request.id)
            self._respond(request.id, {"subtype": "success", "response": decision})

    def tell(self, text: str) -> bool:
        """Give the agent words of a person; return whether its model gets them in this turn."""
        if self._is_over:
            return False
        words = str(uuid4())
        self._told[words] = False
        # As it was written: a word with a slash before it could be a command, and one with an @ a file.
        self.outgoing.append({**_message(text), "uuid": words, "client_composed": True})
        return True

    def interrupt(self) -> None:
        """Ask the CLI to stop: it takes its open questions back."""
        self._open.clear()
        self._is_over = True
        self._request(str(uuid4()), "interrupt")

    def _parse_ours(self, record: Any) -> Iterator[Event]:
        match record:
            case {"type": "result"}:
                yield from self._result(record)
            case {"type": "control_request", "request_id": str(request_id), "request": dict(request)}:
                yield from self._requested(request_id, request)
            case {"type": "control_cancel_request", "request_id": str(request_id)}:
                yield from [ApprovalOver(id=question, is_answered=False) for question in self._close(request_id)]
            case {"type": "command_lifecycle", "command_uuid": str(words), "state": str(state)}:
                yield from self._words_are(words, state)
            case {"type": "control_response", "response": {"request_id": str(request_id)}}:
                if request_id == PROBE:
                    # It says nothing of words: an older release. They are with the model, or never will be.
                    self._told = {words: True for words, is_queued in self._told.items() if is_queued}
                    yield from self._ended_without_words()
            case {"type": "system", "subtype": "init"} if self._has_started:
                pass  # it begins again, with words that came after its answer
            case _:
                for event in self._parser.parse(record):
                    self._has_started |= isinstance(event, Started)
                    yield event

    def _requested(self, request_id: str, request: dict[str, Any]) -> Iterator[Event]:
        match request:
            case {"subtype": "can_use_tool", "tool_name": str(), "input": dict()}:
                if self._is_over or any(one.id == request_id for one in self._open.values()):
                    return
                asking = Request(request_id, request, self._folder)
                if all(is_free(question, self._folder) for question in asking.asked):
                    self._granted.add(asking.call)
                    self._respond(request_id, {"subtype": "success", "response": asking.granted})
                    return
                self._open |= {question.id: asking for question in asking.asked}
                yield from asking.asked
            case _:
                error = f"bullpen does not know the request {request.get('subtype')}"
                self._respond(request_id, {"subtype": "error", "error": error})
                yield Notice(kind="unknown", text=str(request))

    def _words_are(self, words: str, state: str) -> Iterator[Event]:
        if words not in self._told:
            return
        if state == "queued":
            self._told[words] = True
            return
        del self._told[words]
        if state in ("started", "completed"):
            self._waits_for_words = False
            return
        yield Notice(kind="warning", text=f"Words to the agent did not reach its model: they were {state}.")
        yield from self._ended_without_words()

    def _result(self, record: Any) -> Iterator[Event]:
        if self._is_over:
            return
        for event in self._parser.parse(record):
            match event:
                case Finished() | Failed() if self._stopped is not None:
                    # However it ends after that: a person has ended it.
                    self._is_over = True
                    yield self._stopped
                case Finished(text=text) if self._told:
                    self._answers.append(text)
                    self._waits_for_words = True
                    if not all(self._told.values()):
                        self._request(PROBE, "mcp_status")
                    if text:
                        yield TextDelta(BETWEEN_ANSWERS)
                case Finished(text=text):
                    yield self._finished(text)
                case Failed():
                    self._is_over = True
                    yield event
                case _:
                    yield event

    def _ended_without_words(self) -> Iterator[Event]:
        """Yield the end of the turn if it has waited for words that do not come."""
        if self._waits_for_words and not self._told:
            yield self._finished(self._answers.pop())

    def _finished(self, text: str) -> Finished:
        self._is_over = True
        return Finished(BETWEEN_ANSWERS.join(answer for answer in (*self._answers, text) if answer))

    def _close(self, request_id: str) -> list[str]:
        """Return the questions of a request that nobody has answered, and forget them."""
        questions = [question for question, request in self._open.items() if request.id == request_id]
        for question in questions:
            del self._open[question]
        return questions

    def _request(self, request_id: str, subtype: str) -> None:
        self.outgoing.append({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype}})

    def _respond(self, request_id: str, response: dict[str, Any]) -> None:
        self.outgoing.append({"type": "control_response", "response": {"request_id": request_id, **response}})


def _message(text: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}}
