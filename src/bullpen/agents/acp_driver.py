"""The Agent Client Protocol: JSON-RPC in lines, with a session, prompts, and questions whether a tool may run."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from bullpen.acp_protocol import METHOD_NOT_FOUND, PROTOCOL_VERSION
from bullpen.agents.acp_grants import Asked, Grants, has_text, is_done
from bullpen.agents.acp_records import Counts, ToolCall, offered, plan
from bullpen.agents.acp_session import Request, choose_mode, choose_model, model_of, modes_of, no_mode
from bullpen.agents.acp_words import (
    ENDINGS,
    MOST_CHARACTERS,
    Dialect,
    Question,
    Refusal,
    chosen,
    failure_of,
    introduction,
    other_version,
)
from bullpen.agents.driver import Opening, stopped_by_a_person
from bullpen.agents.gate import is_free, went_past
from bullpen.agents.tool_server import SERVER, TOOL_NAMES
from bullpen.agents.usual_edits import is_usual_edit
from bullpen.approvals import Answer
from bullpen.turn_events import (
    ApprovalAsked,
    ApprovalOver,
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
)

MOST_FOLLOW_UPS = 20
"""Prompts of ours in one turn, with words of people."""
MOST_REPLIES = 10_000
"""Requests of an agent that are answered in one turn."""
MOST_CALLS = 1000
"""Calls that are open at once."""
ONLY = {
    "read-only": 'This member may only read (permissions = "read-only").',
    "edit": 'This member may read, and change files in its folder, but nothing else (permissions = "edit").',
}
"""Why a question is refused unasked, by the member's permissions."""

BETWEEN_ANSWERS = "\n\n"
NOT_ONCE = "You offer no answer that holds only once."
CONTINUE = "(bullpen: Continue without it, or say what you need.)"

Answered = Callable[[dict[str, Any]], Iterator[Event]]


