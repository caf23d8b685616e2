"""GitHub Copilot CLI: `copilot --output-format json`, and `copilot --acp` if people are asked."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from bullpen.agents.acp import asking_in_acp
from bullpen.agents.acp_words import Dialect
from bullpen.agents.folder_settings import COPILOT, FolderSettings
from bullpen.agents.spec import AgentSpec, SessionSpec, SignInProbe
from bullpen.agents.tool_server import SERVER, server_config
from bullpen.context.assemblers import GeminiContextAssembler
from bullpen.program_files import BEGINNINGS, ENDINGS, FILES, FOLDERS, LAST_NAMES
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

SAID_ELSEWHERE = ("assistant.", "hook.", "model.", "permission.", "session.", "system.", "tool.", "user.")
"""How the types of records begin that say nothing new."""


class CopilotParser:
    """Remembers the last message and the last error: one of them is what the turn ends with."""

    def __init__(self) -> None:
        self._is_started = False
        self._answer = ""
        self._error = ""

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield the events of one record of the stream."""
        if not self._is_started and isinstance(record.get("type"), str):
            self._is_started = True
            yield Started()
        match record:
            # What a subagent says is for the agent, not for the team.
            case {"type": "assistant.message_delta" | "assistant.message", "data": {"parentToolCallId": str()}}:
                pass
            case {"type": "assistant.message_delta", "data": {"deltaContent": str(text)}}:
                yield TextDelta(text)
            case {"type": "assistant.reasoning_delta", "data": {"deltaContent": str(text)}}:
                yield Thinking(text)
            case {"type": "assistant.message", "data": {"content": str(text)}}:
                self._answer = text or self._answer
            case {"type": "assistant.message" | "assistant.message_delta"}:
                yield Notice(kind="unknown", text=str(record))
            case {"type": "tool.execution_start", "data": {"toolCallId": str(call), "toolName": str(name)} as data}:
                given = data.get("arguments")
                yield ToolStarted(id=call, name=name, input=given if isinstance(given, dict) else {"input": given})
            case {"type": "tool.execution_complete", "data": {"toolCallId": str(call)} as data}:
                yield _finished(call, data)
            case {"type": "assistant.turn_retry", "data": dict(data)}:
                yield Notice(kind="retry", text=f"asking the model again: {data.get('reason') or 'no reason given'}")
            case {"type": "session.error", "data": {"message": str(message)}}:
                self._error = message
            case {"type": "result"}:
                # It says only now in which session it was.
                yield Started(session_id=record.get("sessionId"))
                yield self._ending(record.get("exitCode"))
            case {"type": str(kind)} if kind.startswith(SAID_ELSEWHERE):
                pass
            case _:
                yield Notice(kind="unknown", text=str(record))

    def _ending(self, exit_code: object) -> Finished | Failed:
        if exit_code == 0:
            return Finished(self._answer)
        return Failed(kind="crashed", message=self._error or "It reported an error without giving a reason.")


