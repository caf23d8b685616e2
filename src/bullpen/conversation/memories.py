"""Memories: in which session a turn runs, and what its member's session holds after it."""

import hashlib
from collections.abc import Collection
from uuid import uuid4

from msgspec.structs import replace

from bullpen.agents.held_session import WantedSession, hold, session_left, take_out, why_not_here
from bullpen.agents.session_file import is_session_id
from bullpen.agents.spec import SessionSpec
from bullpen.conversation.checks_in_prompts import checks_note
from bullpen.conversation.files_in_prompts import files_note
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.prepared_turn import Seen, SessionPlan
from bullpen.conversation.session_rules import has_own_memory, left_until, why_not, why_not_after
from bullpen.conversation.unfinished_turns import turns_in_session, unfinished_note
from bullpen.memory import MemberMemory, Memory, Origin, SessionLeft, SessionUse, made_to_forget
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store, Turn
from bullpen.turn_events import Started, Usage

BYTES_PER_TOKEN = 4
"""For a guess how large a session is: what the CLIs write to its file is about what the model gets."""
LOOK_BACK = 200
"""How many messages are searched for an agent's last reply, to tell it of its turns since."""


class Memories:
    """The sessions of one conversation's members. Reads the store and files, so it is used outside the event loop."""

    def __init__(self, store: Store, conversation_id: str) -> None:
        self._store = store
        self._conversation_id = conversation_id

    def plan(self, agent: MemberAgent, progress: Progress) -> SessionPlan | None:
        """Return in which session the member's next turn runs; None if it has no memory of its own.

        The rules that forbid continuing come first: if one of them applies, a new session begins. What is on another
        machine is looked at there.
        """
        plan, sessions = self._planned(agent, progress), agent.sessions
        if plan is None or plan.wanted is None or sessions is None or agent.is_elsewhere:
            return plan
        reason, _ = why_not_here(sessions, agent.environment, plan.wanted)
        return _new(sessions, reason) if reason else plan

    def _planned(self, agent: MemberAgent, progress: Progress) -> SessionPlan | None:
        """Return the same, regardless of the session's file."""
        sessions, name = agent.sessions, agent.member.name
        if sessions is None or not has_own_memory(agent):
            return None
        if name in progress.forgotten:
            return _new(sessions, made_to_forget(progress.forgotten[name]))
        left = self._store.memory(self._conversation_id, name)
        continued = left or progress.borrowed.get(name)
        if continued is None:
            return _new(sessions)
        return self._continuing(agent, sessions, continued, is_borrowed=left is None)

    def rebuilt(self, agent: MemberAgent, reason: str = "") -> SessionPlan | None:
        """Return a new session in the place of one that cannot be continued, for a reason that may be told later."""
        if agent.sessions is None:
            return None
        plan = _new(agent.sessions, reason)
        return replace(plan, use=replace(plan.use, origin="rebuilt"))

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
        origin: Origin = "forked" if is_borrowed else "resumed"
        return SessionPlan(
            use=SessionUse(origin=origin, id=memory.session_id, continues=left.turn_id, turns=memory.turns),
            left=left,
            wanted=WantedSession(
                id=memory.session_id,
                mark=memory.file,
                left_until=0 if is_borrowed else left_until(bad),
                is_copied=is_borrowed,
            ),
        )

    def enter(self, agent: MemberAgent, progress: Progress) -> SessionPlan | None:
        """Take the session for a turn; if that is not possible, it runs in a new one.

        One that is on another machine is taken there.
        """
        plan, sessions = self._planned(agent, progress), agent.sessions
        if plan is None or plan.wanted is None or sessions is None or agent.is_elsewhere:
            return plan
        reason, lock = hold(sessions, agent.environment, plan.wanted)
        return _new(sessions, reason) if lock is None else replace(plan, lock=lock)

    def _ended_badly_in(self, left: MemberMemory, member: str) -> list[Turn]:
        """Return the member's last turns that ended without a reply in a session, since the one that left this."""
        reply = self._store.message(self._conversation_id, left.reply_id)
        turns = self._ended_badly(member, after=reply.sequence)
        return turns_in_session(self._store, self._conversation_id, turns, left.memory.session_id)

    def _ended_badly(self, member: str, after: int) -> list[Turn]:
        """Return the member's turns that ended without a reply after a message."""
        last = self._store.message_count(self._conversation_id)
        turns = self._store.unanswered(self._conversation_id, first=after, last=last)
        return [turn for turn in turns if turn.member == member]

    def unfinished_note(self, turn: WaitingTurn, summaries: Collection[int] = ()) -> str:
        """Return what the agent of a turn should know about its turns since its last reply."""
        turns = self._ended_badly(turn.member, after=self._last_reply(turn.member, summaries))
        return unfinished_note(self._store, self._conversation_id, turns)

    def files_note(self, turn: WaitingTurn, plan: SessionPlan | None, summaries: Collection[int] = ()) -> str:
        """Return what the agent of a turn should know of files that were put back, or that people changed."""
        # Who is given the conversation again is told of it again.
        knows = plan is not None and plan.left is not None
        after = self._last_reply(turn.member, summaries) if knows else 0
        return files_note(self._store, self._conversation_id, after)

    def checks_note(self, turn: WaitingTurn, summaries: Collection[int] = ()) -> str:
        """Return what the agent of a turn should know of the checks after its last one."""
        return checks_note(self._store, self._conversation_id, turn.member, self._last_reply(turn.member, summaries))

    def _last_reply(self, member: str, summaries: Collection[int]) -> int:
        """Return the number of a member's last message, or of one long ago; in a summary it was told of nothing."""
        last = self._store.message_count(self._conversation_id)
        first = max(last - LOOK_BACK, 0)
        envelopes = self._store.envelopes(self._conversation_id, after=first, before=last + 1)
        own = (number for number, one in enumerate(envelopes, start=first + 1) if one.speaker_id == member)
        return max((number for number in own if number not in summaries), default=first)

    def after(
        self,
        agent: MemberAgent,
        plan: SessionPlan,
        seen: Seen,
        started: Started,
        usage: Usage | None,
        *,
        at: int,
        left: SessionLeft | None = None,
    ) -> Memory | None:
        """Return what the member's session holds after a turn that ended well.

        `left` is what the machine has found that has its file; None: that is this one.
        """
        use, sessions, before = plan.use, agent.sessions, plan.left.memory if plan.left else None
        if sessions is None:
            return None
        # A copy is another file, so there is no place in it that is known.
        known = before.file.size if before and use.origin == "resumed" else 0
        left = left or session_left(sessions, agent.environment, use, started, known)
        return Memory(
            session_id=left.id if is_session_id(left.id) else "",
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
            file=left.file,
            tokens=left.file.size // BYTES_PER_TOKEN,
            window=usage.context_window if usage else 0,
            used=usage if sessions.usage_adds_up else None,
            is_shortened=left.is_shortened,
            worker=left.worker,
        )

    def put_back(self, agent: MemberAgent, plan: SessionPlan) -> None:
        """Take out of a session what a turn left in it that ended badly. If that fails, the next turn does it."""
        if plan.wanted is not None and plan.lock is not None and agent.sessions is not None:
            take_out(agent.sessions, agent.environment, plan.wanted)


def _new(sessions: SessionSpec, reason: str = "") -> SessionPlan:
    session_id = str(uuid4()) if sessions.start else ""
    return SessionPlan(use=SessionUse(origin="rebuilt" if reason else "new", id=session_id, reason=reason))


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
