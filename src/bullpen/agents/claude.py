"""Claude Code: `claude -p`, stream-json."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from bullpen.agents.claude_driver import ClaudeDriver
from bullpen.agents.claude_requests import ClaudeRequests
from bullpen.agents.claude_rules import DENIED, OFFERED, rule_arguments
from bullpen.agents.common_records import count, most_used, price, quota, reset_at, todo_list
from bullpen.agents.driver import Opening
from bullpen.agents.folder_settings import CLAUDE, FolderSettings
from bullpen.agents.spec import AgentSpec, AllowRules, SessionSpec, SignInProbe
from bullpen.agents.tool_server import SERVER, server_config
from bullpen.context.assemblers import ClaudeContextAssembler
from bullpen.sandbox.rules import OwnFiles, OwnFolder
from bullpen.turn_events import (
    Event,
    Failed,
    Finished,
    Notice,
    Quota,
    Started,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
    Usage,
    UsageSoFar,
)

SAYING = ("text_delta", "thinking_delta")


class ClaudeParser:
    """Remembers which message is being streamed, what the model had to leave unfinished, and the quota."""

    def __init__(self) -> None:
        self._quota: Quota | None = None
        self._streamed = ""
        self._requests = ClaudeRequests()
        self._message = bytearray()
        self._unfinished = bytearray()

    def parse(self, record: Any) -> Iterable[Event]:
        """Return the events of one record of the stream."""
        match record:
            case {
                "type": "stream_event",
                "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}},
                "parent_tool_use_id": None,
            }:
                # Nearly every line is one of these, so they are handled first.
                self._message += text.encode(errors="replace")
                return (TextDelta(text),)
        return self._other_events(record)

    def _other_events(self, record: Any) -> Iterator[Event]:
        match record:
            case {"type": "stream_event", "event": event, "parent_tool_use_id": None}:
                yield from self._streamed_event(event)
            case {"type": "stream_event", "parent_tool_use_id": str()} | {"type": "control_response"}:
                pass  # a subagent's words come as a whole, too
            case {"type": "assistant", "message": {"model": "<synthetic>"}}:
                pass  # an error in place of the agent's text; the result repeats it
            case {"type": "assistant", "message": {"content": list(blocks), "id": message_id}}:
                self._requests.note(message_id, record["message"].get("usage"))
                streamed = self._message.decode(errors="replace") if message_id == self._streamed else None
                for block in blocks:
                    yield from _block(block, streamed, from_subagent=record.get("parent_tool_use_id") is not None)
            case {"type": "user", "message": {"content": list(blocks)}}:
                if self._message or not record.get("isSynthetic"):
                    # Not Claude Code itself, telling the model to continue what it had to leave unfinished.
                    self._message.clear()
                    self._unfinished.clear()
                for block in blocks:
                    yield from _tool_result(block, record.get("tool_use_result"))
            case {"type": "user"}:
                pass
            case {"type": "system", "subtype": "init"}:
                yield Started(
                    session_id=record.get("session_id"),
                    model=record.get("model"),
                    cli_version=record.get("claude_code_version"),
                )
            case {"type": "system", "subtype": "api_retry"}:
                yield Notice(kind="retry", text=_retry(record))
            case {"type": "system", "subtype": str()}:
                pass  # what the program says of itself, or a tool's result repeats
            case {"type": "rate_limit_event", "rate_limit_info": dict(info)}:
                self._quota = _quota(info)
            case {"type": "result", "subtype": "success", "is_error": False, "result": str(text)}:
                yield replace(usage_of_models(record), quota=self._quota)
                yield Finished(self._unfinished.decode(errors="replace") + text)
                self._unfinished.clear()
            case {"type": "result"}:
                yield replace(usage_of_models(record), quota=self._quota)
                yield replace(_failed(record), reset_at=reset_at(self._quota))
            case _:
                yield Notice(kind="unknown", text=str(record))

    def _streamed_event(self, event: Any) -> Iterator[Event]:
        match event:
            case {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": str(text)}}:
                yield Thinking(text)
            case {"type": "message_start", "message": {"id": str(message_id)} as message}:
                self._streamed = message_id
                self._requests.note(message_id, message.get("usage"))
                self._message.clear()
            case {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}:
                # Claude continues by itself in another message, and its result contains only the last one.
                self._unfinished += self._message
                self._message.clear()
            case {"type": "message_delta", "delta": {"stop_reason": _}}:
                pass
            case {"type": "content_block_delta", "delta": {"type": str(kind)}} if kind not in SAYING:
                pass
            case {"type": "content_block_start" | "content_block_stop" | "message_stop" | "ping"}:
                pass
            case _:
                yield Notice(kind="unknown", text=str(event))
        if isinstance(event, dict) and event.get("type") == "message_delta":
            # A request has ended.
            self._requests.note(self._streamed, event.get("usage"))
            yield UsageSoFar(replace(self._requests.usage, quota=self._quota))


def _block(block: Any, streamed: str | None, *, from_subagent: bool) -> Iterator[Event]:
    """Yield a whole content block. Text that was streamed is not repeated, and a subagent's counts as thinking."""
    match block:
        case {"type": "text", "text": str(text)} if from_subagent:
            yield Thinking(text)
        case {"type": "text", "text": str(text)}:
            if streamed is None or text not in streamed:
                yield TextDelta(text)
            if streamed and text not in streamed:
                yield Notice(kind="unknown", text=f"What it streamed is not what it said: {streamed}")
        case {"type": "thinking", "thinking": str(text)}:
            if streamed is None:
                yield Thinking(text)
        case {"type": "tool_use", "id": str(tool_id), "name": str(name), "input": dict(tool_input)}:
            yield ToolStarted(id=tool_id, name=name, input=tool_input)
            if name == "TodoWrite" and isinstance(tool_input.get("todos"), list):
                yield todo_list(tool_input["todos"], text="content")
        case {"type": str(kind)} if kind not in ("text", "thinking", "tool_use"):
            pass  # what the vendor's own servers do
        case _:
            yield Notice(kind="unknown", text=str(block))


