"""A turn in the format of `claude -p --output-format stream-json --verbose --include-partial-messages`."""

import os
from collections.abc import Iterable, Iterator

from bullpen.testing.agent import claude_shapes as shapes
from bullpen.testing.agent.quick_json import from_json, to_json
from bullpen.testing.agent.renderer import Record, Renderer, ToolCall, new_uuid, pieces, timestamp
from bullpen.testing.agent.streams import STDIN, read_line

# Type checkers treat this name as true. Importing it from typing would cost more than the rest of the program.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from bullpen.testing.agent.claude_session import ClaudeSession

SIGNATURE = "c2NyaXB0ZWQ="
DEFAULT_RETRIES = 10


class ClaudeRenderer(Renderer):
    """Every content block is written twice: in deltas, then whole. Blocks form one message until a tool returns."""

    version = f"{shapes.VERSION} (Claude Code)"
    home_variable = "CLAUDE_CONFIG_DIR"
    sigterm_exit = 143

    def __init__(self) -> None:
        super().__init__()
        self._new_id = new_uuid()
        self._message_id = ""
        self._blocks = 0
        self._last_texts: list[str] = []
        self._denials: list[Record] = []
        self._todos: list[Record] = []

    @property
    def _session_id(self) -> str:
        return self._new_id if self.session is None else self.session.id

    def refuse(self, reason: str) -> None:
        """Say that a session is not there in a result, and what else is wrong without one."""
        if not reason.startswith("Error: "):
            self._started = True
            zeros = {"num_turns": 0, "total_cost_usd": 0, "usage": shapes.usage(), "modelUsage": {}}
            self._result("error_during_execution", is_error=True, stop_reason=None, errors=[reason], **zeros)
        super().refuse(reason)

    def session_in(self, home: str, arguments: list[str]) -> "ClaudeSession":
        """Return the session that the arguments ask for."""
        from bullpen.testing.agent.claude_session import ClaudeSession

        return ClaudeSession(home, arguments)

    def opening(self) -> list[Record]:
        """Return the line with the session."""
        return [shapes.session(self._session_id)]

    def closing(self) -> None:
        """Write the result. It repeats the text since the last tool, not the whole answer."""
        self._close_message("end_turn")
        elapsed = self.elapsed_ms()
        self._result(
            "success",
            is_error=False,
            api_error_status=None,
            ttft_ms=elapsed,
            ttft_stream_ms=elapsed,
            time_to_request_ms=elapsed,
            first_content_frame_ms=elapsed,
            result="".join(self._last_texts),
            stop_reason="end_turn",
        )

    def interrupted(self) -> int:
        """Report an error, with exit status 0."""
        self._result(
            "error_during_execution",
            is_error=True,
            stop_reason=None,
            terminal_reason="aborted_streaming",
            errors=["Error: Request was aborted."],
        )
        return 0

    def wait_for_end_of_input(self) -> None:
        """Hear further messages as long as some may come."""
        while self.reads_messages and (lines := self.unread or read_line(STDIN)):
            self.unread = b""
            for line in lines.splitlines():
                self._hear(from_json(line.decode(errors="replace")))

    def ask(self, command: str) -> int | None:
        """Ask before a command, wait, and say what the answer was. Nothing is run."""
        question = new_uuid()
        wanted: Record = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}}
        self._emit("control_request", request_id=question, request={**wanted, "tool_use_id": new_uuid()})
        while lines := self.unread or read_line(STDIN):
            self.unread = b""
            for line in lines.splitlines():
                match from_json(line.decode(errors="replace")):
                    case {"type": "control_response", "response": {"request_id": str(to), "response": dict(answer)}}:
                        if to == question:
                            self.say(_heard(answer))
                            return None
                    case other:
                        self._hear(other)
        return 1

    def _hear(self, message: object) -> None:
        """Answer words of people, as the CLI does if they come too late for its answer, and any request."""
        match message:
            case {"type": "user", "uuid": str(words), "message": {"content": str(text)}}:
                for state in ("queued", "started"):
                    self._emit("command_lifecycle", command_uuid=words, state=state)
                self.say(f"I heard: {text}")
                self.closing()
                self._emit("command_lifecycle", command_uuid=words, state="completed")
            case {"type": "control_request", "request_id": str(request_id)}:
                self._emit("control_response", response={"subtype": "success", "request_id": request_id})

    def say(self, text: str, *, chunk: int = 0, delay: float = 0.0) -> None:
        """Write a text block."""
        deltas: Iterator[Record] = ({"type": "text_delta", "text": piece} for piece in pieces(text, chunk, delay))
        self._block({"type": "text", "text": ""}, deltas, {"text": text})
        self.remember(text)
        self._last_texts.append(text)

    def think(self, text: str) -> None:
        """Write a thinking block."""
        empty: Record = {"type": "thinking", "thinking": "", "signature": ""}
        content: Record = {"thinking": text, "signature": SIGNATURE}
        self._block(empty, self._thinking(text), content, **shapes.THINKING, thinking_duration_ms=1)

    def use(self, call: ToolCall) -> None:
        """Write a tool_use block and its tool_result."""
        tool_id = self._call(call.name, call.input)
        call.work()
        if call.denied:
            self._denials.append({"tool_name": call.name, "tool_use_id": tool_id, "tool_input": call.input})
            self._system("permission_denied", tool_name=call.name, tool_use_id=tool_id, message=call.output)
        if call.failed:
            self._return(tool_id, call.output, f"Error: {call.output}", is_error=True, denied=call.denied)
        else:
            flags = {"interrupted": False, "isImage": False, "noOutputExpected": False}
            self._return(tool_id, call.output, {"stdout": call.output, "stderr": "", **flags})

    def todo(self, items: list[Record]) -> None:
        """Write the plan as a call of TodoWrite."""
        self.tool_calls += 1
        before, self._todos = self._todos, [shapes.todo(item) for item in items]
        tool_id = self._call("TodoWrite", {"todos": self._todos})
        self._return(tool_id, "Todos have been modified.", {"oldTodos": before, "newTodos": self._todos})

    def retry(self, cause: int | str, *, message: str = "", of: int = 0) -> None:  # noqa: ARG002 - not written
        """Write which HTTP status caused a retry; null if there was no connection."""
        self.retries += 1
        self._system(
            "api_retry",
            attempt=self.retries,
            max_retries=of or DEFAULT_RETRIES,
            retry_delay_ms=500.0 * 2 ** (self.retries - 1),
            error_status=cause if isinstance(cause, int) else None,
            error=shapes.error_name(cause),
        )

    def error(self, status: int, *, message: str = "scripted error") -> int:
        """Report a "success" that is an error, after a message that no model wrote."""
        text = shapes.error_text(status, message)
        synthetic = shapes.synthetic_message(text)
        kind = {"api_error_status": status, "api_error_type": shapes.API_ERROR_TYPES.get(status, "api_error")}
        name = shapes.error_name(status)
        self._emit("assistant", message=synthetic, timestamp=timestamp(), error=name, is_api_error_message=True, **kind)
        self._result(
            "success",
            is_error=True,
            result=text,
            stop_reason="stop_sequence",
            terminal_reason="api_error",
            total_cost_usd=0,
            usage=shapes.usage(),
            modelUsage={},
            model_usage_since_last_result={},
            **kind,
        )
        return 1

    def max_turns(self) -> int:
        """Report the limit, without the text so far."""
        self._result(
            "error_max_turns",
            is_error=True,
            stop_reason="tool_use",
            terminal_reason="max_turns",
            errors=[f"Reached maximum number of turns ({max(1, self.tool_calls)})"],
        )
        return 1

    def _thinking(self, text: str) -> Iterator[Record]:
        self._system("thinking_tokens", estimated_tokens=1, estimated_tokens_delta=1)
        yield {"type": "thinking_delta", "thinking": text}
        self._system("thinking_tokens", estimated_tokens=3, estimated_tokens_delta=2)
        yield {"type": "signature_delta", "signature": SIGNATURE}

    def _call(self, name: str, arguments: Record) -> str:
        tool_id = f"toolu_{os.urandom(10).hex()}"
        empty: Record = {"type": "tool_use", "id": tool_id, "name": name, "input": {}}
        self._block(empty, [{"type": "input_json_delta", "partial_json": to_json(arguments)}], {"input": arguments})
        self._close_message("tool_use")
        return tool_id

    def _return(
        self, tool_id: str, content: str, result: object, *, is_error: bool = False, denied: bool = False
    ) -> None:
        block = {"tool_use_id": tool_id, "type": "tool_result", "content": content, "is_error": is_error}
        message = {"role": "user", "content": [block]}
        meta = [shapes.decision(tool_id, denied=denied)]
        self._emit("user", message=message, timestamp=timestamp(), tool_use_result=result, tool_result_meta=meta)

    def _block(self, empty: Record, deltas: Iterable[Record], content: Record, **fields: object) -> None:
        self._open_message()
        index, self._blocks = self._blocks, self._blocks + 1
        self._stream({"type": "content_block_start", "index": index, "content_block": empty}, **_display(empty))
        for delta in deltas:
            self._stream({"type": "content_block_delta", "index": index, "delta": delta}, **_display(delta))
        message = {**self._message([{**empty, **content}]), "context_management": None}
        self._emit("assistant", message=message, timestamp=timestamp(), **fields)
        self._stream({"type": "content_block_stop", "index": index})

    def _open_message(self) -> None:
        if not self._message_id:
            self._message_id = f"msg_{os.urandom(12).hex()}"
            self._blocks = 0
            self._last_texts = []
            self._system("status", status="requesting")
            event: Record = {"type": "message_start", "message": self._message([])}
            self._stream(event, ttft_ms=self.elapsed_ms(), **shapes.THINKING)

    def _close_message(self, stop_reason: str) -> None:
        if self._message_id:
            delta = {"stop_reason": stop_reason, "stop_sequence": None}
            self._stream({"type": "message_delta", "delta": delta, "usage": {"output_tokens": self.tokens("output")}})
            self._stream({"type": "message_stop"})
            self._message_id = ""

    def _message(self, content: list[Record]) -> Record:
        tokens, cached = self.tokens("input"), self.tokens("cached")
        return shapes.message(self._message_id, content, input_tokens=tokens, cached=cached)

    def _result(self, subtype: str, **fields: object) -> None:
        tokens = self.tokens("input"), self.tokens("output"), self.tokens("cached")
        used = shapes.model_usage(*tokens, self.cost)
        usual: Record = {
            "duration_ms": self.elapsed_ms(),
            "duration_api_ms": self.elapsed_ms(),
            "num_turns": 1 + self.tool_calls,
            "session_id": self._session_id,
            "total_cost_usd": self.cost,
            "usage": shapes.usage(*tokens),
            "modelUsage": used,
            "model_usage_since_last_result": used,
            "permission_denials": self._denials,
            "terminal_reason": "completed",
            "subagent_stats": shapes.subagents(),
            "queued_turn_count": 0,
            "result_index": 0,
            "safety_stops": 0,
            **shapes.NOT_FAST,
            "uuid": new_uuid(),
        }
        self.emit({"type": "result", "subtype": subtype, **usual, **fields})

    def _stream(self, event: Record, **fields: object) -> None:
        self._emit("stream_event", event=event, api_message_id=self._message_id, **fields)

    def _system(self, subtype: str, **fields: object) -> None:
        ids = {"session_id": self._session_id, "uuid": new_uuid()}
        self.emit({"type": "system", "subtype": subtype, **fields, **ids})

    def _emit(self, kind: str, **fields: object) -> None:
        ids = {"parent_tool_use_id": None, "session_id": self._session_id, "uuid": new_uuid()}
        self.emit({"type": kind, **fields, **ids})


def _heard(answer: Record) -> str:
    """Return what the agent says after an answer."""
    match answer:
        case {"behavior": "allow", "updatedInput": {"command": str(command)}}:
            return f"Allowed: {command}. "
        case {"message": str(reason)}:
            return f"Not allowed: {reason} "
        case _:
            return "Not allowed. "


def _display(content: Record) -> Record:
    """Return what is said besides of a block or a part of it."""
    return shapes.THINKING if "thinking" in content else {}
