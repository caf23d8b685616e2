"""Memories: in which session a turn runs, and what its member's session holds after it."""

import hashlib
import logging
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.session_file import find_session_file, is_session_id, mark_of, put_back
from bullpen.agents.session_lock import SessionLock
from bullpen.agents.spec import SessionSpec
from bullpen.conversation.checks_in_prompts import checks_note
from bullpen.conversation.files_in_prompts import files_note
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.session_rules import has_own_memory, is_left_by, session_file, why_not, why_not_after
from bullpen.conversation.unfinished_turns import turns_in_session, unfinished_note
from bullpen.memory import FileMark, MemberMemory, Memory, Origin, SessionUse, made_to_forget
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store, Turn
from bullpen.turn_events import Started, Usage

logger = logging.getLogger(__name__)

BYTES_PER_TOKEN = 4
"""For a guess how large a session is: what the CLIs write to its file is about what the model gets."""
LOOK_BACK = 200
"""How many messages are searched for an agent's last reply, to tell it of its turns since."""
NO_FILE = FileMark(size=0, digest="")


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
    longer_file: Path | None = None
    """Its file, if a turn that ended badly has left something in it."""
    lock: SessionLock | None = None
    """Held while the turn runs; None: it is new."""

    def release(self) -> None:
        """Let others use the session."""
        if self.lock is not None:
            self.lock.release()


