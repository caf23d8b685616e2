"""Sessions of Codex: sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl, the items of its model's API and events."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bullpen.agents.common_records import usage
from bullpen.exchange.cli_sessions.parts import Part, SessionContent, agent, person, tool
from bullpen.exchange.cli_sessions.records import Records, text_of, time_of
from bullpen.turn_events import Usage

# rollout-TIME-ID, and rollout-TIME-ID_OTHER for what follows after a person went back in it.
_NAME = re.compile(r"\Arollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_|\Z)")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
# How a person's items begin that earlier versions wrote by themselves; newer ones say what each is.
INJECTED = (
    *("<environment_context>", "<user_instructions>", "<turn_aborted>", "<user_shell_command>", "<skill>"),
    *("# AGENTS.md instructions", "<ENVIRONMENT_CONTEXT>", "<subagent_notification>", "<permissions"),
)

MOST_BASES = 100
"""How many threads, each forked from the next, are read; no person forks that often."""


class CodexReader:
    """Reads a thread: its own files, and those of the thread that it was forked from."""

    agent = "openai-codex"

    def id_of(self, path: Path) -> str:
        """Return the thread's id in the name of the file."""
        name = _NAME.match(path.stem)
        return name[1] if name else ""

    def read(self, session_id: str, files: Mapping[str, Sequence[Path]]) -> SessionContent:
        """Return what is in all files of a thread."""
        thread = _Thread(files)
        parts = [part for _, part in thread.read(session_id)]
        return SessionContent(
            parts=parts,
            folder=thread.folder,
            unreadable=thread.unreadable,
            missing=thread.missing,
            model=thread.model,
            used=thread.used,
            is_own=thread.is_own,
        )


class _Thread:
    def __init__(self, files: Mapping[str, Sequence[Path]]) -> None:
        self._files = files
        self._seen = set[str]()
        self.folder = ""
        self.unreadable = 0
        self.missing = ""
        self.model = ""
        self.used: Usage | None = None
        self.is_own = True

    def read(self, thread_id: str) -> list[tuple[int, Part]]:
        """Return what is in a thread, each with the number of its record."""
        self._seen.add(thread_id)
        parts: list[tuple[int, Part]] = []
        for path in self._files[thread_id]:
            records = Records(path)
            for number, record in enumerate(records):
                ordinal = record.get("ordinal")
                parts = self._with(record, parts, thread_id, ordinal if isinstance(ordinal, int) else number)
            self.unreadable += records.unreadable
        return parts

    def _with(
        self, record: dict[str, Any], parts: list[tuple[int, Part]], thread_id: str, number: int
    ) -> list[tuple[int, Part]]:
        match record:
            case {"type": "session_meta", "payload": dict(about)}:
                return self._begun(about, parts, thread_id)
            case {"type": "turn_context", "payload": {"model": str(model)}}:
                self.model = model
            case {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": dict(total)}}}:
                self.used = usage(total, cached="cached_input_tokens")
            case {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": int(turns)}}:
                return _without_turns(parts, turns)
            case {"type": "compacted", "payload": {"message": str(summary)}}:
                # The model wrote the summary as an answer.
                is_summary = bool(parts) and parts[-1][1].kind == "agent" and parts[-1][1].text.strip() in summary
                return parts[:-1] if is_summary else parts
        parts.extend((number, part) for part in _parts(record))
        return parts

    def _begun(self, about: dict[str, Any], parts: list[tuple[int, Part]], thread_id: str) -> list[tuple[int, Part]]:
        """Return what the records after this one follow."""
        if about.get("id", thread_id) == thread_id and len(self._seen) == 1:
            self.folder = self.folder or text_of(about, "cwd")
            source = about.get("source")
            self.is_own = not (isinstance(source, dict) and "subagent" in source)
        match about.get("history_base"):
            case {"thread_id": str(base), "end_ordinal_exclusive": int(end)}:
                return [part for part in self._base(base, parts, thread_id) if part[0] < end]
            case _:
                return parts

    def _base(self, base: str, parts: list[tuple[int, Part]], thread_id: str) -> list[tuple[int, Part]]:
        if base == thread_id:
            return parts
        if base in self._seen or base not in self._files or len(self._seen) > MOST_BASES:
            self.missing = base
            return []
        return self.read(base)


def _without_turns(parts: list[tuple[int, Part]], turns: int) -> list[tuple[int, Part]]:
    begins = [position for position, (_, part) in enumerate(parts) if part.kind == "person"]
    return parts[: begins[-turns] if turns < len(begins) else 0] if turns > 0 else parts


def _parts(record: dict[str, Any]) -> Iterator[Part]:
    at = time_of(record)
    match record:
        case {"type": "response_item", "payload": dict(item)}:
            yield from _item(item, at)
        case {"type": "event_msg", "payload": {"type": "turn_aborted"}}:
            yield Part(kind="interruption", at=at)
        case {
            "type": "event_msg",
            "payload": {"type": "item_completed", "item": {"id": str(tool_id), "status": "failed" | "declined"}},
        }:
            yield Part(kind="failure", at=at, tool_id=tool_id)
        case {"type": "event_msg", "payload": {"type": "exec_command_end", "call_id": str(tool_id), "exit_code": code}}:
            if code:
                yield Part(kind="failure", at=at, tool_id=tool_id)


def _item(item: dict[str, Any], at: int) -> Iterator[Part]:
    match item:
        case {"type": "message", "role": "user", "content": list(contents)}:
            yield from person("\n".join(_said(contents, _kinds(item))), at)
        case {"type": "message", "role": "assistant", "content": list(contents)}:
            for content in contents:
                yield from agent(text_of(content, "text"), at) if isinstance(content, dict) else ()
        case {"type": "function_call", "name": str(name), "arguments": str(arguments)}:
            yield tool(text_of(item, "call_id"), name, _decoded(arguments), at)
        case {"type": "custom_tool_call", "name": str(name), "input": str(text)}:
            files = _PATCHED.findall(text[:100_000])
            about = ", ".join(files) or text[:1000].strip().partition("\n")[0]
            yield tool(text_of(item, "call_id"), name, {"input": about}, at)
        case {"type": "local_shell_call", "action": dict(action)}:
            yield tool(text_of(item, "call_id"), "shell", action, at)
        case {"type": "web_search_call", "action": dict(action)}:
            yield tool(text_of(item, "id"), "web_search", action, at)


def _kinds(item: dict[str, Any]) -> list[Any]:
    """Return what each content of a message is, as newer versions tell it."""
    match item:
        case {"internal_chat_message_metadata_passthrough": {"content_item_kinds": list(kinds)}}:
            return kinds
        case _:
            return []


def _said(contents: list[Any], kinds: list[Any]) -> Iterator[str]:
    for position, content in enumerate(contents):
        if position < len(kinds) and not str(kinds[position]).startswith("user."):
            continue
        match content:
            case {"type": "input_text", "text": str(text)} if kinds or not text.lstrip().startswith(INJECTED):
                yield text
            case {"type": "input_image"}:
                yield "(a picture)"


def _decoded(arguments: str) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        given = None
    return given if isinstance(given, dict) else {"arguments": arguments[:1000]}
