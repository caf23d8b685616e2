"""Any agent that speaks the Agent Client Protocol: `agent = "acp"` with its command."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from bullpen.agents.acp_driver import AcpDriver
from bullpen.agents.acp_words import Dialect
from bullpen.agents.command import TextParser
from bullpen.agents.folder_settings import ANY_PROGRAM
from bullpen.agents.spec import AgentSpec, SessionSpec
from bullpen.context.assemblers import GeminiContextAssembler

ANY_AGENT = Dialect(
    modes=(
        "default",
        "ask",
        "normal",
        "workspace-write",
        "https://agentclientprotocol.com/protocol/session-modes#agent",
    ),
    needs_mode=False,
    sets_model=True,
)
"""In this order, since the modes of several agents have the same names."""


def tools_by_protocol(_: Sequence[str]) -> tuple[str, ...]:
    """Return nothing: the driver tells it when its session begins."""
    return ()


def asking_in_acp(
    spec: AgentSpec, *, command: tuple[str, ...], dialect: Dialect, sessions: SessionSpec | None = None
) -> AgentSpec:
    """Return how a CLI is run that asks people only by way of the protocol; without `sessions` each turn is new."""
    return replace(
        spec,
        command=command,
        driver=partial(AcpDriver, dialect=dialect),
        ends_by_itself=False,
        permissions={"ask": ()},
        allow="bullpen answers what it asks",
        tools=tools_by_protocol,
        sessions=sessions,
    )


SPEC = AgentSpec(
    name="acp",
    command=("acp",),
    needs_command=True,
    # Which of them such a program reads by itself is not known.
    instruction_files=(),
    # Everything is below a heading: a prompt that starts with a slash would be a command to many agents.
    assembler=GeminiContextAssembler,
    parser=TextParser,
    driver=partial(AcpDriver, dialect=ANY_AGENT),
    ends_by_itself=False,
    permissions={"read-only": (), "edit": (), "ask": (), "full": ()},
    allow="bullpen answers what this program asks; what it asks is up to its own settings",
    tools=tools_by_protocol,
    folder_settings=ANY_PROGRAM,
    hints={
        "not_installed": "Check its command in your team file, and your PATH.",
        "not_signed_in": "Sign in with the program itself.",
    },
)
