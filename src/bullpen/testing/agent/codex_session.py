"""Sessions of Codex: sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl, found from any folder."""

# pathlib is slow to import.
# ruff: noqa: PTH118

import fcntl
import os
import time

from bullpen.testing.agent.host import here
from bullpen.testing.agent.renderer import Record, new_uuid, timestamp
from bullpen.testing.agent.sessions import Session, SessionRefused, records_in, text_in

UUID_LENGTH = 36


class CodexSession(Session):
    """`resume ID` continues one, and `fork ID` a copy in another thread. What is not an id begins a new thread."""

    def __init__(self, home: str, arguments: list[str]) -> None:
        self._sessions = os.path.join(home, "sessions")
        action, wanted = _asked_for(arguments)
        self.base = self._found(action, wanted) if wanted else ""
        self._is_resumed = bool(self.base) and action == "resume"
        self._forked_from = wanted if self.base and action == "fork" else ""
        self.id = wanted if self._is_resumed else new_uuid()
        self.file = self.base if self._is_resumed else self._new_file()
        self.used_before = self._used()
        self._ordinal = 0
        self._lock = -1
        if self._is_resumed:
            self._write_alone()

    def begin(self) -> None:
        """Say what the thread is, and where its history begins."""
        self._ordinal = len(self.records())
        if not self._is_resumed:
            about: Record = {"session_id": self.id, "id": self.id, "timestamp": timestamp(), "cwd": here.host.folder}
            if self._forked_from:
                base = {"thread_id": self._forked_from, "end_ordinal_exclusive": len(records_in(self.base))}
                about = {**about, "forked_from_id": self._forked_from, "history_base": base}
            self._add("session_meta", about)

    def person(self, text: str) -> Record:
        """Return a user's item."""
        return self._record("response_item", _message("user", "input_text", text))

    def reply(self, text: str) -> None:
        """Record the model's item."""
        self._add("response_item", _message("assistant", "output_text", text))

    def used_tool(self, name: str, given: Record, output: str) -> None:
        """Record the call and its output."""
        call_id = f"call_{os.urandom(8).hex()}"
        self._add("response_item", {"type": "function_call", "name": name, "arguments": str(given), "call_id": call_id})
        self._add("response_item", {"type": "function_call_output", "call_id": call_id, "output": output})

    def compact(self, summary: str) -> None:
        """Record what replaced the history."""
        self._add("compacted", {"message": summary})

    def messages(self) -> list[Record]:
        """Return the items since the history was last replaced; a fork begins with those of its base."""
        return self._messages(self.file)

    def end(self, used: dict[str, int]) -> None:
        """Record the tokens as an event."""
        self._add("event_msg", {"type": "token_count", "info": {"total_token_usage": used}})

    def _used(self) -> dict[str, int]:
        """Return what the last turn left."""
        used: dict[str, int] = {}
        for record in records_in(self.base):
            match record:
                case {"payload": {"type": "token_count", "info": {"total_token_usage": dict(total)}}}:
                    used = total
        return used

    def _messages(self, file: str, count: int | None = None) -> list[Record]:
        messages: list[Record] = []
        for record in records_in(file)[:count]:
            match record:
                case {"payload": {"history_base": {"thread_id": str(base), "end_ordinal_exclusive": int(end)}}}:
                    messages = self._messages(self._found("fork", base), end)
                case {"type": "compacted", "payload": {"message": str(summary)}}:
                    messages = [{"role": "user", "text": summary}]
                case {"type": "response_item", "payload": {"role": role, "content": content}}:
                    messages.append({"role": role, "text": text_in(content)})
                case {"type": "response_item", "payload": {"output": str(output)}}:
                    messages.append({"role": "tool", "text": output})
        return messages

    def _add(self, kind: str, payload: Record) -> None:
        self.add(self._record(kind, payload))

    def _record(self, kind: str, payload: Record) -> Record:
        self._ordinal += 1
        return {"timestamp": timestamp(), "ordinal": self._ordinal - 1, "type": kind, "payload": payload}

    def _found(self, action: str, thread_id: str) -> str:
        for folder, _, names in os.walk(self._sessions):
            for name in names:
                if name.startswith("rollout-") and name.endswith(f"-{thread_id}.jsonl"):
                    return os.path.join(folder, name)
        what = f"thread/{action}"
        raise SessionRefused(f"Error: {what}: {what} failed: no rollout found for thread id {thread_id} (code -32600)")

    def _new_file(self) -> str:
        day, moment = time.strftime("%Y/%m/%d"), time.strftime("%Y-%m-%dT%H-%M-%S")
        return os.path.join(self._sessions, day, f"rollout-{moment}-{self.id}.jsonl")

    def close(self) -> None:
        """Let others write to the file."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _write_alone(self) -> None:
        """Keep the file locked until the end of the turn."""
        self._lock = os.open(self.file, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise SessionRefused(
                f"Error: thread-store conflict: thread {self.id} already has an active writer"
            ) from None


def _asked_for(arguments: list[str]) -> tuple[str, str]:
    for position, argument in enumerate(arguments[:-1]):
        if argument in ("resume", "fork") and _is_uuid(arguments[position + 1]):
            return argument, arguments[position + 1]
    return "", ""


def _is_uuid(text: str) -> bool:
    return len(text) == UUID_LENGTH and text.count("-") == 4 and all(letter in "0123456789abcdef-" for letter in text)


def _message(role: str, kind: str, text: str) -> Record:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
