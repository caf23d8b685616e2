"""What agents do, as an editor shows it: calls of tools with their diffs, and plans."""

import os.path
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bullpen.cli.editor.prompt_text import fenced
from bullpen.conversation.tool_reach import ONLY_READS
from bullpen.turn_events import TodoItem, ToolStarted
from bullpen.view.diff import FileDiff
from bullpen.view.steps import Step

Update = dict[str, Any]
LONGEST_INPUT = 20_000
"""Bytes of what a tool was given that are passed on as they are; the record of the turn has all of it."""


def call_began(call: str, member: str, step: Step, event: ToolStarted, folder: str) -> Update:
    """Return that an agent has called a tool."""
    update: Update = {
        "sessionUpdate": "tool_call",
        "toolCallId": call,
        "title": f"{member}: {step.title} {step.summary}".rstrip(),
        "kind": _kind(event, step),
        "status": "in_progress",
        "content": list(_diffs(step.edits, folder)),
        "locations": [{"path": _path(folder, file.path)} for file in step.edits],
        "_meta": {"toolName": step.title, "member": member},
    }
    if len(msgspec.json.encode(event.input, enc_hook=str)) <= LONGEST_INPUT:
        update["rawInput"] = event.input
    return update


def call_ended(call: str, step: Step, folder: str) -> Update:
    """Return what came of a call."""
    content = list(_diffs(step.edits, folder))
    if step.output.strip():
        content.append(text_block(fenced(step.output)))
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call,
        "status": "failed" if step.failed else "completed",
        "content": content,
        "rawOutput": {"output": step.output},
    }


def call_changed(call: str, step: Step, changed: Mapping[str, FileDiff], folder: str) -> Update | None:
    """Return what a call has really changed, if its CLI names only the files; None if nothing is known."""
    named = [_path(folder, path) for path in (*(file.path for file in step.edits), *step.changed_files)]
    blocks = [block for path in dict.fromkeys(named) if path in changed for block in _diffs([changed[path]], folder)]
    if not blocks:
        return None
    return {"sessionUpdate": "tool_call_update", "toolCallId": call, "kind": "edit", "content": blocks}


def lacks_lines(step: Step) -> bool:
    """Return whether a call says which files it changed, and not what in them."""
    return bool(step.edits or step.changed_files) and not any(row for file in step.edits for row in file.rows)


def plan_of(plans: Mapping[str, tuple[str, Iterable[TodoItem]]]) -> Update:
    """Return what all running agents have planned: an editor shows one plan."""
    entries = [
        {
            "content": f"{member}: {item.text}",
            "priority": "medium",
            "status": "completed" if item.done else "pending",
        }
        for member, items in plans.values()
        for item in items
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def text_block(text: str) -> dict[str, Any]:
    """Return a text as the content of a call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def diff_block(path: str, before: Sequence[str], after: Sequence[str], folder: str) -> dict[str, Any]:
    """Return the lines of a file before and after a change, as far as they are known."""
    return {
        "type": "diff",
        "path": _path(folder, path),
        "oldText": "\n".join(before) + "\n" if before else None,
        "newText": "\n".join(after) + "\n" if after else "",
    }


def _diffs(files: Iterable[FileDiff], folder: str) -> Iterator[dict[str, Any]]:
    for file in files:
        rows = list(file.rows)
        before = [row.text for row in rows if row.kind in ("context", "removed")]
        after = [row.text for row in rows if row.kind in ("context", "added")]
        if rows:
            yield diff_block(file.path, before, after, folder)


def _path(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118


def _kind(event: ToolStarted, step: Step) -> str:
    """Return what kind of tool it is, so that an editor can choose a picture."""
    name = event.name.lower()
    if step.edits:
        return "edit"
    if event.input.keys() & {"command", "cmd"}:
        return "execute"
    if event.name not in ONLY_READS:
        return "other"
    if "web" in name:
        return "fetch"
    return "search" if any(word in name for word in ("grep", "glob", "search")) else "read"
