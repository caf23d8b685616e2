"""Sessions of Claude Code: projects/FOLDER/ID.jsonl, found only from the folder in which they began."""

# pathlib is slow to import.
# ruff: noqa: PTH110, PTH112, PTH118, PTH208

import os

from bullpen.testing.agent.claude_shapes import VERSION
from bullpen.testing.agent.host import here
from bullpen.testing.agent.options import option
from bullpen.testing.agent.renderer import Record, new_uuid, timestamp
from bullpen.testing.agent.sessions import Session, SessionRefused, records_in, text_in, text_of

SYSTEM_FLAG = "--append-system-prompt-file"


class ClaudeSession(Session):
    """--session-id begins one, --resume continues it, and --fork-session with it continues a copy."""

    def __init__(self, home: str, arguments: list[str]) -> None:
        self._projects = os.path.join(home, "projects")
        wanted, resumed = option(arguments, "--session-id"), option(arguments, "--resume")
        self._is_fork = "--fork-session" in arguments
        self.id = resumed if resumed and not self._is_fork else wanted or new_uuid()
        self.file = self._path(self.id)
        if resumed and not os.path.exists(self._path(resumed)):
            raise SessionRefused(f"No conversation found with session ID: {resumed}")
        if not resumed and self._is_in_use():
            raise SessionRefused(f"Error: Session ID {self.id} is already in use.")
        self.base = self._path(resumed) if resumed else ""
        self.system = text_of(option(arguments, SYSTEM_FLAG))
        if resumed and option(arguments, "--system-prompt-snapshot") != "off":
            self.system = self._first_system()
        self.used_before = self._used()
        self._last = ""

    def begin(self) -> None:
        """Copy what the session begins with."""
        if self._is_fork:
            self.add(*({**record, "sessionId": self.id} for record in records_in(self.base)))
        uuids = [str(record["uuid"]) for record in self.records() if "uuid" in record]
        self._last = uuids[-1] if uuids else ""

    def person(self, text: str) -> Record:
        """Return a user's record."""
        return self._record("user", {"role": "user", "content": text})

    def reply(self, text: str) -> None:
        """Record a block of text."""
        self._assistant({"type": "text", "text": text})

    def used_tool(self, name: str, given: Record, output: str) -> None:
        """Record the call and its result."""
        tool_id = f"toolu_{os.urandom(10).hex()}"
        self._assistant({"type": "tool_use", "id": tool_id, "name": name, "input": given})
        block = {"tool_use_id": tool_id, "type": "tool_result", "content": output}
        self.add(self._record("user", {"role": "user", "content": [block]}))

    def compact(self, summary: str) -> None:
        """Record where the history was replaced, and with what."""
        boundary = self._record("system", None, subtype="compact_boundary", content="Conversation compacted")
        self.add(boundary, self._record("user", {"role": "user", "content": summary}, isCompactSummary=True))

    def messages(self) -> list[Record]:
        """Return the texts since the history was last replaced."""
        messages: list[Record] = []
        for record in self.records():
            match record:
                case {"subtype": "compact_boundary"}:
                    messages.clear()
                case {"message": {"role": role, "content": content}}:
                    messages.append({"role": role, "text": text_in(content)})
        return messages

    def end(self, used: dict[str, int]) -> None:
        """Record the tokens in a line of their own."""
        self.add({"type": "session-usage", "tokens": used, "sessionId": self.id})

    def _used(self) -> dict[str, int]:
        """Return what the last turn left."""
        totals = [record["tokens"] for record in records_in(self.base) if record.get("type") == "session-usage"]
        match totals[-1:]:
            case [dict(tokens)]:
                return tokens
            case _:
                return {}

    def _assistant(self, block: Record) -> None:
        message_id = f"msg_{os.urandom(12).hex()}"
        message: Record = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [block],
        }
        self.add(self._record("assistant", message))

    def _record(self, kind: str, message: Record | None, **fields: object) -> Record:
        """Return a record that follows the last one."""
        parent, self._last = self._last or None, new_uuid()
        about = {"cwd": here.host.folder, "sessionId": self.id, "version": VERSION, "timestamp": timestamp()}
        said: Record = {} if message is None else {"message": message}
        return {"parentUuid": parent, "isSidechain": False, "type": kind, **said, **fields, "uuid": self._last, **about}

    def _path(self, session_id: str) -> str:
        folder = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in here.host.folder)
        return os.path.join(self._projects, folder, f"{session_id}.jsonl")

    def _is_in_use(self) -> bool:
        folders = os.listdir(self._projects) if os.path.isdir(self._projects) else []
        return any(os.path.exists(os.path.join(self._projects, folder, f"{self.id}.jsonl")) for folder in folders)

    def _first_system(self) -> str:
        """Return the system text of the first request: the CLI records it, and sends it forever."""
        for asked in records_in(self.base.removesuffix(".jsonl") + ".asked"):
            return str(asked["system"])
        return ""