def _finished(call: str, data: dict[str, Any]) -> ToolFinished:
    match data:
        case {"success": True, "result": {"content": str(output)}}:
            pass
        case {"error": {"message": str(output)}}:
            pass
        case _:
            output = ""
    edits = data.get("fileEdits")
    paths = [edit.get("path") for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    changed = tuple(path for path in paths if isinstance(path, str))
    return ToolFinished(id=call, output=output, failed=data.get("success") is not True, changed_files=changed)


def _tools(server: Sequence[str]) -> tuple[str, ...]:
    return ("--additional-mcp-config", server_config(server, type="local", tools=["*"]), f"--allow-tool={SERVER}")


USUAL = ("--no-auto-update", "--disable-builtin-mcps", "--no-ask-user")
# What is denied is denied even if a user has allowed it for good. A subagent has tools of its own.
NO_COMMANDS = ("--deny-tool=shell", "--deny-tool=url", "--excluded-tools=task", "--disallow-temp-dir")
# What decides what runs: a file in these folders, wherever they are; a hidden file; settings that are not hidden.
# All hidden folders would be too many: then nothing could be edited where the project itself is in one.
UNUSUAL = (
    *(f"{folder}/**" for folder in sorted(FOLDERS)),
    *(".*", "HEAD", "Jenkinsfile*", *sorted(FILES | LAST_NAMES)),
    *(*(f"{beginning}*" for beginning in BEGINNINGS), *(f"*{ending}" for ending in ENDINGS)),
)
NOT_UNUSUAL = tuple(f"--deny-tool=write({pattern})" for pattern in UNUSUAL)
# By name, since COPILOT_ALLOW_ALL in a user's shell would allow everything, and trust the folder.
VARIABLES = (
    *("COPILOT_AUTO_TIER", "COPILOT_AUTO_UPDATE", "COPILOT_CACHE_HOME", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"),
    *("COPILOT_GH_HOST", "COPILOT_GITHUB_TOKEN", "COPILOT_HOME", "COPILOT_MODEL", "COPILOT_OFFLINE", "COPILOT_OTEL_*"),
    *("COPILOT_PROVIDER_*", "GH_HOST", "GH_TOKEN", "GITHUB_TOKEN"),
)
_SESSIONS = SessionSpec(
    start=("--session-id={id}",),
    # With --session-id, it would begin a new one if there is none.
    resume=("--resume={id}",),
    home=".copilot",
    home_variable="COPILOT_HOME",
    files="session-state/{id}/events.jsonl",
    # It may sum the history up for another one.
    takes_other_model=False,
    shortened=('"type":"session.compaction_', '"type":"session.truncation"', '"type":"session.snapshot_rewind"'),
    chosen_by=("--session-id", "--resume", "-r", "--continue", "--connect"),
)

ONE_WAY = AgentSpec(
    name="github-copilot",
    aliases=("copilot",),
    command=("copilot", "--output-format", "json", *USUAL),
    # Everything is below a heading: a prompt that starts with a slash would be a command.
    assembler=GeminiContextAssembler,
    parser=CopilotParser,
    # It says how many requests GitHub counts, but no tokens.
    reports="nothing",
    model_flag="--model",
    reads_by_itself=lambda *_: ("AGENTS.md",),
    permissions={
        "read-only": ("--deny-tool=write", *NO_COMMANDS),
        "edit": ("--allow-tool=write", *NOT_UNUSUAL, *NO_COMMANDS),
        "full": ("--allow-all",),
    },
    allow="bullpen does not use its rules: what else they let run has not been tried",
    tools=_tools,
    environment=VARIABLES,
    failures=(
        ("session_lost", "No session, task, or name matched"),
        ("not_signed_in", "No authentication information found|copilot login|Authentication failed"),
    ),
    # With --acp it runs a folder's hooks unasked; and it reads everything if the user has told it to trust the folder.
    own_files=OwnFiles(
        folders=(
            OwnFolder(
                path=".copilot",
                variable="COPILOT_HOME",
                settings=(
                    "settings.json",
                    "mcp-config.json",
                    "lsp-config.json",
                    "agents",
                    "extensions",
                    "hooks",
                    "installed-plugins",
                    "skills",
                    "copilot-instructions.md",
                ),
            ),
            # It unpacks itself there: `bullpen doctor` lets it do so, if nobody has run it yet.
            OwnFolder(path=".cache/copilot", variable="XDG_CACHE_HOME", within="copilot", programs=("pkg",)),
        ),
        reads=(".config/gh",),
    ),
    folder_settings=FolderSettings(files=COPILOT, always_read=COPILOT),
    sessions=_SESSIONS,
    hints={
        "not_installed": "Install it with: npm install -g @github/copilot",
        "not_signed_in": "Run `copilot login`, or set COPILOT_GITHUB_TOKEN; `copilot help providers` says how to use "
        "a model of your own.",
    },
    tested_versions=("1.0.102",),
    sign_in=SignInProbe(
        variables=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"),
        is_complete=False,
    ),
)
SPEC = replace(
    ONE_WAY,
    asking=replace(
        asking_in_acp(
            ONE_WAY,
            command=("copilot", "--acp", *USUAL),
            dialect=Dialect(
                # In "autopilot" everything is allowed.
                modes=("https://agentclientprotocol.com/protocol/session-modes#agent",),
                takes_servers=False,
                usage_adds_up=True,
                own_words=r"Info: (Operation cancelled by user|Request failed due to a .*Retrying\.\.\.|/.*)",
                errors_begin_with="Error: ",
            ),
            # There it chooses the id.
            sessions=replace(_SESSIONS, start=(), is_said=True),
        ),
        reports="tokens",
        tools=_tools,
    ),
)