class Memories:
    """The sessions of one conversation's members. Reads the store and files, so it is used outside the event loop."""

    def __init__(self, store: Store, conversation_id: str) -> None:
        self._store = store
        self._conversation_id = conversation_id

    def plan(self, agent: MemberAgent, progress: Progress) -> SessionPlan | None:
        """Return in which session the member's next turn runs; None if it has no memory of its own.

        The rules that forbid continuing come first: if one of them applies, a new session begins.
        """
        return self._planned(agent, progress, self._left(agent))

    def _left(self, agent: MemberAgent) -> MemberMemory | None:
        return self._store.memory(self._conversation_id, agent.member.name) if has_own_memory(agent) else None

    def _planned(self, agent: MemberAgent, progress: Progress, left: MemberMemory | None) -> SessionPlan | None:
        sessions, name = agent.spec.sessions, agent.member.name
        if sessions is None or not has_own_memory(agent):
            return None
        continued = left or progress.borrowed.get(name)
        if name in progress.forgotten:
            return _new(sessions, made_to_forget(progress.forgotten[name]))
        if continued is None:
            return _new(sessions)
        return self._continuing(agent, sessions, continued, is_borrowed=left is None)

    def rebuilt(self, agent: MemberAgent, reason: str) -> SessionPlan | None:
        """Return a new session in the place of one that the CLI could not continue."""
        return None if agent.spec.sessions is None else _new(agent.spec.sessions, reason)

    def _continuing(
        self, agent: MemberAgent, sessions: SessionSpec, left: MemberMemory, *, is_borrowed: bool
    ) -> SessionPlan:
        memory = left.memory
        if reason := why_not(memory, agent, sessions):
            return _new(sessions, reason)
        if is_borrowed and not sessions.fork:
            return _new(sessions, "its CLI cannot continue in a copy of a session")
        bad = self._ended_badly_in(left, agent.member.name)
        if reason := why_not_after(bad):
            return _new(sessions, reason)
        file, reason = session_file(memory, sessions, agent.environment)
        is_longer = reason == "longer"
        if file is not None and is_longer:
            is_ours = not is_borrowed and is_left_by(bad, file)
            by_others = "its session was continued elsewhere" if is_borrowed else "somebody else continued its session"
            reason = "" if is_ours else by_others
        if reason:
            return _new(sessions, reason)
        origin: Origin = "forked" if is_borrowed else "resumed"
        use = SessionUse(origin=origin, id=memory.session_id, continues=left.turn_id, turns=memory.turns)
        return SessionPlan(use=use, left=left, longer_file=file if is_longer else None)

    def enter(self, agent: MemberAgent, progress: Progress) -> SessionPlan | None:
        """Take the session for a turn. If another turn runs in it, this one runs in a new one.

        The lock comes first: until we have it, another turn may change the file that the plan is made from.
        """
        left, name = self._left(agent), agent.member.name
        continued = None if name in progress.forgotten else left or progress.borrowed.get(name)
        if continued is None or not _can_be_found(continued.memory):
            return self._planned(agent, progress, left)
        lock, plan = SessionLock(continued.memory.session_id), None
        try:
            problem = _not_locked(lock)
            plan = self._with_lock(lock, problem, self._planned(agent, progress, left), agent)
        finally:
            if plan is None or plan.lock is None:
                lock.release()
        return plan

    def _with_lock(
        self, lock: SessionLock, problem: str, plan: SessionPlan | None, agent: MemberAgent
    ) -> SessionPlan | None:
        """Return a plan with the lock of its session, or another one if that is not ours, or cannot be put back."""
        if plan is None or agent.spec.sessions is None:
            return plan
        if problem:
            return _new(agent.spec.sessions, problem)
        if plan.left is None:
            return plan
        try:
            if plan.longer_file is not None:
                put_back(plan.longer_file, plan.left.memory.file)
        except OSError as error:
            reason = f"the file of its session cannot be written ({error.strerror})"
            return _new(agent.spec.sessions, reason)
        return replace(plan, lock=lock)

    def _ended_badly_in(self, left: MemberMemory, member: str) -> list[Turn]:
        """Return the member's last turns that ended without a reply in a session, since the one that left this."""
        reply = self._store.message(self._conversation_id, left.reply_id)
        turns = self._ended_badly(member, after=reply.sequence)
        return turns_in_session(self._store, self._conversation_id, turns, left.memory.session_id)

    def _ended_badly(self, member: str, after: int) -> list[Turn]:
        """Return the member's turns that ended without a reply after a message."""
        last = self._store.conversation(self._conversation_id).messages
        turns = self._store.unanswered(self._conversation_id, first=after, last=last)
        return [turn for turn in turns if turn.member == member]

    def unfinished_note(self, turn: WaitingTurn) -> str:
        """Return what the agent of a turn should know about its turns since its last reply."""
        turns = self._ended_badly(turn.member, after=self._last_reply(turn.member))
        return unfinished_note(self._store, self._conversation_id, turns)

    def files_note(self, turn: WaitingTurn, plan: SessionPlan | None) -> str:
        """Return what the agent of a turn should know of files that were put back, or that people changed."""
        # Who is given the conversation again is told of it again.
        knows = plan is not None and plan.left is not None
        after = self._last_reply(turn.member) if knows else 0
        return files_note(self._store, self._conversation_id, after)

    def checks_note(self, turn: WaitingTurn) -> str:
        """Return what the agent of a turn should know of the checks after its last one."""
        return checks_note(self._store, self._conversation_id, turn.member, self._last_reply(turn.member))

    def _last_reply(self, member: str) -> int:
        """Return the number of a member's last message, or of one long ago."""
        last = self._store.conversation(self._conversation_id).messages
        first = max(last - LOOK_BACK, 0)
        envelopes = self._store.envelopes(self._conversation_id, after=first, before=last + 1)
        own = (number for number, one in enumerate(envelopes, start=first + 1) if one.speaker_id == member)
        return max(own, default=first)

    def after(
        self, agent: MemberAgent, plan: SessionPlan, seen: Seen, started: Started, usage: Usage | None, *, at: int
    ) -> Memory | None:
        """Return what the member's session holds after a turn that ended well."""
        use, sessions, before = plan.use, agent.spec.sessions, plan.left.memory if plan.left else None
        if sessions is None:
            return None
        session_id = _session_after(use, started)
        file = find_session_file(sessions, agent.environment, session_id) if is_session_id(session_id) else None
        # A copy is another file, so there is no place in it that is known.
        known = before.file.size if before and use.origin == "resumed" else 0
        mark, is_shortened = _read(file, known, sessions.shortened)
        return Memory(
            # Without the turn in it, the next one would continue without knowing what this one was given.
            session_id=session_id if mark.size > known else "",
            origin=use.origin,
            reason=use.reason,
            turns=use.turns + 1,
            began_at=before.began_at if before and use.origin == "resumed" else at,
            since=seen.since,
            seen_to=seen.seen_to,
            pending=seen.pending,
            early=seen.early,
            said=seen.said,
            agent=agent.spec.name,
            folder=str(agent.folder),
            model=agent.member.model,
            used_model=started.model,
            visibility=agent.member.visibility,
            first_system=before.first_system if before else seen.system,
            system=seen.system,
            task=seen.task,
            file=mark,
            tokens=mark.size // BYTES_PER_TOKEN,
            window=usage.context_window if usage else 0,
            used=usage if sessions.usage_adds_up else None,
            is_shortened=is_shortened,
        )

    def put_back(self, agent: MemberAgent, plan: SessionPlan) -> None:
        """Take out of a session what a turn left in it that ended badly. If that fails, the next turn does it."""
        if plan.left is None or plan.lock is None or plan.use.origin != "resumed" or agent.spec.sessions is None:
            return
        with suppress(OSError):
            memory = plan.left.memory
            file, reason = session_file(memory, agent.spec.sessions, agent.environment)
            if file is not None and reason == "longer":
                put_back(file, memory.file)