def _tool_result(block: Any, details: Any) -> Iterator[Event]:
    match block:
        case {"type": "tool_result", "tool_use_id": str(tool_id)}:
            changed = (details["filePath"],) if isinstance(details, dict) and "filePath" in details else ()
            yield ToolFinished(
                id=tool_id,
                output=_text_of(block.get("content")),
                failed=bool(block.get("is_error")),
                changed_files=changed,
            )


def _text_of(content: Any) -> str:
    match content:
        case str():
            return content
        case list():
            return "\n".join(_text_of(part) for part in content)
        case {"text": str(text)}:
            return text
        case None:
            return ""
        case _:
            return str(content)


def _retry(record: dict[str, Any]) -> str:
    attempts = f"attempt {record.get('attempt')} of {record.get('max_retries')}"
    status = record.get("error_status")
    reason = f"{record.get('error', 'error')} ({status})" if status else "no connection"
    return f"{reason}, {attempts}"


def usage_of_models(result: dict[str, Any]) -> Usage:
    """Return what a session has used with all models, as its last record or its file tells it."""
    # After a dropped connection `usage` is all zeros while `modelUsage` is right.
    models = result.get("modelUsage")
    per_model = [usage for usage in models.values() if isinstance(usage, dict)] if isinstance(models, dict) else []

    def total(name: str) -> int:
        return sum(count(usage.get(name)) for usage in per_model)

    cached = total("cacheReadInputTokens")
    return Usage(
        input_tokens=total("inputTokens") + cached + total("cacheCreationInputTokens"),
        output_tokens=total("outputTokens"),
        cached_tokens=cached,
        cost_usd=price(result.get("total_cost_usd")),
        context_window=max((count(usage.get("contextWindow")) for usage in per_model), default=0),
    )


def _quota(info: dict[str, Any]) -> Quota | None:
    """Return the share of the quota that is used most; Claude Code reports it to those with a subscription."""
    windows = info.get("unifiedWindows")
    several = windows.values() if isinstance(windows, dict) else ()
    return most_used(quota(one.get("utilization"), one.get("resetsAt")) for one in several if isinstance(one, dict))


def _failed(result: dict[str, Any]) -> Failed:
    match result:
        case {"subtype": "error_max_turns"}:
            return Failed(kind="turn_limit", message="It reached its limit of turns.")
        case {"result": str(text)} if text:
            return Failed(kind="crashed", message=text)
        case {"errors": [str(text), *_]}:
            return Failed(kind="crashed", message=text)
        case _:
            return Failed(kind="crashed", message=f"It ended with {result.get('subtype', 'an error')}.")


def _driver(opening: Opening) -> ClaudeDriver:
    return ClaudeDriver(opening, ClaudeParser())


