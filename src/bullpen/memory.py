"""Memory: what a member's own CLI session holds after a turn, and in which session a turn runs."""

from typing import Literal

from msgspec import Struct

from bullpen.turn_events import Usage

Origin = Literal["new", "resumed", "forked", "rebuilt"]
"""How a turn got its session: begun, continued, copied, or begun because the one before it could not be continued."""


def made_to_forget(person: str) -> str:
    """Return the reason why a session does not continue that a person wants to end."""
    return f"{person} made it forget"


class FileMark(Struct, frozen=True, kw_only=True):
    """What a session's file was after a turn."""

    size: int
    digest: str
    changed_at: int = 0
    """When it was last changed, in nanoseconds since 1970."""


class SessionLeft(Struct, frozen=True, kw_only=True):
    """The session that a turn left which ended well, as the machine sees it that has its file."""

    id: str
    """Empty: it left none that could be continued."""
    file: FileMark
    is_shortened: bool = False
    """Whether the CLI has replaced a part of it with a summary."""
    worker: str = ""
    """The worker that has its file; empty: it is where the conversation is."""


class SessionUse(Struct, frozen=True, kw_only=True):
    """The session in which a turn runs, as it is known before the turn."""

    origin: Origin
    id: str = ""
    """The session to begin or to continue; of a fork, the one it is copied from. Empty: the CLI chooses one."""
    reason: str = ""
    """Why the session before it could not be continued."""
    continues: str = ""
    """The turn after which it continues."""
    turns: int = 0
    """How many turns it holds already."""
    has_other_system: bool = False
    """Whether the system text is not the one that it began with."""

    @property
    def sentence(self) -> str:
        """What a person should know about it; nothing if it simply continues, or is the first."""
        return f"Its session was rebuilt from the conversation: {self.reason}." if self.reason else ""

    @property
    def is_continued(self) -> bool:
        """Whether the agent knows what it got in earlier turns."""
        return self.origin in ("resumed", "forked")


class Memory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member's session after a turn that ended well, and what the model has seen in it.

    Messages are counted from 1. The next turn is given what is not settled here.
    """

    session_id: str
    origin: Origin = "new"
    reason: str = ""
    turns: int = 1
    """How many turns it holds."""
    began_at: int
    since: int
    """The first message of the conversation that it was offered, apart from early ones."""
    seen_to: int
    """All messages up to this one are settled, except for pending ones."""
    pending: tuple[str, ...] = ()
    """Messages up to there that it was not given: others said them at the same time, or there was no room for them."""
    early: tuple[str, ...] = ()
    """Messages before the first one that it was given all the same."""
    said: tuple[str, ...] = ()
    """Its own replies after `seen_to`."""
    agent: str
    folder: str
    model: str | None = None
    """The model that the team file asks for."""
    used_model: str | None = None
    """The model that the CLI says it used."""
    visibility: str
    first_system: str = ""
    """The digest of the system text that it began with."""
    system: str = ""
    """The digest of the system text that it was given last."""
    task: str = ""
    """The digest of the team task that it was given last."""
    file: FileMark
    tokens: int = 0
    """How large it is: a guess from the size of its file, which also holds what the CLI notes there for itself."""
    window: int = 0
    """The tokens that its model can take in at once, as the CLI says; 0: it does not say."""
    used: Usage | None = None
    """All that its turns used together, if the CLI reports that."""
    is_shortened: bool = False
    """Whether the CLI has replaced a part of it with a summary."""
    worker: str = ""
    """The worker that has its file; empty: it is where the conversation is."""


class MemberMemory(Struct, frozen=True, kw_only=True):
    """A member's memory, and the turn that left it."""

    turn_id: str
    reply_id: str
    """What the turn ended with."""
    memory: Memory
