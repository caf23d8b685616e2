"""Mistral Vibe: `vibe-acp`. By itself `vibe` prints no text in pieces, and takes its prompt as an argument."""

from functools import partial

import msgspec

from bullpen.agents.acp import tools_by_protocol
from bullpen.agents.acp_driver import AcpDriver
from bullpen.agents.acp_words import Dialect
from bullpen.agents.command import TextParser
from bullpen.agents.folder_settings import VIBE, FolderSettings
from bullpen.agents.spec import AgentSpec, SignInProbe
from bullpen.context.assemblers import GeminiContextAssembler
from bullpen.sandbox.rules import OwnFiles, OwnFolder

ASKED = ("bash", "experimental_bash", "git_bash", "powershell", "write_file", "edit", "web_fetch", "web_search", "task")
TOOLS = {name: {"permission": "ask", "allowlist": []} for name in ASKED}
"""Every command and edit is asked for. By itself it runs those unasked that it takes for harmless."""
# By name, since others decide what it may do, such as VIBE_TOOLS__BASH__PERMISSION.
VARIABLES = ("VIBE_ACTIVE_MODEL", "VIBE_HOME", "VIBE_MODELS", "VIBE_PROVIDERS")

SPEC = AgentSpec(
    name="mistral-vibe",
    aliases=("vibe",),
    provider="mistral_ai",
    command=("vibe-acp",),
    # Everything is below a heading: a prompt that starts with a slash would be a command.
    assembler=GeminiContextAssembler,
    parser=TextParser,
    # It begins in "accept-edits", where it changes files unasked.
    driver=partial(AcpDriver, dialect=Dialect(modes=("ask",), sets_model=True, usage_adds_up=True)),
    ends_by_itself=False,
    permissions={"read-only": (), "edit": (), "ask": (), "full": ()},
    allow="bullpen answers what it asks",
    tools=tools_by_protocol,
    environment=("MISTRAL_*", *VARIABLES),
    settings={"VIBE_TOOLS": msgspec.json.encode(TOOLS).decode(), "VIBE_BYPASS_TOOL_PERMISSIONS": "false"},
    hints={
        "not_installed": "Install it with: uv tool install mistral-vibe (it needs Python 3.12 or newer)",
        "not_signed_in": "Run `vibe --setup`, or set MISTRAL_API_KEY.",
    },
    tested_versions=("3.0.2",),
    # vibe-acp loads everything before it says which version it is: 2.5 s of work, where vibe needs 0.04 s.
    version_program="vibe",
    # It reads them if the user has told it to trust the folder; then it also runs what they allow.
    own_files=OwnFiles(
        folders=(
            OwnFolder(
                path=".vibe",
                variable="VIBE_HOME",
                settings=(
                    "config.toml",
                    ".env",
                    "hooks.toml",
                    "agents",
                    "plugins",
                    "prompts",
                    "skills",
                    "tools",
                    "trusted_folders.toml",
                ),
            ),
        ),
    ),
    folder_settings=FolderSettings(files=VIBE, always_read=VIBE),
    why_no_sessions="vibe replaces the files of a session, so bullpen cannot put one back after a bad turn",
    sign_in=SignInProbe(variables=("MISTRAL_API_KEY",), files=(".vibe/.env",), is_complete=False),
)
