"""A turn in the format of `gemini -o stream-json`: first the prompt, then deltas, no thoughts."""

import time

from bullpen.testing.agent.quick_json import to_json
from bullpen.testing.agent.renderer import Record, Renderer, ToolCall, new_uuid, pieces, timestamp
from bullpen.testing.agent.streams import STDERR, write_text

MODEL = "gemini-2.5-flash"
TURN_LIMIT_EXIT = 53
QUOTA_ADVICE = (
    "Please wait and try again later. To increase your limits, request a quota increase through AI Studio, "
    "or switch to another /auth method"
)

TOOL_NAMES = {"Bash": "run_shell_command", "Edit": "replace", "Read": "read_file", "Write": "write_file"}
STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class GeminiRenderer(Renderer):
    """Every line has the time; errors also go to stderr."""

    version = "0.61.0"
    sigterm_exit = 0

    def opening(self) -> list[Record]:
        """Return the lines with the session and the whole prompt."""
        prompt = self.prompt.decode(errors="replace")
        return [
            {"type": "init", "timestamp": timestamp(), "session_id": new_uuid(), "model": MODEL},
            {"type": "message", "timestamp": timestamp(), "role": "user", "content": prompt},
        ]

    def closing(self) -> None:
        """Write the result: numbers, no text."""
        tokens = self.tokens("input"), self.tokens("output"), self.tokens("cached")
        self._emit("result", status="success", stats=_stats(*tokens, self.elapsed_ms(), self.tool_calls))

    def interrupted(self) -> int:
        """Stop in the middle, as if it had succeeded."""
        return 0

    def say(self, text: str, *, chunk: int = 0, delay: float = 0.0) -> None:
        """Write the pieces, but never the whole text."""
        self.start()
        for piece in pieces(text, chunk, delay):
            self._emit("message", role="assistant", content=piece, delta=True)
        self.said.append(text)

    def think(self, text: str) -> None:
        """Write nothing."""

    def use(self, call: ToolCall) -> None:
        """Write a tool call with Gemini's name for it, and its result."""
        tool_id = self._call(TOOL_NAMES.get(call.name, call.name), call.input)
        call.work()
        if call.failed:
            error = {"type": "tool_not_registered" if call.denied else "unknown", "message": call.output}
            self._emit("tool_result", tool_id=tool_id, status="error", output=call.output, error=error)
        else:
            self._emit("tool_result", tool_id=tool_id, status="success", output=call.output)

    def todo(self, items: list[Record]) -> None:
        """Write the plan as a call of write_todos."""
        self.tool_calls += 1
        names = {True: "completed", False: "pending"}
        todos = [{"description": item["text"], "status": names[bool(item.get("completed"))]} for item in items]
        tool_id = self._call("write_todos", {"todos": todos})
        self._emit("tool_result", tool_id=tool_id, status="success", output="Successfully updated the todo list.")

    def retry(self, cause: int | str, *, message: str = "scripted error", of: int = 0) -> None:  # noqa: ARG002
        """Report a retry, only on stderr."""
        self.start()
        self.retries += 1
        write_text(f"Attempt {self.retries} failed with status {cause}. Retrying with backoff... {message}\n", STDERR)

    def error(self, status: int, *, message: str = "scripted error") -> int:
        """Report an error, with the HTTP status modulo 256 as the exit status."""
        body: Record = {"code": status, "message": message, "status": STATUS_NAMES.get(status, "UNKNOWN")}
        quota = f"[API Error: {message}]\n{QUOTA_ADVICE}"
        text = quota if status == 429 else f"[API Error: {to_json({'error': body})}]"
        write_text(f"Error when talking to Gemini API _ApiError: {message} {{\n  status: {status}\n}}\n", STDERR)
        self._fail("unknown", text)
        return status % 256

    def max_turns(self) -> int:
        """Report the limit, with an exit status of its own."""
        text = (
            "Reached max session turns for this session. "
            "Increase the number of turns by specifying maxSessionTurns in settings.json."
        )
        write_text(f"{text}\n", STDERR)
        self._fail("FatalTurnLimitedError", text)
        return TURN_LIMIT_EXIT

    def _call(self, name: str, arguments: Record) -> str:
        tool_id = f"{name}__{name}_{int(time.time() * 1000)}_{self.tool_calls - 1}"
        self._emit("tool_use", tool_name=name, tool_id=tool_id, parameters=arguments)
        return tool_id

    def _fail(self, kind: str, message: str) -> None:
        self._emit("result", status="error", error={"type": kind, "message": message}, stats=_stats())

    def _emit(self, kind: str, **fields: object) -> None:
        self.emit({"type": kind, "timestamp": timestamp(), **fields})


def _stats(sent: int = 0, received: int = 0, cached: int = 0, duration_ms: int = 0, tool_calls: int = 0) -> Record:
    tokens = {
        "total_tokens": sent + received,
        "input_tokens": sent,
        "output_tokens": received,
        "cached": cached,
        "input": max(0, sent - cached),
    }
    return {**tokens, "duration_ms": duration_ms, "tool_calls": tool_calls, "models": {MODEL: tokens}}
