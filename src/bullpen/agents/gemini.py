"""Gemini CLI: `gemini -o stream-json`, and `gemini --acp` if people are asked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bullpen.agents.acp import asking_in_acp
from bullpen.agents.acp_words import Dialect
from bullpen.agents.common_records import todo_list, usage
from bullpen.agents.folder_settings import GEMINI, GEMINI_TRUSTED, FolderSettings
from bullpen.agents.spec import AgentSpec, AllowRules, SessionSpec, SignInProbe
from bullpen.agents.tool_server import SERVER
from bullpen.context.assemblers import GeminiContextAssembler
from bullpen.sandbox.rules import OwnFiles, OwnFolder
from bullpen.turn_events import (
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    ToolFinished,
    ToolStarted,
)

GOOGLE_ACCOUNTS = (
    "Google accounts work only with a licence for Gemini Code Assist Standard or Enterprise: "
    "those without one, and AI Pro and Ultra, ended on 2026-06-18."
)
ASKS = str(Path(__file__).with_name("gemini_asks.toml"))
"""Rules with which it asks for everything. By itself it runs what it takes for harmless, such as `uniq a b`."""


class GeminiParser:
    """Collects the answer: it is only streamed, and text before the last tool call is not part of it."""

    def __init__(self) -> None:
        self._answer = bytearray()
        self._before_tools = bytearray()

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield the events of one record of the stream."""
        match record:
            case {"type": "message", "role": "assistant", "content": str(text)}:
                self._answer += text.encode(errors="replace")
                yield TextDelta(text)
            case {"type": "message", "role": "user"}:
                pass  # our own prompt
            case {"type": "tool_use", "tool_id": str(tool_id), "tool_name": str(name)}:
                self._before_tools = self._answer or self._before_tools
                self._answer = bytearray()
                parameters = _parameters(record.get("parameters"))
                yield ToolStarted(id=tool_id, name=name, input=parameters)
                if name == "write_todos" and isinstance(parameters.get("todos"), list):
                    yield todo_list(parameters["todos"], text="description")
            case {"type": "tool_result", "tool_id": str(tool_id)}:
                yield ToolFinished(
                    id=tool_id, output=str(record.get("output") or ""), failed=record.get("status") != "success"
                )
            case {"type": "init"}:
                yield Started(session_id=record.get("session_id"), model=record.get("model"))
            case {"type": "error", "message": str(message)}:
                yield Notice(kind="warning", text=message)
            case {"type": "result", "status": "success"} | {"type": "result", "success": True}:
                yield usage(record.get("stats"), cached="cached")
                yield Finished((self._answer or self._before_tools).decode(errors="replace"))
            case {"type": "result", "error": {"message": str(message)}}:
                yield usage(record.get("stats"), cached="cached")
                yield Failed(kind="crashed", message=message)
            case {"type": "result"}:
                yield Failed(kind="crashed", message="It reported an error without giving a reason.")
            case _:
                yield Notice(kind="unknown", text=str(record))


def _parameters(parameters: Any) -> dict[str, Any]:
    return parameters if isinstance(parameters, dict) else {"parameters": parameters}


