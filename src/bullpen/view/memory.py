"""MemoryView: what a member remembers between its turns, as every door shows it."""

from typing import Literal

from msgspec import Struct

from bullpen.memory import Memory, made_to_forget
from bullpen.routing.progress import Progress
from bullpen.team.own_memory import why_shared_here
from bullpen.team.team import Member
from bullpen.text.numbers import counted, local_time, tokens

SHORT_ID = 8
"""Characters of a session's id that tell it from others of one member."""


class MemoryView(Struct, frozen=True, kw_only=True):
    """The session of its CLI that a member continues in its next turn, or else why it has none."""

    kind: Literal["own", "shared"]
    """Shared: it knows only what each turn gives it of the conversation."""
    why: str = ""
    """Why it has no memory of its own, or no session to continue in its next turn."""
    copy_of: str = ""
    """The session of another conversation, or of a person, that its first turn continues in a copy, if it still can."""
    session_id: str = ""
    since: int | None = None
    """When the session began, in milliseconds since 1970."""
    turns: int = 0
    tokens: int = 0

    @property
    def short(self) -> str:
        """How much there is, on one line: "remembers 3 turns · 12k tokens"."""
        return " · ".join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """How much there is, in parts that a narrow place can put on lines of their own."""
        if self.kind == "shared":
            return ("no memory of its own",)
        if self.copy_of and not self.why:
            return ("continues a copy",)
        if not self.session_id:
            return ("no session yet",)
        return f"remembers {counted(self.turns, 'turn')}", tokens(self.tokens)

    @property
    def sentence(self) -> str:
        """All of it, on one line."""
        if self.kind == "shared":
            return f"no memory of its own: {self.why}"
        if not self.session_id:
            copied = f"its first turn continues a copy of {self.copy_of}, if that can still be continued"
            return f"no session: {self.why or copied}"
        began = f"{self.short} since {local_time(self.since or 0)}, session {self.session_id}"
        return f"{began}; its next turn begins a new one: {self.why}" if self.why else began

    @property
    def short_id(self) -> str:
        """Enough of the session's id for a narrow place: its last characters, where those of one machine differ."""
        return self.session_id[-SHORT_ID:]


def memory_view(member: Member, memory: Memory | None, progress: Progress) -> MemoryView:
    """Return what an agent remembers, from what is known without looking at files."""
    if why := why_shared_here(member):
        return MemoryView(kind="shared", why=why)
    person, borrowed = progress.forgotten.get(member.name), progress.borrowed.get(member.name)
    forgets = made_to_forget(person) if person is not None else ""
    if memory is None and borrowed is not None:
        return MemoryView(kind="own", why=forgets, copy_of=borrowed.memory.session_id)
    if memory is None:
        return MemoryView(kind="own", why=forgets or "it has not had a turn here")
    if not memory.session_id:
        return MemoryView(kind="own", why=forgets or "its last turn left none")
    return MemoryView(
        kind="own",
        why=forgets,
        session_id=memory.session_id,
        since=memory.began_at,
        turns=memory.turns,
        tokens=memory.tokens,
    )
