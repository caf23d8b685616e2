"""What Codex's app-server tells of a turn, as events: messages, thinking, tools, plans, retries, usage."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from bullpen.agents.common_records import count, most_used, quota, todo_list
from bullpen.turn_events import Event, Notice, Quota, TextDelta, Thinking, ToolFinished, ToolStarted, Usage

NAMES = {"commandExecution": "shell", "fileChange": "file_change", "webSearch": "web_search"}
"""The tools, as `codex exec` calls them."""
IGNORED_ITEMS = ("contextCompaction", "hookPrompt", "plan", "userMessage")
IGNORED = (
    "account/updated",
    "app/list/updated",
    "configWarning",
    "deprecationNotice",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "mcpServer/startupStatus/updated",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/compacted",
    "thread/name/updated",
    "thread/queue/changed",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
    "turn/moderationMetadata",
)
"""Notifications that Codex is asked not to send: they tell nothing, or what its items tell when they are complete."""


class CodexItems:
    """Remembers the last message: it is the answer, and the ones before it reported progress.

    If a person says something after an answer, there is another one, and both are the answer.
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self._answers: list[str] = []
        """Those before the words of people that came after them."""
        self._last = ""
        self._has_answered = False
        """Whether it has done nothing more since its last message."""
        self._message = ""
        self._message_length = 0

    @property
    def answer(self) -> str:
        """The answer so far."""
        return "\n\n".join((*self._answers, self._last))

    def notified(self, method: str, params: dict[str, Any]) -> Iterator[Event]:
        """Yield the events of a notification about the turn."""
        match method, params:
            case "item/agentMessage/delta", {"itemId": str(item_id), "delta": str(text)}:
                yield from self._said(item_id, text)
            case "item/completed", {"item": {"type": "agentMessage", "id": str(item_id), "text": str(text)}}:
                streamed = self._message_length if item_id == self._message else 0
                yield from self._said(item_id, text[streamed:])
                self._last, self._has_answered = text, bool(text)
            case "item/started", {"item": {"type": "userMessage"}}:
                if self._has_answered:
                    self._answers.append(self._last)
                self._has_answered = False
            case "item/started" | "item/completed", {"item": dict(item)}:
                self._has_answered &= method == "item/completed"
                yield from _item(item, completed=method == "item/completed")
            case "item/commandExecution/terminalInteraction", {"stdin": str(text)}:
                if text:
                    yield Notice(kind="warning", text=f"It wrote to a command that is running: {text}")
            case "turn/plan/updated", {"plan": list(steps)}:
                yield todo_list(steps, text="step")
            case "thread/tokenUsage/updated", {"tokenUsage": {"total": dict(total)} as used}:
                self.usage = replace(_usage(total, used.get("modelContextWindow")), quota=self.usage.quota)
                yield self.usage
            case "account/rateLimits/updated", {"rateLimits": dict(limits)}:
                self.usage = replace(self.usage, quota=_quota(limits) or self.usage.quota)
            case "error", {"error": {"message": str(message)} as error}:
                details = error.get("additionalDetails")
                yield Notice(kind="retry", text=f"{message} ({details})" if details else message)
            case "warning" | "guardianWarning", {"message": str(message)}:
                yield Notice(kind="warning", text=message)
            case _ if method not in IGNORED:
                yield Notice(kind="unknown", text=str({"method": method, "params": params}))

    def _said(self, item_id: str, text: str) -> Iterator[Event]:
        if not text:
            return
        is_first = not self._message
        if item_id == self._message:
            self._message_length += len(text)
        else:
            self._message, self._message_length = item_id, len(text)
            text = text if is_first else f"\n\n{text}"
        yield TextDelta(text)


def changes_in(item: Any) -> list[dict[str, Any]]:
    """Return the changes of an item that changes files."""
    match item:
        case {"type": "fileChange", "changes": list(changes)}:
            return [change for change in changes if isinstance(change, dict)]
        case _:
            return []


def paths_of(change: dict[str, Any]) -> list[str]:
    """Return the files that a change touches: also the one that it becomes."""
    kind = change.get("kind")
    moved_to = kind.get("move_path") if isinstance(kind, dict) else None
    return [str(path) for path in (change.get("path"), moved_to) if path]


def _item(item: dict[str, Any], *, completed: bool) -> Iterator[Event]:
    match item:
        case {"type": "reasoning"}:
            text = "\n".join(str(part) for part in item.get("summary") or item.get("content") or ())
            if completed and text:
                yield Thinking(text)
        case {"type": "commandExecution" | "fileChange" | "mcpToolCall" | "webSearch", "id": str(item_id)}:
            if completed:
                yield _tool_finished(item_id, item)
            else:
                yield ToolStarted(id=item_id, name=_tool_name(item), input=_tool_input(item))
        case {"type": "agentMessage"}:
            pass
        case {"type": kind} if kind in IGNORED_ITEMS:
            pass
        case _ if completed:
            yield Notice(kind="unknown", text=str(item))


def _tool_name(item: dict[str, Any]) -> str:
    match item:
        case {"type": "mcpToolCall", "server": str(server), "tool": str(tool)}:
            return f"{server}.{tool}"
        case _:
            return NAMES.get(item["type"], str(item["type"]))


def _tool_input(item: dict[str, Any]) -> dict[str, Any]:
    if changes := changes_in(item):
        return {"changes": [{"path": change.get("path"), "kind": _kind(change)} for change in changes]}
    return {name: item[name] for name in ("command", "arguments", "query") if name in item}


def _kind(change: dict[str, Any]) -> str:
    kind = change.get("kind")
    return str(kind.get("type") if isinstance(kind, dict) else kind)


def _tool_finished(item_id: str, item: dict[str, Any]) -> ToolFinished:
    failure = item["error"].get("message") if isinstance(item.get("error"), dict) else None
    changes = changes_in(item) if item.get("status") == "completed" else []
    return ToolFinished(
        id=item_id,
        output=str(item.get("aggregatedOutput") or item.get("result") or failure or ""),
        failed=item.get("status") in ("failed", "declined") or bool(item.get("exitCode")),
        changed_files=tuple(path for change in changes for path in paths_of(change)),
    )


def _quota(limits: dict[str, Any]) -> Quota | None:
    """Return the share of the quota that is used most; Codex reports it to those with a subscription."""
    several = [one for one in (limits.get("primary"), limits.get("secondary")) if isinstance(one, dict)]
    return most_used(quota(_share(one.get("usedPercent")), one.get("resetsAt")) for one in several)


def _share(percent: object) -> float | None:
    return percent / 100 if isinstance(percent, int | float) and not isinstance(percent, bool) else None


def _usage(total: dict[str, Any], window: object) -> Usage:
    return Usage(
        input_tokens=count(total.get("inputTokens")),
        output_tokens=count(total.get("outputTokens")),
        cached_tokens=count(total.get("cachedInputTokens")),
        context_window=count(window),
    )