def _can_be_found(memory: Memory) -> bool:
    # An imported session may call itself anything, the path of a person's file for example.
    return is_session_id(memory.session_id)


def _not_locked(lock: SessionLock) -> str:
    """Take a lock, and return why a turn may not run in its session; nothing if it may."""
    try:
        # Not in a copy either: that would have what the other turn has written so far.
        return "" if lock.hold() else "another turn runs in its session"
    except OSError as error:
        return f"its session cannot be locked ({error.strerror})"


def _session_after(use: SessionUse, started: Started) -> str:
    """Return the session that a turn ran in; nothing if it was to be a copy, and is not known to be one."""
    if use.origin == "forked":
        return started.session_id if started.session_id and started.session_id != use.id else ""
    return started.session_id or use.id


def _new(sessions: SessionSpec, reason: str = "") -> SessionPlan:
    session_id = str(uuid4()) if sessions.start else ""
    return SessionPlan(use=SessionUse(origin="rebuilt" if reason else "new", id=session_id, reason=reason))


def _read(file: Path | None, start: int, shortened: str) -> tuple[FileMark, bool]:
    """Return what a session's file is now, and whether the CLI has shortened the history in what it added."""
    if file is None:
        return NO_FILE, False
    try:
        mark = mark_of(file)
        with file.open("rb") as opened:
            opened.seek(min(start, mark.size))
            return mark, shortened.encode() in opened.read()
    except OSError as error:
        logger.warning("session file not read file=%s error=%s", file, error)
        return NO_FILE, False


def digest(text: str | None) -> str:
    """Return a short digest of a text, to find out whether it has changed."""
    return hashlib.blake2b((text or "").encode(errors="replace"), digest_size=16).hexdigest()


def usage_of(usage: Usage, before: Usage | None) -> Usage:
    """Return what one turn used, where the CLI reports all turns of the session together."""
    if before is None or usage.input_tokens < before.input_tokens or usage.output_tokens < before.output_tokens:
        return usage
    return replace(
        usage,
        input_tokens=usage.input_tokens - before.input_tokens,
        output_tokens=usage.output_tokens - before.output_tokens,
        cached_tokens=max(usage.cached_tokens - before.cached_tokens, 0),
        cost_usd=None if usage.cost_usd is None else max(usage.cost_usd - (before.cost_usd or 0), 0),
    )
