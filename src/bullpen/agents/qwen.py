"""Qwen Code: `qwen`, stream-json, and `qwen --acp` if people are asked."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bullpen.agents.acp import asking_in_acp
from bullpen.agents.acp_words import Dialect
from bullpen.agents.common_records import todo_list, usage
from bullpen.agents.folder_settings import QWEN, FolderSettings
from bullpen.agents.spec import AgentSpec, AllowRules, SessionSpec, SignInProbe
from bullpen.agents.tool_server import CALL_SECONDS, SERVER, server_config
from bullpen.context.assemblers import GeminiContextAssembler
from bullpen.sandbox.rules import OwnFiles, OwnFolder
from bullpen.turn_events import (
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
)

SYSTEM_SETTINGS = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
UNTRUSTED = {
    SYSTEM_SETTINGS: str(Path(__file__).with_name("qwen_trusts.json")),
    "QWEN_CODE_TRUSTED_FOLDERS_PATH": str(Path(__file__).with_name("qwen_no_folder.json")),
}
"""It is told to ask whether it may trust a folder, and that it may trust none."""
EDITS = "edit,write_file,notebook_edit"
LASTING = ("cron_create", "cron_delete", "create_sub_session", "exec", "loop_wakeup", "send_message", "team_create")
"""Tools whose work outlives the turn: it has them only if it may do everything. Where people are asked, its settings
say so: see qwen_asks.json."""
NOT_UNASKED = ",".join(("agent", "enter_worktree", *LASTING))
"""Tools that it does not ask about and that do more than edit: among the agents are claude and codex, and a worktree is
another folder, with a branch."""
# It writes an error as the agent's text, and then again in the result.
API_ERROR_PREFIX = "[API Error: "

ASKS = str(Path(__file__).with_name("qwen_asks.json"))
"""Settings below all others, with rules that add up with the user's and a folder's: what they name is always asked."""


class QwenParser:
    """Remembers whether the text was streamed: then it also comes as a whole, and is not repeated."""

    def __init__(self) -> None:
        self._streamed: str | None = None

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield the events of one record of the stream."""
        match record:
            case {"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}}:
                if record.get("parent_tool_use_id") is None:
                    for event in _delta(delta):
                        if isinstance(event, TextDelta):
                            self._streamed = (self._streamed or "") + event.text
                        yield event
            case {"type": "stream_event", "event": {"type": "message_start"}}:
                if record.get("parent_tool_use_id") is None:
                    self._streamed = ""
            case {"type": "stream_event", "event": {"type": str(kind)}} if kind != "content_block_delta":
                pass  # the limits of blocks, the progress of tools, the state of its goal
            case {"type": "assistant", "message": {"content": list(blocks)}}:
                of_subagent = record.get("parent_tool_use_id") is not None
                for block in blocks:
                    yield from _block(block, self._streamed, of_subagent=of_subagent)
            case {"type": "user", "message": {"content": list(blocks)}}:
                for block in blocks:
                    yield from _tool_result(block)
            case {"type": "system", "subtype": "init"}:
                yield Started(
                    session_id=record.get("session_id"),
                    model=record.get("model"),
                    cli_version=record.get("qwen_code_version"),
                )
            case {"type": "system", "subtype": "retry"}:
                yield Notice(kind="retry", text=_retry(record.get("data")))
            case {"type": "system", "subtype": str()}:
                pass  # what the program says of itself, and of a subagent in the background: its tool reports the same
            case {"type": "result", "is_error": False, "result": str(text)}:
                yield usage(record.get("usage"), cached="cache_read_input_tokens")
                yield Finished(text)
            case {"type": "result", "error": {"message": str(message)}}:
                yield usage(record.get("usage"), cached="cache_read_input_tokens")
                yield Failed(kind="crashed", message=message)
            case {"type": "result"}:
                yield Failed(kind="crashed", message=f"It ended with {record.get('subtype', 'an error')}.")
            case _:
                yield Notice(kind="unknown", text=str(record))


def _delta(delta: Any) -> Iterator[Event]:
    match delta:
        case {"type": "text_delta", "text": str(text)} if not text.startswith(API_ERROR_PREFIX):
            yield TextDelta(text)
        case {"type": "thinking_delta", "thinking": str(text)}:
            yield Thinking(text)
        case {"type": "text_delta", "text": str()} | {"type": "input_json_delta" | "signature_delta"}:
            pass
        case _:
            yield Notice(kind="unknown", text=str(delta))


def _block(block: Any, streamed: str | None, *, of_subagent: bool) -> Iterator[Event]:
    """Yield a whole content block. Text that was streamed is not repeated, and a subagent's is left out."""
    match block:
        case {"type": "text", "text": str(text)}:
            if of_subagent or text.startswith(API_ERROR_PREFIX):
                return
            if streamed is None or text not in streamed:
                yield TextDelta(text)
            if streamed and text not in streamed:
                yield Notice(kind="unknown", text=f"What it streamed is not what it said: {streamed}")
        case {"type": "thinking", "thinking": str(text)}:
            if streamed is None and not of_subagent:
                yield Thinking(text)
        case {"type": "tool_use", "id": str(tool_id), "name": str(name), "input": dict(tool_input)}:
            yield ToolStarted(id=tool_id, name=name, input=tool_input)
            if name == "todo_write" and isinstance(tool_input.get("todos"), list):
                yield todo_list(tool_input["todos"], text="content")
        case {"type": str(kind)} if kind not in ("text", "thinking", "tool_use"):
            pass
        case _:
            yield Notice(kind="unknown", text=str(block))


def _tool_result(block: Any) -> Iterator[Event]:
    match block:
        case {"type": "tool_result", "tool_use_id": str(tool_id)}:
            output = block.get("content")
            yield ToolFinished(
                id=tool_id, output="" if output is None else str(output), failed=bool(block.get("is_error"))
            )


def _retry(data: Any) -> str:
    match data:
        case {"attempt": int(attempt), "maxRetries": int(limit), "delayMs": int(delay)}:
            return f"attempt {attempt} of {limit}, in {delay / 1000:g} seconds"
        case {"preserveText": True}:
            return "the answer was cut off and continues"
        case _:
            return "asking the model again"


def _tools(server: Sequence[str]) -> tuple[str, ...]:
    settings = server_config(server, trust=True, alwaysLoadTools=True, timeout=1000 * CALL_SECONDS)
    return ("--mcp-config", settings)


def _obstacle(environment: Mapping[str, str]) -> str:
    """Return why it cannot be told to trust no folder: somebody else's file is where we would tell it."""
    own = environment.get(SYSTEM_SETTINGS) or "/etc/qwen-code/settings.json"
    return f"{own} has the settings of your organisation, which would be left out, too" if Path(own).exists() else ""


_SESSIONS = SessionSpec(
    start=("--session-id", "{id}"),
    resume=("--resume", "{id}"),
    fork=("--resume", "{id}", "--fork-session"),
    home=".qwen",
    home_variable="QWEN_HOME",
    files="projects/*/chats/{id}.jsonl",
    chosen_by=("--resume", "-r", "--continue", "-c", "--session-id", "--fork-session"),
    shortened=('"subtype":"chat_compression"',),
    usage_adds_up=True,
)
ONE_WAY = AgentSpec(
    name="qwen-code",
    aliases=("qwen",),
    provider="qwen",
    # Not with `--input-format stream-json`: it would wait forever for somebody to approve a tool.
    command=("qwen", "--output-format", "stream-json", "--include-partial-messages"),
    # Everything is in the prompt, below a heading: a prompt that starts with a slash would be a command to the CLI.
    assembler=GeminiContextAssembler,
    parser=QwenParser,
    model_flag="--model",
    instruction_files=("QWEN.md", "AGENTS.md"),
    reads_by_itself=lambda _, has_settings: ("QWEN.md", "AGENTS.md") if has_settings else (),
    # By default it lets a model decide what is allowed. An excluded tool is excluded regardless of its own settings.
    permissions={
        "read-only": (
            *("--approval-mode", "default"),
            *("--exclude-tools", f"edit,write_file,notebook_edit,{NOT_UNASKED}"),
        ),
        "edit": ("--approval-mode", "auto-edit", "--exclude-tools", NOT_UNASKED),
        "full": ("--approval-mode", "yolo"),
    },
    # It ignores variables before a command, and with `X="$(touch made.txt)" pytest` that is a way to write: read-only
    # would not hold. Substitutions elsewhere would run, too, if they were not excluded.
    allow=AllowRules(
        flag="--allowed-tools",
        rules=("run_shell_command({})",),
        other_arguments=(
            "--exclude-tools",
            ",".join(f"run_shell_command(*{sign}*)" for sign in ("$", "`", "<(", ">(")),
        ),
        permissions=("edit",),
    ),
    tools=_tools,
    # It drops anything over this and continues, with a warning that the model does not see.
    max_prompt_bytes=8_388_608,
    environment=("QWEN_*", "OPENAI_*", "ANTHROPIC_*", "GEMINI_*", "GOOGLE_*", "DASHSCOPE_*", "BAILIAN_*"),
    # Otherwise it starts itself again, which takes a second.
    settings={"QWEN_CODE_NO_RELAUNCH": "true"},
    failures=(
        # It answers an unknown flag with its help, which mentions keys and limits.
        ("crashed", "--help +Show help"),
        ("not_signed_in", "No auth type is selected|Missing API key|OAuth free tier"),
        ("prompt_too_long", "Context is too large|request-body limit"),
        ("session_lost", "No saved session found with ID|already exists \\(active or archived\\)"),
    ),
    exit_codes={53: "turn_limit", 55: "turn_limit"},
    hints={
        "not_installed": "Install it with: npm install -g @qwen-code/qwen-code",
        "not_signed_in": "Run `qwen` once and use /auth, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL.",
    },
    tested_versions=("0.24.4",),
    own_files=OwnFiles(
        folders=(
            OwnFolder(
                path=".qwen",
                variable="QWEN_HOME",
                settings=(
                    "settings.json",
                    ".env",
                    "QWEN.md",
                    "agents",
                    "commands",
                    "extensions",
                    "hooks",
                    "skills",
                    "trustedFolders.json",
                ),
            ),
        ),
    ),
    sign_in=SignInProbe(
        variables=("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"),
        files=(".qwen/settings.json", ".qwen/.env"),
    ),
    folder_settings=FolderSettings(
        files=QWEN,
        environment=UNTRUSTED,
        # In a folder that it does not trust it has no other mode, so its tools are named.
        permissions={
            "edit": ("--approval-mode", "default", "--exclude-tools", NOT_UNASKED, "--allowed-tools", EDITS),
            "full": ("--approval-mode", "default", "--allowed-tools", f"{EDITS},run_shell_command,web_fetch,agent"),
        },
        obstacle=_obstacle,
    ),
    sessions=_SESSIONS,
)
SPEC = replace(
    ONE_WAY,
    # It begins in a mode in which a model decides. In "auto-edit" it fetches pages unasked.
    asking=asking_in_acp(
        replace(
            ONE_WAY,
            settings={**ONE_WAY.settings, "QWEN_CODE_SYSTEM_DEFAULTS_PATH": ASKS},
            folder_settings=replace(ONE_WAY.folder_settings, permissions={}),
        ),
        command=("qwen", "--acp"),
        dialect=Dialect(modes=("default",), words_request="craft/drainMidTurnQueue", own_tools=f"mcp__{SERVER}__"),
        # It chooses the id, and reports for each turn what that used.
        sessions=replace(_SESSIONS, start=(), fork=(), is_said=True, usage_adds_up=False),
    ),
)
