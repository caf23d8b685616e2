"""Codex CLI: `codex exec --json`, and `codex app-server` where people are asked."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bullpen.agents.codex_driver import CodexDriver
from bullpen.agents.codex_rules import why_not_asked
from bullpen.agents.common_records import usage
from bullpen.agents.folder_settings import CODEX, FolderSettings
from bullpen.agents.spec import AgentSpec, SessionSpec, SignInProbe
from bullpen.agents.tool_server import CALL_SECONDS, SERVER
from bullpen.context.assemblers import CodexContextAssembler
from bullpen.sandbox.rules import OwnFiles, OwnFolder
from bullpen.turn_events import (
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
    TodoItem,
    TodoList,
    ToolFinished,
    ToolStarted,
)


class CodexParser:
    """Remembers the last message: it is the answer, and the ones before it reported progress."""

    def __init__(self) -> None:
        self._answer: str | None = None

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield the events of one record of the stream."""
        match record:
            case {"type": "item.completed", "item": {"type": "agent_message", "text": str(text)}}:
                yield TextDelta(text if self._answer is None else f"\n\n{text}")
                self._answer = text
            case {"type": "item.started" | "item.updated" | "item.completed" as phase, "item": dict(item)}:
                yield from _item(item, completed=phase == "item.completed", started=phase == "item.started")
            case {"type": "thread.started"}:
                yield Started(session_id=record.get("thread_id"))
            case {"type": "turn.started"}:
                pass
            case {"type": "error", "message": str(message)}:
                # Runs that succeed have these too: only turn.failed means failure.
                yield Notice(kind="retry", text=message)
            case {"type": "turn.completed"}:
                yield usage(record.get("usage"), cached="cached_input_tokens")
                yield Finished(self._answer or "")
            case {"type": "turn.failed", "error": {"message": str(message)}}:
                yield Failed(kind="crashed", message=message)
            case {"type": "turn.failed"}:
                yield Failed(kind="crashed", message="It reported a failed turn without giving a reason.")
            case _:
                yield Notice(kind="unknown", text=str(record))


def _item(item: dict[str, Any], *, started: bool, completed: bool) -> Iterator[Event]:
    match item:
        case {"type": "reasoning", "text": str(text)}:
            if completed:
                yield Thinking(text)
        case {"type": "error", "message": str(message)}:
            yield Notice(kind="warning", text=message)
        case {"type": "todo_list", "items": list(items)}:
            yield TodoList(tuple(_todo(todo) for todo in items))
        case {"type": "command_execution" | "file_change" | "mcp_tool_call" | "web_search", "id": str(item_id)}:
            if started:
                yield ToolStarted(id=item_id, name=_tool_name(item), input=_tool_input(item))
            elif completed:
                yield _tool_finished(item_id, item)
        case _:
            yield Notice(kind="unknown", text=str(item))


def _todo(todo: Any) -> TodoItem:
    match todo:
        case {"text": str(text), "completed": completed}:
            return TodoItem(text, done=bool(completed))
        case _:
            return TodoItem(str(todo), done=False)


def _tool_name(item: dict[str, Any]) -> str:
    match item:
        case {"type": "command_execution"}:
            return "shell"
        case {"type": "mcp_tool_call", "server": str(server), "tool": str(tool)}:
            return f"{server}.{tool}"
        case _:
            return str(item["type"])


def _tool_input(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("command", "changes", "arguments", "query") if name in item}


def _tool_finished(item_id: str, item: dict[str, Any]) -> ToolFinished:
    changes = [change for change in item.get("changes") or () if isinstance(change, dict)]
    return ToolFinished(
        id=item_id,
        output=str(item.get("aggregated_output") or item.get("result") or ""),
        failed=item.get("status") == "failed" or bool(item.get("exit_code")),
        changed_files=tuple(str(change.get("path", "")) for change in changes),
    )


