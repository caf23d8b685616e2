"""Sessions of Claude Code: projects/FOLDER/ID.jsonl, a tree of records in the shape of its model's API."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bullpen.agents.claude import usage_of_models
from bullpen.exchange.cli_sessions.branch import Node, last_branch
from bullpen.exchange.cli_sessions.parts import Part, SessionContent, agent, person, tool
from bullpen.exchange.cli_sessions.records import Records, text_of, time_of
from bullpen.exchange.cli_sessions.tags import without_tags
from bullpen.turn_events import Usage

INTERRUPTED = "[Request interrupted by user"
# What it writes into a person's message.
INJECTED = ("system-reminder", "ide_opened_file", "ide_selection", "ide_diagnostics")
# What it writes as a person's message.
NOT_SAID = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "<teammate-message")

_COMMAND = re.compile(r"<command-name>([^<]*)</command-name>")
_ARGUMENTS = re.compile(r"<command-args>([^<]*)")
_SHELL = re.compile(r"\A<bash-input>(.*)</bash-input>\Z", re.DOTALL)


class ClaudeReader:
    """Reads the branch that the session ended on."""

    agent = "claude-code"

    def id_of(self, path: Path) -> str:
        """Return the name of the file. Agents that an agent started have files of their own."""
        return "" if path.stem.startswith("agent-") else path.stem

    def read(self, session_id: str, files: Mapping[str, Sequence[Path]]) -> SessionContent:
        """Return what is in the newest file of this id."""
        records = Records(files[session_id][-1])
        nodes, folder, used = [], "", None
        for record in records:
            if record.get("type") == "cost-state":
                used = _used(record)
            if not text_of(record, "uuid") or record.get("isSidechain") is True:
                continue
            folder = folder or text_of(record, "cwd")
            parent = text_of(record, "parentUuid") or text_of(record, "logicalParentUuid")
            nodes.append(Node(text_of(record, "uuid"), parent, tuple(_parts(record))))
        parts = list(last_branch(nodes))
        return SessionContent(parts=parts, folder=folder, unreadable=records.unreadable, used=used)


def _used(state: dict[str, Any]) -> Usage:
    """Return what all requests of the session used and cost."""
    return usage_of_models({**state, "total_cost_usd": state.get("totalCostUSD")})


def _parts(record: dict[str, Any]) -> Iterator[Part]:
    at = time_of(record)
    match record:
        case {"isMeta": True} | {"isCompactSummary": True}:
            pass  # what a command expands to, caveats, and the summary that replaces a long history
        case {"type": "user", "origin": {"kind": str(kind)}} if kind != "human":
            pass
        case {"type": "user", "message": {"content": content}}:
            yield from _person(content, at)
        case {"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "prompt", "prompt": said}}:
            # Typed while the agent worked.
            yield from _person(said, at)
        case {"type": "assistant", "message": {"model": "<synthetic>"}}:
            pass  # errors, and what the CLI says in the agent's place
        case {"type": "assistant", "message": {"content": list(blocks)}}:
            for block in blocks:
                yield from _block(block, at)


def _block(block: Any, at: int) -> Iterator[Part]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield from agent(text, at)
        case {"type": "tool_use", "id": str(tool_id), "name": str(name), "input": dict(given)}:
            yield tool(tool_id, name, given, at)


def _person(content: Any, at: int) -> Iterator[Part]:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    said = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                said.append(text)
            case {"type": "image"}:
                said.append("(a picture)")
            case {"type": "tool_result", "is_error": True, "tool_use_id": str(tool_id)}:
                yield Part(kind="failure", at=at, tool_id=tool_id)
    yield from _said("\n\n".join(said), at)


def _said(text: str, at: int) -> Iterator[Part]:
    text = without_tags(text, INJECTED).strip()
    if text.startswith(INTERRUPTED):
        yield Part(kind="interruption", at=at)
    elif text.startswith(("<command-name>", "<command-message>")) and (command := _COMMAND.search(text)):
        arguments = _ARGUMENTS.search(text)
        yield Part(kind="command", text=f"{command[1]} {arguments[1] if arguments else ''}".strip(), at=at)
    elif shell := _SHELL.match(text):
        yield Part(kind="command", text=f"!{shell[1]}", at=at)
    elif not text.startswith(NOT_SAID):
        yield from person(text, at)