def _tools(server: Sequence[str]) -> tuple[str, ...]:
    return ("--mcp-config", server_config(server), "--allowedTools", f"mcp__{SERVER}")


_OWN = OwnFiles(
    folders=(
        OwnFolder(
            path=".claude",
            variable="CLAUDE_CONFIG_DIR",
            settings=(
                *("settings.json", "settings.local.json", "CLAUDE.md", "agents", "commands", "hooks", "output-styles"),
                *("plugins", "rules", "skills", "workflows"),
            ),
            programs=("local",),
        ),
    ),
    # It also holds servers that it starts.
    copies=(".claude.json",),
    reads=(".aws", ".config/gcloud"),
)

_SPEC = AgentSpec(
    name="claude-code",
    aliases=("claude",),
    provider="anthropic",
    reports="money",
    command=(
        *("claude", "-p", "--input-format", "stream-json"),
        *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
    ),
    assembler=ClaudeContextAssembler,
    parser=ClaudeParser,
    # With plain input it exits before a full pipe has drained: a 1 MB answer arrived in one run out of three.
    driver=_driver,
    system_file_flag="--append-system-prompt-file",
    model_flag="--model",
    instruction_files=("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"),
    reads_by_itself=lambda permission, has_settings: (
        ("CLAUDE.md", ".claude/CLAUDE.md") if permission == "full" and has_settings else ()
    ),
    # A folder's own settings may name hooks, helpers and servers to run, so they apply only with full permissions.
    permissions={
        "read-only": (
            *("--permission-mode", "dontAsk", "--setting-sources", "user"),
            *(*OFFERED, "--disallowedTools", ",".join(("Edit", "Write", "NotebookEdit", *DENIED))),
        ),
        "edit": (
            *("--permission-mode", "acceptEdits", "--setting-sources", "user"),
            *(*OFFERED, "--disallowedTools", ",".join(DENIED)),
        ),
        "full": ("--dangerously-skip-permissions",),
    },
    allow=AllowRules(flag="--allowedTools", rules=("Bash({})", "Bash({} *)")),
    tools=_tools,
    max_prompt_bytes=10_000_000,
    environment=("ANTHROPIC_*", "CLAUDE_*", "AWS_*", "GOOGLE_*", "CLOUD_ML_REGION", "DISABLE_*", "IS_SANDBOX"),
    failures=(
        ("permission_refused", "root/sudo privileges"),
        ("not_signed_in", "Not logged in|Please run /login|Invalid API key|authentication_failed|OAuth token"),
        ("prompt_too_long", "Prompt is too long|piped stdin input exceeds"),
        ("session_lost", "No conversation found with session ID|Session ID .* is already in use"),
    ),
    hints={
        "not_installed": "Install it with: npm install -g @anthropic-ai/claude-code",
        "not_signed_in": "Run `claude` once and use /login, or set ANTHROPIC_API_KEY.",
        "permission_refused": 'It refuses full permissions when run as root. Use permissions = "edit" instead.',
    },
    tested_versions=("2.1.327",),
    sign_in=SignInProbe(
        arguments=("auth", "status"),
        variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    ),
    folder_settings=FolderSettings(files=CLAUDE, arguments=lambda _: ("--setting-sources", "user")),
    own_files=_OWN,
    sessions=SessionSpec(
        start=("--session-id", "{id}"),
        resume=("--resume", "{id}"),
        fork=("--resume", "{id}", "--fork-session"),
        home=".claude",
        home_variable="CLAUDE_CONFIG_DIR",
        files="projects/*/{id}.jsonl",
        chosen_by=("--resume", "-r", "--continue", "-c", "--session-id", "--fork-session"),
        not_kept_with=("--no-session-persistence",),
        shortened=('"subtype":"compact_boundary"',),
        # It records the system text at the first request, and would send that forever.
        other_system=("--system-prompt-snapshot", "off"),
        usage_adds_up=True,
    ),
)

_ASKING = ("--permission-prompt-tool", "stdio", "--permission-mode", "default", "--setting-sources", "user", *OFFERED)

SPEC = replace(
    _SPEC,
    asking=replace(
        _SPEC,
        permissions={"ask": _ASKING},
        rule_arguments=rule_arguments,
        settings={
            # Each command begins in its folder, so that a path in it means the same as to us.
            "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
            # Once one of them is begun, all that it names as its tools runs unasked: of some that is to read anything.
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
        },
    ),
)