class AcpDriver:
    """One turn of an agent: a handshake, a session, a mode, a prompt, and what follows from refusals."""

    def __init__(self, opening: Opening, dialect: Dialect) -> None:
        self.outgoing: list[Any] = []
        self._opening = opening
        self._dialect = dialect
        self._waiting: dict[int, Answered] = {}
        self._requests = 0
        self._replies = 0
        self._session = ""
        self._is_begun = True
        """Whether its session is there, or will be a new one."""
        self._mode = ""
        self._set_mode: Request = ("", {})
        self._version: str | None = None
        self._has_prompted = False
        self._is_prompting = False
        self._is_stopped = False
        self._stopped_because = ""
        self._judges_itself = False
        """Whether it is a team of bullpen, with the same gate."""
        self._counts = Counts(adds_up=dialect.usage_adds_up)
        self._answer = bytearray()
        self._before_tools = bytearray()
        self._calls: dict[str, ToolCall] = {}
        self._questions: dict[str, Question] = {}
        self._unplaced: dict[str, tuple[int | str, dict[str, Any]]] = {}
        """Requests that are not questions yet, by their calls: it has not told where their commands are to run."""
        self._asked = 0
        self._grants = Grants(opening.folder)
        self._refusals: list[Refusal] = []
        self._told: list[str] = []
        self._follow_ups = 0
        self._is_told_why = False
        """Whether it has been prompted once more since something was refused."""
        self._request("initialize", introduction(), self._on_initialized)

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield the events of one message of the agent."""
        match record:
            case {"method": "session/request_permission", "id": int() | str() as number, "params": dict(params)}:
                yield from self._on_permission(number, params)
            case {"method": "session/update", "params": {"sessionId": session, "update": dict(update)}}:
                # What comes before is the history of a session that was loaded.
                if self._has_prompted and session == self._session:
                    yield from self._on_update(update)
                elif not isinstance(session, str):
                    yield Notice(kind="unknown", text=str(record))
            case {"method": "session/request_permission", "id": int() | str() as number}:
                yield Notice(kind="unknown", text=str(record))
                yield from self._on_other_request("session/request_permission", number)
            case {"method": "session/update" | "session/request_permission"}:
                yield Notice(kind="unknown", text=str(record))
            case {"method": "$/cancel_request", "params": {"requestId": number}}:
                yield from self._on_taken_back(number)
            case {"method": str(method), "id": int() | str() as number}:
                yield from self._on_other_request(method, number)
            case {"method": str()}:
                pass  # what a vendor adds may be ignored
            case {"id": int(number), "result": dict(result)} if number in self._waiting:
                yield from self._waiting.pop(number)(result)
            case {"id": int(number), "result": None} if number in self._waiting:
                yield from self._waiting.pop(number)({})
            case {"id": int(number), "error": dict(error)} if number in self._waiting:
                if self._is_stopped:
                    yield from self._ending("cancelled")
                else:
                    yield self._over(failure_of(error, is_loading=not self._is_begun))
            case {"id": _, "result": _} | {"id": _, "error": _}:
                pass  # an answer to nothing that was asked, or a second one
            case _:
                yield Notice(kind="unknown", text=str(record))

    def answer(self, question: str, answer: Answer) -> None:
        """Answer a question, if it is open: once, or not at all."""
        asked = self._questions.pop(question, None)
        if asked is None:
            return
        if asked.choices is not None and answer.verdict == "yes":
            self._choose_words(asked, asked.choices, answer.text)
            return
        # A changed command cannot be passed on, and the one that was asked for must not run.
        is_yes = answer.verdict == "yes" and not answer.command and "allow_once" in asked.options
        if is_yes:
            self._grants.grant(asked.asked)
        else:
            self._grants.refuse(asked.asked)
        self._reply(asked.number, chosen(asked.options.get("allow_once" if is_yes else "reject_once")))
        if answer.verdict == "stop":
            self._is_stopped, self._stopped_because = True, answer.reason
            self._cancel()
        elif not is_yes and len(self._refusals) < MOST_FOLLOW_UPS:
            reason = f"Run this instead: {answer.command}" if answer.command else answer.reason
            self._refusals.append(Refusal(asked.about, reason or (NOT_ONCE if answer.verdict == "yes" else "")))

    def _choose_words(self, asked: Question, choices: dict[str, str], text: str) -> None:
        """Answer with what a person chose; other words follow when the prompt has ended."""
        if text and text not in choices:
            self._told.append(f"(bullpen: {asked.about[:MOST_CHARACTERS]!r} is answered:) {text}")
        self._reply(asked.number, chosen(choices.get(text, asked.options.get("reject_once"))))

    def tell(self, text: str) -> bool:
        """Keep words until the agent asks for them, or else its prompt has ended; False if it never asks."""
        if not self._dialect.words_request or not self._is_prompting or self._is_stopped:
            return False
        self._told.append(text)
        return True

    def interrupt(self) -> None:
        """Answer every open question as cancelled, and cancel the prompt."""
        self._is_stopped = True
        self._cancel()

    def _cancel(self) -> None:
        unplaced = [number for number, _ in self._unplaced.values()]
        for number in [*(asked.number for asked in self._questions.values()), *unplaced]:
            self._reply(number, chosen(None))
        self._questions.clear()
        self._unplaced.clear()
        if self._is_prompting:
            self._send({"method": "session/cancel", "params": {"sessionId": self._session}})

    def _send(self, message: dict[str, Any]) -> None:
        self.outgoing.append({"jsonrpc": "2.0", **message})

    def _request(self, method: str, params: dict[str, Any], then: Answered) -> None:
        self._requests += 1
        self._waiting[self._requests] = then
        self._send({"id": self._requests, "method": method, "params": params})

    def _reply(self, number: int | str, result: dict[str, Any]) -> None:
        self._send({"id": number, "result": result})

    def _over(self, verdict: Finished | Failed) -> Finished | Failed:
        self._is_prompting = False
        self._waiting.clear()
        return verdict

    # The beginning: what it is, its session, its mode.

    def _on_initialized(self, result: dict[str, Any]) -> Iterator[Event]:
        if result.get("protocolVersion") != PROTOCOL_VERSION:
            message = other_version(result.get("protocolVersion"))
            yield self._over(Failed(kind="protocol_broken", message=message))
            return
        match result.get("agentInfo"):
            case {"version": str(version), **about}:
                self._version = version
                self._judges_itself = about.get("name") == "bullpen"
        given: dict[str, Any] = {"cwd": self._opening.folder, "mcpServers": self._servers}
        session = self._opening.session
        if session is not None and session.origin == "resumed":
            self._session, self._is_begun = session.id, False
            self._request("session/load", {"sessionId": session.id, **given}, self._on_session)
        else:
            self._request("session/new", given, self._on_session)

    @property
    def _servers(self) -> list[dict[str, Any]]:
        if not self._opening.server or not self._dialect.takes_servers:
            return []
        program, *arguments = self._opening.server
        return [{"name": SERVER, "command": program, "args": arguments, "env": []}]

    def _on_session(self, result: dict[str, Any]) -> Iterator[Event]:
        # The id of a session that is loaded is known, and need not be told again.
        session = result.get("sessionId", self._session)
        if not isinstance(session, str) or not session:
            yield self._over(Failed(kind="protocol_broken", message="It did not say which session it began."))
            return
        self._session, self._is_begun = session, True
        yield Started(session_id=session, model=model_of(result), cli_version=self._version)
        choices: list[Request] = []
        offers = modes_of(result)
        mode = next((mode for mode in self._dialect.modes if mode in offers), "")
        if mode:
            self._mode, self._set_mode = mode, choose_mode(result, session, mode)
            choices.append(self._set_mode)
        elif self._dialect.needs_mode:
            yield self._over(Failed(kind="protocol_broken", message=no_mode(offers)))
            return
        elif offers:
            yield Notice(kind="warning", text=no_mode(offers))
        if self._dialect.sets_model and (model := self._opening.model):
            if choice := choose_model(result, session, model):
                choices.append(choice)
            else:
                yield Notice(kind="warning", text=f"It lets nobody choose its model, so it is not {model}")
        yield from self._choose(choices)

    def _choose(self, choices: list[Request]) -> Iterator[Event]:
        """Make one choice after the other, and then begin."""
        if not choices:
            yield from self._prompt(self._opening.prompt)
            return
        (method, given), *others = choices
        self._request(method, given, lambda _: self._choose(others))

    def _prompt(self, text: str) -> Iterator[Event]:
        """Give the agent something to do."""
        self._has_prompted = self._is_prompting = True
        given = {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]}
        self._request("session/prompt", given, self._on_prompt_ended)
        yield from ()

    # What it does, and says.

    def _on_update(self, update: dict[str, Any]) -> Iterator[Event]:
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
                yield from self._on_text(text, update.get("_meta"))
            case {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": str(text)}}:
                yield Thinking(text)
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(call)}:
                yield from self._on_call(call, update)
            case {"sessionUpdate": "plan", "entries": list(entries)}:
                yield plan(entries)
            case {"sessionUpdate": "usage_update"}:
                self._counts.learn(update)
            case {"sessionUpdate": "current_mode_update", "currentModeId": str(mode)}:
                yield from self._on_mode(mode)
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}}:
                yield Notice(kind="unknown", text=str(update))
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": str()}}:
                pass  # a picture, a sound, a file
            case {
                "sessionUpdate": "agent_thought_chunk"
                | "user_message_chunk"
                | "available_commands_update"
                | "config_option_update"
                | "session_info_update"
            }:
                pass  # our own prompt, what an editor would show
            case _:
                yield Notice(kind="unknown", text=str(update))

    def _on_text(self, text: str, meta: object) -> Iterator[Event]:
        meta = meta if isinstance(meta, dict) else {}
        self._counts.add_request(meta.get("usage"))
        # A subagent's text is for the agent, not for the team.
        if text and not self._is_of_program(text) and not meta.get("parentToolCallId"):
            self._answer += text.encode(errors="replace")
            yield TextDelta(text)

    def _is_of_program(self, text: str) -> bool:
        return bool(self._dialect.own_words) and re.fullmatch(self._dialect.own_words, text) is not None

    def _on_call(self, number: str, update: dict[str, Any]) -> Iterator[Event]:
        if update.get("sessionUpdate") == "tool_call":
            self._grants.begin(number)
        call = self._call(number)
        call.learn(update)
        if call.is_placed and (request := self._unplaced.pop(number, None)):
            yield from self._on_permission(*request)
        status = update.get("status")
        # While it is pending, its input may not be whole yet.
        if not call.is_started and status in ("in_progress", "completed", "failed"):
            yield from self._start(call)
        call.has_output |= has_text(update)
        has_run = is_done(update) or (call.has_output and self._grants.is_refused(number))
        if status in ("completed", "failed"):
            self._calls.pop(number, None)
            yield call.finished(failed=status == "failed")
        if has_run:
            yield from self._on_done(call)
        if status in ("completed", "failed"):
            self._grants.end(number)

    def _on_done(self, call: ToolCall) -> Iterator[Event]:
        """End the turn, and its program, if what it has done needed a yes, and is not what got one."""
        must_ask = self._opening.permissions == "ask" and not self._judges_itself
        if self._is_prompting and must_ask and (what := self._unasked_deed(call)):
            self._cancel()
            yield self._over(went_past(what))

    def _unasked_deed(self, call: ToolCall) -> str:
        """Return what a call has done without a yes; empty if nothing."""
        deed = call.deed(self._opening.folder)
        if deed is None:
            return call.title if self._grants.is_refused_command(call.title) else ""
        is_allowed = self._grants.covers(call, deed) or is_free(deed, self._opening.folder)
        return "" if is_allowed else deed.command or call.title or deed.tool or call.id

    def _call(self, number: str) -> ToolCall:
        """Return what is known of a call."""
        name = number.partition("__")[0] if self._dialect.ids_name_tools else ""
        call = self._calls.get(number) or ToolCall(
            number, name=name, titles_are_commands=self._dialect.titles_are_commands
        )
        if len(self._calls) < MOST_CALLS:
            self._calls[number] = call
        return call

    def _start(self, call: ToolCall) -> Iterator[Event]:
        self._before_tools = self._answer or self._before_tools
        self._answer = bytearray()
        yield call.started()

    def _on_mode(self, mode: str) -> Iterator[Event]:
        """Return to the mode in which people are asked, if it was left."""
        if not self._mode or mode == self._mode:
            return
        yield Notice(kind="warning", text=f"It went into its mode {mode}, and was sent back to {self._mode}")
        if self._replies < MOST_REPLIES:
            self._replies += 1
            self._request(*self._set_mode, lambda _: iter(()))

    # What it asks.

    def _on_permission(self, number: int | str, params: dict[str, Any]) -> Iterator[Event]:
        if any(asked.number == number for asked in self._questions.values()):
            return
        if not self._counts_as_reply():
            yield self._over(_too_many())
            return
        told = params.get("toolCall")
        if not isinstance(told, dict):
            yield Notice(kind="unknown", text=str(params))
        if not self._is_prompting or self._is_stopped or not isinstance(told, dict):
            self._reply(number, chosen(None))
            return
        number_of_call = str(told.get("toolCallId"))
        self._grants.begin(number_of_call)
        call = self._call(number_of_call)
        call.learn(told)
        if self._dialect.places_apart and call.command and not call.is_placed:
            self._unplaced[call.id] = number, params
            return
        if not call.is_started:
            yield from self._start(call)
        self._asked += 1
        # Not the agent's own number: it could use one again, and an old answer would count.
        question = call.question(f"q{self._asked}", self._opening.folder)
        options = dict(reversed([*offered(params.get("options"))]))
        about = question.command or call.title or question.tool
        choices = call.choices(params.get("options"))
        if choices is not None:
            question = replace(question, kind="question", choices=tuple(choices), why=question.why or about)
        asked = Asked(call.id, question, call.written)
        self._questions[question.id] = Question(number, options, about, asked, choices)
        unasked = self._unasked(question)
        if unasked is None:
            yield question
        else:
            self.answer(question.id, unasked)

    def _unasked(self, question: ApprovalAsked) -> Answer | None:
        """Return the answer that the member's permissions give; None: people are asked."""
        permissions, prefix = self._opening.permissions, self._dialect.own_tools
        own = [f"{prefix}{name}" for name in TOOL_NAMES] if self._opening.server and prefix else []
        if question.kind == "tool" and question.tool in own:
            return Answer(verdict="yes")
        if permissions == "full":
            return None if question.kind == "question" else Answer(verdict="yes")
        if permissions == "ask":
            return Answer(verdict="yes") if is_free(question, self._opening.folder) else None
        if permissions == "edit" and is_usual_edit(question, self._opening.folder):
            return Answer(verdict="yes")
        return Answer(verdict="no", reason=ONLY[permissions])

    def _on_taken_back(self, number: object) -> Iterator[Event]:
        for call, (request, _) in list(self._unplaced.items()):
            if request == number:
                del self._unplaced[call]
                self._reply(request, chosen(None))
        for question, asked in list(self._questions.items()):
            if asked.number == number:
                del self._questions[question]
                self._reply(asked.number, chosen(None))
                yield ApprovalOver(id=question, is_answered=False)

    def _on_other_request(self, method: str, number: int | str) -> Iterator[Event]:
        if not self._counts_as_reply():
            yield self._over(_too_many())
        elif method == self._dialect.words_request:
            words, self._told = self._told, []
            self._reply(number, {"messages": words, "hasQueuedPrompt": False})
        else:
            self._send({"id": number, "error": {"code": METHOD_NOT_FOUND, "message": f"There is no method {method}."}})

    def _counts_as_reply(self) -> bool:
        self._replies += 1
        return self._replies <= MOST_REPLIES

    # The end.

    def _on_prompt_ended(self, result: dict[str, Any]) -> Iterator[Event]:
        # A text before a question may be what it is about; if there was none, it was an output.
        asked = {question.asked.call for question in self._questions.values()}
        for call in self._calls.values():
            if call.has_output and call.id not in asked and not self._is_stopped:
                yield from self._on_done(call)
        if not self._is_prompting:
            return
        self._is_prompting = False
        self._counts.add_prompt(result)
        for call in self._calls.values():
            if call.is_started:
                call.text = ""
                yield call.finished(failed=True)
        self._calls.clear()
        for _, params in self._unplaced.values():
            # It has not told where its command was to run, or not in words that are known.
            yield Notice(kind="unknown", text=str(params))
        self._unplaced.clear()
        for question in list(self._questions):
            yield ApprovalOver(id=question, is_answered=False)
        self._questions.clear()
        reason = result.get("stopReason")
        begins = self._dialect.errors_begin_with.encode()
        if begins and "usage" not in result and self._answer.startswith(begins):
            message = self._answer.removeprefix(begins).decode(errors="replace")
            yield self._over(Failed(kind="crashed", message=message))
            return
        has_answered = bool(self._answer)
        if words := self._next_words(reason):
            if has_answered:
                yield TextDelta(BETWEEN_ANSWERS)
            yield from self._prompt(words)
            return
        if (used := self._counts.usage).output_tokens:
            yield used
        yield from self._ending(reason)

    def _next_words(self, reason: object) -> str:
        """Return what the agent must hear before its turn ends: words of people, and why something was refused.

        Of that it hears once, and only if it has ended without an answer: a prompt after its answer would bring another
        one, which is about the refusal alone.
        """
        refusals = [] if self._is_told_why or self._answer.strip() else self._refusals
        told, self._refusals, self._told = self._told, [], []
        is_usual = reason in ("end_turn", "cancelled") and not self._is_stopped
        if not is_usual or not (refusals or told) or self._follow_ups >= MOST_FOLLOW_UPS:
            return ""
        self._follow_ups += 1
        self._is_told_why |= bool(refusals)
        self._before_tools = self._answer or self._before_tools
        self._answer = bytearray()
        continued = [CONTINUE] if refusals else []
        return "\n".join([*(refusal.sentence for refusal in refusals), *continued, *told])

    def _ending(self, reason: object) -> Iterator[Event]:
        text = (self._answer or self._before_tools).decode(errors="replace")
        match reason:
            case _ if self._is_stopped:
                yield self._over(stopped_by_a_person(self._stopped_because))
            case "end_turn":
                yield self._over(Finished(text))
            case "cancelled" if self._follow_ups:
                yield self._over(Finished(text))
            case "max_tokens" if text:
                yield Notice(kind="warning", text="The answer is cut off: it reached its limit of tokens")
                yield self._over(Finished(text))
            case _:
                kind, message = ENDINGS.get(str(reason), ("protocol_broken", f"It ended with {reason!r}."))
                yield self._over(Failed(kind=kind, message=message))


def _too_many() -> Failed:
    return Failed(kind="protocol_broken", message=f"It asked more than {MOST_REPLIES:,} questions and was stopped.")
