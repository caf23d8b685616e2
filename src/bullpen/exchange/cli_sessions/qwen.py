"""Sessions of Qwen Code: projects/FOLDER/chats/ID.jsonl, a tree of records with contents of Gemini's API."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bullpen.agents.common_records import count
from bullpen.exchange.cli_sessions.branch import Node, last_branch
from bullpen.exchange.cli_sessions.google_parts import agent_parts, person_parts
from bullpen.exchange.cli_sessions.parts import Part, SessionContent, person
from bullpen.exchange.cli_sessions.records import Records, text_of, time_of
from bullpen.turn_events import Usage


class QwenReader:
    """Reads the branch that the session ended on."""

    agent = "qwen-code"

    def id_of(self, path: Path) -> str:
        """Return the name of the file."""
        return path.stem

    def read(self, session_id: str, files: Mapping[str, Sequence[Path]]) -> SessionContent:
        """Return what is in the newest file of this id."""
        records = Records(files[session_id][-1])
        nodes, folder, used = [], "", Usage()
        for record in records:
            used = _more(used, record.get("usageMetadata"))
            if not text_of(record, "uuid") or record.get("isSidechain") is True:
                continue
            folder = folder or text_of(record, "cwd")
            nodes.append(Node(text_of(record, "uuid"), text_of(record, "parentUuid"), tuple(_parts(record))))
        parts = list(last_branch(nodes))
        return SessionContent(parts=parts, folder=folder, unreadable=records.unreadable, used=used)


def _more(used: Usage, request: Any) -> Usage:
    """Return what was used with one request more."""
    if not isinstance(request, dict):
        return used
    return Usage(
        input_tokens=used.input_tokens + count(request.get("promptTokenCount")),
        output_tokens=used.output_tokens + count(request.get("candidatesTokenCount")),
        cached_tokens=used.cached_tokens + count(request.get("cachedContentTokenCount")),
    )


def _parts(record: dict[str, Any]) -> Iterator[Part]:
    at = time_of(record)
    match record:
        case {"provenance": str(source), "type": "user"} if source != "real_user":
            pass
        case {"type": "user", "subtype": "mid_turn_user_message", "systemPayload": {"displayText": str(text)}}:
            # Typed while the agent worked.
            yield from person(text, at)
        case {"type": "user", "subtype": str()}:
            pass  # a timer, the end of a task in the background
        case {"type": "user" | "tool_result", "message": {"parts": contents}}:
            yield from person_parts(contents, at)
        case {"type": "assistant", "message": {"parts": contents}}:
            yield from agent_parts(contents, at)