UNTRUSTED = {"GEMINI_CLI_TRUST_WORKSPACE": "false"}
ONE_WAY = AgentSpec(
    name="google-gemini",
    aliases=("gemini",),
    provider="gcp.gemini",
    command=("gemini", "--output-format", "stream-json"),
    assembler=GeminiContextAssembler,
    parser=GeminiParser,
    model_flag="--model",
    instruction_files=("GEMINI.md", "AGENTS.md"),
    # Where it asks without the folder's settings, it does not trust the folder, and reads nothing of it.
    reads_by_itself=lambda permission, has_settings: ("GEMINI.md",) if has_settings or permission != "ask" else (),
    permissions={
        "read-only": ("--approval-mode", "default"),
        "edit": ("--approval-mode", "auto_edit"),
        "full": ("--approval-mode", "yolo"),
    },
    # It looks for an allowed command anywhere in a call, so a made-up parameter {"x": {"command": "pytest "}} would let
    # any other command run: read-only would not hold.
    allow=AllowRules(flag="--allowed-tools", rules=("run_shell_command({})",), permissions=("edit",)),
    # For one run it takes servers only from a file of root's, so it has the turn's tools only where people are asked.
    # Above about 4.1 MB it sends nothing, prints nothing and exits with 0.
    max_prompt_bytes=4_000_000,
    environment=("GEMINI_*", "GOOGLE_*", "CLOUD_SDK_*"),
    # A signal to its first process would not reach its second one.
    settings={"GEMINI_CLI_NO_RELAUNCH": "1"},
    failures=(
        (
            "not_signed_in",
            "set an Auth method|GEMINI_API_KEY environment variable|Invalid auth method|API key not valid",
        ),
        ("quota", "request a quota increase|RetryableQuotaError|TerminalQuotaError"),
        ("permission_refused", "not running in a trusted directory|untrusted|trusted folder"),
    ),
    # Told to come back in two hours, it waits that long, and writes nothing meanwhile.
    waits=r"Attempt \d+ failed: (?P<why>[^\n]{1,1000}?)\.? Retrying after (?P<milliseconds>\d{1,12})ms",
    exit_codes={41: "not_signed_in", 53: "turn_limit", 55: "permission_refused"},
    hints={
        "not_installed": "Install it with: npm install -g @google/gemini-cli",
        "not_signed_in": f"Set GEMINI_API_KEY, or sign in with `gemini`. {GOOGLE_ACCOUNTS}",
        "permission_refused": "Run `gemini` once in this folder and trust it.",
    },
    tested_versions=("0.61.0",),
    own_files=OwnFiles(
        folders=(
            OwnFolder(
                path=".gemini",
                variable="GEMINI_CLI_HOME",
                within=".gemini",
                settings=(
                    "settings.json",
                    ".env",
                    "GEMINI.md",
                    "agents",
                    "commands",
                    "extensions",
                    "hooks",
                    "policies",
                    "skills",
                    "trustedFolders.json",
                ),
            ),
        ),
        reads=(".config/gcloud",),
    ),
    sign_in=SignInProbe(
        variables=("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI=true"),
        files=(".gemini/oauth_creds.json", ".gemini/.env"),
        remarks={".gemini/oauth_creds.json": GOOGLE_ACCOUNTS},
    ),
    # It does not run in a folder that it does not trust. Its settings are read first, and then the option is obeyed.
    folder_settings=FolderSettings(
        files=GEMINI,
        always_read=GEMINI_TRUSTED,
        why="it runs only in a folder that it trusts",
        arguments=lambda _: ("--skip-trust",),
        environment=UNTRUSTED,
    ),
    sessions=SessionSpec(
        start=("--session-id", "{id}"),
        resume=("--resume", "{id}"),
        # The variable names another home folder, not another folder in it.
        home=".",
        home_variable="GEMINI_CLI_HOME",
        files=".gemini/tmp/*/chats/session-*-{id:.8}.jsonl",
        chosen_by=("--resume", "-r", "--session-id", "--session-file"),
        shortened=('"type":"summary"',),
        # Each time it is resumed it repeats the results of all tools to the model.
        is_proven=False,
    ),
)
SPEC = replace(
    ONE_WAY,
    # Without sessions: of those that it has just written it says that there are none, and calls come back as text.
    # Its mode is "default", not "autoEdit": there it also changes its own settings, and fetches pages, unasked.
    asking=asking_in_acp(
        replace(
            ONE_WAY,
            rule_arguments=lambda *_: ("--admin-policy", ASKS),
            folder_settings=FolderSettings(files=GEMINI, environment=UNTRUSTED),
        ),
        command=("gemini", "--acp"),
        dialect=Dialect(modes=("default",), ids_name_tools=True, titles_are_commands=True, own_tools=f"mcp_{SERVER}_"),
    ),
)
