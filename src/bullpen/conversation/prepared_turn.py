"""PreparedTurn: what an agent is given for a turn, and the session in which it runs."""

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.held_session import WantedSession
from bullpen.agents.session_lock import SessionLock
from bullpen.context.prompt import AssemblerOutput
from bullpen.memory import MemberMemory, SessionUse


class Seen(Struct, frozen=True, kw_only=True):
    """What a session has seen when the turn has ended; see Memory."""

    since: int
    seen_to: int
    pending: tuple[str, ...] = ()
    early: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    system: str = ""
    task: str = ""


class SessionPlan(Struct, frozen=True, kw_only=True):
    """The session in which a turn will run, decided before its prompt is made."""

    use: SessionUse
    left: MemberMemory | None = None
    """What the session holds; None: it is new."""
    wanted: WantedSession | None = None
    """What its file must be; None: it is new."""
    lock: SessionLock | None = None
    """Held while the turn runs; None: it is new, or on another machine."""

    def release(self) -> None:
        """Let others use the session."""
        if self.lock is not None:
            self.lock.release()


class PreparedTurn(Struct, frozen=True, kw_only=True):
    """What an agent is given for a turn, and the session in which it runs."""

    output: AssemblerOutput
    plan: SessionPlan | None = None
    """None: the agent has no memory of its own."""
    seen: Seen | None = None
    """What its session has seen when the turn has ended well."""
    fresh: "PreparedTurn | None" = None
    """If the machine decides that has the session's file: the same turn in a new session."""

    def begun_again(self, reason: str) -> "PreparedTurn":
        """Return the turn as it was given in a new session, since the other one could not be continued there."""
        fresh = self.fresh
        if fresh is None or fresh.plan is None:
            return self
        plan = replace(fresh.plan, use=replace(fresh.plan.use, reason=reason))
        return replace(fresh, plan=plan, output=in_session(fresh.output, plan.use))


def in_session(output: AssemblerOutput, use: SessionUse) -> AssemblerOutput:
    """Return what an agent is given, with a report that says in which session."""
    return replace(output, report=replace(output.report, session=use))
