"""OpenCode: `opencode acp`. What it prints without the protocol has no text in pieces, and nobody can be asked."""

from functools import partial

import msgspec

from bullpen.agents.acp import tools_by_protocol
from bullpen.agents.acp_driver import AcpDriver
from bullpen.agents.acp_words import Dialect
from bullpen.agents.command import TextParser
from bullpen.agents.folder_settings import OPENCODE, FolderSettings
from bullpen.agents.spec import AgentSpec
from bullpen.agents.tool_server import SERVER
from bullpen.agents.vendor_variables import VENDOR_VARIABLES
from bullpen.context.assemblers import GeminiContextAssembler
from bullpen.sandbox.rules import OwnFiles, OwnFolder

MODE = "bullpen"
"""An agent of our own in its settings: what a user's other agents may do unasked does not count for it."""
FREE = ("glob", "grep", "list", "lsp", "skill", "todoread", "todowrite", f"{SERVER}_*")
DENIED = ("plan_enter", "plan_exit", "question", "task")
"""A subagent would have permissions of its own, and nobody could answer a question."""
RULES = {
    # By itself it asks nobody. The last rule that fits counts.
    "*": "ask",
    "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"},
    **dict.fromkeys(FREE, "allow"),
    **dict.fromkeys(DENIED, "deny"),
}
CONFIG = {"agent": {MODE: {"mode": "primary", "permission": RULES}}, "default_agent": MODE, "share": "disabled"}
# By name, since others, such as OPENCODE_PERMISSION, decide what agents may do or how much is tried out.
VARIABLES = (
    *("OPENCODE_API_KEY", "OPENCODE_AUTH_CONTENT", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_CONSOLE_TOKEN"),
    *("OPENCODE_DISABLE_*", "OPENCODE_MODELS_PATH", "OPENCODE_MODELS_URL", "OPENCODE_PURE"),
)

SPEC = AgentSpec(
    name="opencode",
    command=("opencode", "acp"),
    # Everything is below a heading: a prompt that starts with a slash would be a command.
    assembler=GeminiContextAssembler,
    parser=TextParser,
    driver=partial(AcpDriver, dialect=Dialect(modes=(MODE,), sets_model=True, places_apart=True)),
    ends_by_itself=False,
    permissions={"read-only": (), "edit": (), "ask": (), "full": ()},
    allow="bullpen answers what it asks",
    tools=tools_by_protocol,
    environment=(*VARIABLES, *VENDOR_VARIABLES),
    settings={
        "OPENCODE_CONFIG_CONTENT": msgspec.json.encode(CONFIG).decode(),
        # Programs that a folder's own settings name would run unasked.
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    },
    hints={
        "not_installed": "Install it with: npm install -g opencode-ai",
        "not_signed_in": "Run `opencode auth login`, or set the key of your provider, e.g. ANTHROPIC_API_KEY.",
    },
    tested_versions=("1.18.33",),
    # It runs a folder's plugins, even if it is told to disable them and the folder's settings.
    own_files=OwnFiles(
        folders=(
            OwnFolder(path=".local/share/opencode", variable="XDG_DATA_HOME", within="opencode", programs=("bin",)),
            OwnFolder(path=".local/state/opencode", variable="XDG_STATE_HOME", within="opencode"),
            OwnFolder(
                path=".cache/opencode",
                variable="XDG_CACHE_HOME",
                within="opencode",
                programs=("bin", "node_modules", "package.json", "packages"),
            ),
            OwnFolder(
                path=".config/opencode",
                variable="XDG_CONFIG_HOME",
                within="opencode",
                settings=(
                    *("opencode.json", "opencode.jsonc", "config.json", "AGENTS.md", "skills", "themes"),
                    *(f"{kind}{many}" for kind in ("plugin", "tool", "agent", "command", "mode") for many in ("", "s")),
                ),
                programs=("bun.lock", "node_modules", "package.json"),
            ),
        ),
        reads=(".aws", ".azure", ".config/gcloud"),
    ),
    folder_settings=FolderSettings(files=OPENCODE, always_read=OPENCODE),
    why_no_sessions="opencode has all sessions in one database, so bullpen cannot put one back after a bad turn",
)
