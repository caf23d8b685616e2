"""pi: `pi --print --mode json`. It asks nobody; what it may do is which tools it has."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bullpen.agents.common_records import count, price
from bullpen.agents.folder_settings import PI, PI_SETTINGS, FolderSettings
from bullpen.agents.spec import AgentSpec, SessionSpec
from bullpen.agents.vendor_variables import VENDOR_VARIABLES
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
    Usage,
    UsageSoFar,
)

READING = "read,grep,find,ls"
IN_ITS_FOLDER = str(Path(__file__).with_name("pi_in_its_folder.js"))
"""An extension that lets it change usual files in its folder only: by itself it changes any file."""
TESTED = "0.87.1"
SAID_ELSEWHERE = frozenset(
    {
        *("agent_start", "agent_settled", "turn_start", "turn_end", "message_start", "tool_execution_update"),
        *("queue_update", "entry_appended", "session_info_changed", "thinking_level_changed"),
        *("summarization_retry_scheduled", "summarization_retry_attempt_start", "summarization_retry_finished"),
    }
)
"""Records that repeat what others say, or say nothing."""
SAYING = ("text_delta", "thinking_delta")


class PiParser:
    """Adds up what each request used; the last message of the agent is the answer, or why there is none."""

    def __init__(self) -> None:
        self._usage = Usage()
        self._last: dict[str, Any] = {}

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield the events of one record of the stream."""
        match record:
            case {"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "delta": str(text)}}:
                yield TextDelta(text)
            case {"type": "message_update", "assistantMessageEvent": {"type": "thinking_delta", "delta": str(text)}}:
                yield Thinking(text)
            case {"type": "message_update", "assistantMessageEvent": {"type": str(kind)}} if kind not in SAYING:
                pass  # the limits of blocks, and calls whose input is not whole yet
            case {"type": "message_end", "message": {"role": "assistant"} as message}:
                self._last = message
                self._add(message.get("usage"))
                yield UsageSoFar(self._usage)
            case {"type": "message_end", "message": {"role": str()}}:
                pass  # our own prompt, and results of tools
            case {"type": "tool_execution_start", "toolCallId": str(call), "toolName": str(name)}:
                given = record.get("args")
                yield ToolStarted(id=call, name=name, input=given if isinstance(given, dict) else {"args": given})
            case {"type": "tool_execution_end", "toolCallId": str(call)}:
                failed = bool(record.get("isError"))
                yield ToolFinished(id=call, output=_text(record.get("result")), failed=failed)
            case {"type": "session"}:
                yield Started(session_id=record.get("id"))
            case {"type": "auto_retry_start"}:
                yield Notice(kind="retry", text=_retry(record))
            case {"type": "compaction_start" | "compaction_end" | "auto_retry_end"}:
                pass
            case {"type": "agent_end"}:
                yield self._usage
                yield self._ending()
            case {"type": str(kind)} if kind in SAID_ELSEWHERE:
                pass
            case _:
                yield Notice(kind="unknown", text=str(record))

    def _add(self, told: object) -> None:
        told = told if isinstance(told, dict) else {}
        cost = told.get("cost")
        paid = price(cost.get("total")) if isinstance(cost, dict) else None
        cached = count(told.get("cacheRead"))
        self._usage = Usage(
            input_tokens=self._usage.input_tokens + count(told.get("input")) + cached + count(told.get("cacheWrite")),
            output_tokens=self._usage.output_tokens + count(told.get("output")),
            cached_tokens=self._usage.cached_tokens + cached,
            cost_usd=self._usage.cost_usd if paid is None else (self._usage.cost_usd or 0.0) + paid,
        )

    def _ending(self) -> Finished | Failed:
        match self._last.get("stopReason"):
            case "error" | "aborted":
                message = self._last.get("errorMessage")
                return Failed(kind="crashed", message=str(message or "It reported an error without giving a reason."))
            case _:
                return Finished(_text(self._last))


def _text(message: object) -> str:
    """Return the text of a message, or of the result of a tool."""
    blocks = message.get("content") if isinstance(message, dict) else None
    texts = [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def _retry(record: dict[str, Any]) -> str:
    attempt, limit = count(record.get("attempt")), count(record.get("maxAttempts"))
    return f"attempt {attempt} of {limit}, in {count(record.get('delayMs')) / 1000:g} seconds"


SPEC = AgentSpec(
    name="pi",
    command=("pi", "--print", "--mode", "json"),
    # Everything is below a heading: a prompt that starts with a slash would be a command.
    assembler=GeminiContextAssembler,
    parser=PiParser,
    reports="money",
    model_flag="--model",
    instruction_files=("AGENTS.md", "CLAUDE.md"),
    reads_by_itself=lambda *_: ("AGENTS.md", "CLAUDE.md"),
    # Extensions, of the folder too, are programs, and would run unasked.
    permissions={
        "read-only": ("--no-extensions", "--tools", READING),
        "edit": ("--no-extensions", "--extension", IN_ITS_FOLDER, "--tools", f"{READING},edit,write"),
        "full": ("--tools", f"{READING},edit,write,bash"),
    },
    allow="pi either may run any command or has no tool that does",
    environment=("PI_*", *VENDOR_VARIABLES),
    # Otherwise it installs what the folder's settings name.
    settings={"PI_OFFLINE": "1"},
    failures=(("not_signed_in", "No API key found|No models available"),),
    hints={
        "not_installed": f"Install it with: npm install -g @earendil-works/pi-coding-agent@{TESTED}"
        " (it needs Node.js 22.19 or newer)",
        "not_signed_in": "Run `pi` once and use /login, or set the key of your provider, e.g. ANTHROPIC_API_KEY.",
    },
    tested_versions=(TESTED,),
    own_files=OwnFiles(
        folders=(
            OwnFolder(
                path=".pi/agent",
                variable="PI_CODING_AGENT_DIR",
                settings=(
                    "settings.json",
                    "models.json",
                    "AGENTS.md",
                    "SYSTEM.md",
                    "extensions",
                    "git",
                    "npm",
                    "prompts",
                    "skills",
                    "themes",
                    "tools",
                ),
            ),
        ),
        reads=(".aws", ".azure", ".config/gcloud"),
    ),
    folder_settings=FolderSettings(files=PI, always_read=(PI_SETTINGS,), arguments=lambda _: ("--no-extensions",)),
    sessions=SessionSpec(
        resume=("--session", "{id}"),
        fork=("--fork", "{id}"),
        home=".pi/agent",
        home_variable="PI_CODING_AGENT_DIR",
        files="sessions/*/*_{id}.jsonl",
        chosen_by=("--session", "--fork", "--continue", "-c", "--resume", "-r", "--session-dir"),
        not_kept_with=("--no-session",),
        shortened=('"type":"compaction"',),
    ),
)
