"""A turn in the format of `codex exec --json`: whole items, no pieces."""

from bullpen.testing.agent.renderer import Record, Renderer, ToolCall, new_uuid, pieces

# Type checkers treat this name as true. Importing it from typing would cost more than the rest of the program.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from bullpen.testing.agent.codex_session import CodexSession

URL = "https://api.openai.com/v1/responses"
DEFAULT_RETRIES = 5

REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
CHANGE_KINDS = {"Write": "add", "Edit": "update"}


class CodexRenderer(Renderer):
    """Items are numbered within the turn; the plan is one item until the end of the turn."""

    version = "codex-cli 0.169.0"
    home_variable = "CODEX_HOME"

    def __init__(self) -> None:
        super().__init__()
        self._items = 0
        self._plan: Record = {}

    def session_in(self, home: str, arguments: list[str]) -> "CodexSession":
        """Return the session that the arguments ask for."""
        from bullpen.testing.agent.codex_session import CodexSession

        return CodexSession(home, arguments)

    def opening(self) -> list[Record]:
        """Return the lines that start the thread and the turn."""
        thread_id = new_uuid() if self.session is None else self.session.id
        return [{"type": "thread.started", "thread_id": thread_id}, {"type": "turn.started"}]

    def closing(self) -> None:
        """Complete the plan and the turn."""
        self._close_plan()
        usage = {
            "input_tokens": self.tokens("input"),
            "cached_input_tokens": self.tokens("cached"),
            "cache_write_input_tokens": 0,
            "output_tokens": self.tokens("output"),
            "reasoning_output_tokens": self.tokens("reasoning"),
        }
        self.emit({"type": "turn.completed", "usage": usage})

    def interrupted(self) -> int:
        """Stop in the middle, without any output."""
        return 1

    def say(self, text: str, *, chunk: int = 0, delay: float = 0.0) -> None:
        """Write a whole message, after the time that its pieces would have taken."""
        self.start()
        for _ in pieces(text, chunk, delay):
            pass
        self.remember(text)
        self._item("completed", self._new_item("agent_message", text=text))

    def think(self, text: str) -> None:
        """Write a whole thought."""
        self._item("completed", self._new_item("reasoning", text=text))

    def use(self, call: ToolCall) -> None:
        """Write a file change for Edit and Write, else a command; first as started, then as completed."""
        status = "failed" if call.failed else "completed"
        if call.name in CHANGE_KINDS:
            change = {"path": call.input.get("file_path", ""), "kind": CHANGE_KINDS[call.name]}
            item = self._new_item("file_change", changes=[change], status="in_progress")
            outcome: Record = {"status": status}
        else:
            unknown = {"aggregated_output": "", "exit_code": None}
            item = self._new_item("command_execution", command=_command(call), **unknown, status="in_progress")
            outcome = {"aggregated_output": call.output, "exit_code": int(call.failed), "status": status}
        self._item("started", item)
        call.work()
        self._item("completed", {**item, **outcome})

    def todo(self, items: list[Record]) -> None:
        """Write the plan, or its changes."""
        phase = "updated" if self._plan else "started"
        self._plan = {**(self._plan or self._new_item("todo_list")), "items": items}
        self._item(phase, self._plan)

    def retry(self, cause: int | str, *, message: str = "scripted error", of: int = 0) -> None:
        """Write an error that does not end the turn."""
        self.retries += 1
        reason = cause if isinstance(cause, str) else _unexpected(cause, message)
        attempt = f"Reconnecting... {self.retries}/{of or DEFAULT_RETRIES}"
        self.emit({"type": "error", "message": f"{attempt} ({reason})"})

    def error(self, status: int, *, message: str = "scripted error") -> int:
        """Fail the turn, usually with Codex's own text instead of the server's."""
        match status:
            case 400:
                return self._fail(message)
            case 429:
                return self._fail("exceeded retry limit, last status: 429 Too Many Requests")
            case 500:
                return self._fail("We're currently experiencing high demand, which may cause temporary errors.")
            case _:
                return self._fail(_unexpected(status, message))

    def max_turns(self) -> int:
        """Fail the turn. The real Codex has no such limit."""
        return self._fail("Reached maximum number of turns")

    def _fail(self, message: str) -> int:
        self.emit({"type": "error", "message": message})
        self._close_plan()
        self.emit({"type": "turn.failed", "error": {"message": message}})
        return 1

    def _close_plan(self) -> None:
        if self._plan:
            self._item("completed", self._plan)
            self._plan = {}

    def _new_item(self, kind: str, **fields: object) -> Record:
        item_id = f"item_{self._items}"
        self._items += 1
        return {"id": item_id, "type": kind, **fields}

    def _item(self, phase: str, item: Record) -> None:
        self.emit({"type": f"item.{phase}", "item": item})


def _command(call: ToolCall) -> str:
    quoted = str(call.input.get("command", call.name)).replace("'", "'\"'\"'")
    return f"/bin/bash -lc '{quoted}'"


def _unexpected(status: int, message: str) -> str:
    return f"unexpected status {status} {REASONS.get(status, '<unknown status code>')}: {message}, url: {URL}"