def _tools(server: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments with a table of TOML. A string of JSON is one of TOML, too."""
    command, *arguments = (msgspec.json.encode(word).decode() for word in server)
    table = (
        f"{{command={command},args=[{','.join(arguments)}],required=true,tool_timeout_sec={CALL_SECONDS},"
        'default_tools_approval_mode="approve"}'
    )
    return ("-c", f"mcp_servers.{SERVER}={table}")


# Commands that the model runs must not find the key in their environment.
_KEEP_KEY = ("-c", 'shell_environment_policy.inherit="core"')
# It follows no imports in AGENTS.md, and reads none in a folder that it does not trust: bullpen gives it these rules.
_NO_RULES = ("-c", "project_doc_max_bytes=0")
_SESSIONS = SessionSpec(
    resume=("resume", "{id}"),
    fork=("fork", "{id}"),
    home=".codex",
    home_variable="CODEX_HOME",
    files="sessions/*/*/*/rollout-*-{id}.jsonl",
    chosen_by=("resume", "fork"),
    not_kept_with=("--ephemeral",),
    shortened=('"type":"compacted"',),
    is_bound_to_folder=False,
    # From some models to others it would first replace the history by a summary.
    takes_other_model=False,
    usage_adds_up=True,
    most_tokens=200_000,
)


def _trusting(level: str, folder: Path) -> tuple[str, ...]:
    """Return the arguments with which it trusts a folder or not in this run, even if the user has told it otherwise."""
    places = {place: None for start in (folder, folder.resolve()) for place in (start, *start.parents)}
    quoted = (msgspec.json.encode(str(place)).decode() for place in places)
    table = ",".join(f'{place}={{trust_level="{level}"}}' for place in quoted)
    return ("-c", f"projects={{{table}}}")


_RUNNING = AgentSpec(
    name="openai-codex",
    aliases=("codex",),
    provider="openai",
    command=("codex", "exec", "--json", "--skip-git-repo-check", *_KEEP_KEY, *_NO_RULES),
    last_arguments=("-",),
    assembler=CodexContextAssembler,
    parser=CodexParser,
    model_flag="--model",
    instruction_files=("AGENTS.override.md", "AGENTS.md"),
    permissions={
        "read-only": ("--sandbox", "read-only"),
        "edit": ("--sandbox", "workspace-write"),
        "full": ("--sandbox", "danger-full-access"),
    },
    allow="Codex runs any command, in its own sandbox",
    tools=_tools,
    max_prompt_bytes=1_048_576,
    environment=("CODEX_*", "OPENAI_*", "AZURE_OPENAI_*"),
    failures=(
        ("prompt_too_long", "input_too_large|context_length_exceeded|exceeds the maximum length"),
        ("not_signed_in", "Not logged in|Missing environment variable|refresh token"),
        ("quota", "hit your usage limit|insufficient_quota"),
        # The last one: a copy of a session needs the other one's file, too.
        ("session_lost", "no rollout found for thread id|failed to read session metadata|already has an active writer"),
        ("session_lost", "missing source rollout"),
    ),
    hints={
        "not_installed": "Install it with: npm install -g @openai/codex",
        "not_signed_in": "Run `codex login`, or set CODEX_API_KEY.",
    },
    tested_versions=("0.169.0",),
    own_files=OwnFiles(
        folders=(
            OwnFolder(
                path=".codex",
                variable="CODEX_HOME",
                settings=(
                    "config.toml",
                    "hooks.json",
                    "rules",
                    "AGENTS.md",
                    "AGENTS.override.md",
                    "prompts",
                    "agents",
                    "plugins",
                ),
            ),
        ),
        fails=(
            "Codex' own sandbox does not start within it where TMPDIR is set: its commands and edits fail then; only "
            'with permissions = "ask" some of what you agree to works'
        ),
    ),
    folder_settings=FolderSettings(
        files=CODEX, arguments=partial(_trusting, "untrusted"), reading_arguments=partial(_trusting, "trusted")
    ),
    sign_in=SignInProbe(
        arguments=("login", "status"),
        variables=("CODEX_API_KEY",),
        other_models=(".codex/config.toml", "model_provider"),
    ),
    sessions=_SESSIONS,
)
_ASKING = replace(
    _RUNNING,
    command=("codex", "app-server", *_KEEP_KEY, *_NO_RULES),
    last_arguments=(),
    driver=CodexDriver,
    # The model, the sandbox and the session are said to it and not given as arguments.
    model_flag=None,
    permissions={"ask": ()},
    why_not_asked=why_not_asked,
    sessions=replace(_SESSIONS, is_said=True),
)
SPEC = replace(_RUNNING, asking=_ASKING)
