"""Toolbox: gives running turns their tools, and takes the hand-overs that agents called instead of writing them."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from msgspec.structs import replace

from bullpen.agents.process_tree import may_use_tools
from bullpen.approvals import Answer
from bullpen.clock import milliseconds
from bullpen.conversation.approvals import Approvals
from bullpen.conversation.consequences import note
from bullpen.conversation.journal import Journal
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.prompts import Prompts
from bullpen.conversation.running_turn import RunningTurn
from bullpen.conversation.turn_tools import Around, TurnTools
from bullpen.conversation.visible_history import VisibleHistory
from bullpen.errors import UnknownMember
from bullpen.markers.grammar import Addressee, Markers
from bullpen.routing.blind import blind_of
from bullpen.routing.rounds import hidden_from, is_judges
from bullpen.routing.router import Router
from bullpen.store.base import Store
from bullpen.team.reach import reach
from bullpen.team.team import Member, Team
from bullpen.text.names import listed
from bullpen.tools.door import open_door
from bullpen.turn_events import ApprovalAsked

MOST_MEMBERS = 100
"""That are described."""
BEST_OF_ONLY = "the reply lets several do the same task, and nobody else can be asked with that."
LOOK_BACK = 1_000
"""Messages among which a note is looked for that may be there already."""


class Toolbox:
    """The tools of all turns of one conversation."""

    def __init__(
        self,
        team: Team,
        router: Router,
        journal: Journal,
        prompts: Prompts,
        approvals: Approvals,
        running: Mapping[str, RunningTurn],
    ) -> None:
        self._team = team
        self._router = router
        self._journal = journal
        self._state = journal.state
        self._prompts = prompts
        self._approvals = approvals
        self._running = running

    @asynccontextmanager
    async def open_for(self, running: RunningTurn, agent: MemberAgent) -> AsyncIterator[None]:
        """Let a turn's agent call tools in the block, if its CLI can."""
        if not agent.has_tools:
            yield
            return
        running.tools = TurnTools(agent.member, self._router, self._around(running, agent.member))
        if agent.is_elsewhere:
            # Its worker opens the door, and brings the calls.
            yield
            return
        async with open_door(running.tools.answer, may_use_tools) as running.server:
            yield

    def adopt(self, running: RunningTurn, agent: MemberAgent) -> None:
        """Answer the calls of a turn that began under another owner."""
        if agent.may_have_tools:
            running.tools = TurnTools(agent.member, self._router, self._around(running, agent.member))

    def _around(self, running: RunningTurn, member: Member) -> Around:
        turn = running.turn

        async def history() -> VisibleHistory:
            progress = self._state.progress
            rounds, blind = progress.rounds, blind_of(progress.blind, turn)
            visible_in = partial(
                self._prompts.visible_in,
                is_judges=is_judges(rounds, turn.id),
                summaries=progress.summaries,
                blind=blind,
            )
            return await self._state.in_store(visible_in, turn, member, hidden_from(rounds, member.name))

        async def read(method: Callable[..., tuple[str, str]], *values: object) -> tuple[str, str]:
            return await self._state.in_store(method, *values)

        async def ask(asked: ApprovalAsked) -> Answer:
            with running.asked.asking():
                return await self._approvals.ask(member, running, asked)

        async def leave(text: str) -> None:
            if not await self._state.read(_has_noted, turn.message_id, member.name, text):
                build = partial(note, self._state, member, text, at=milliseconds())
                await self._journal.alone(lambda: self._journal.commit_message(build))

        def is_apart() -> bool:
            return turn.id in self._state.progress.apart

        return Around(
            history=history,
            read=read,
            team=lambda: "\n".join(self._described(member)),
            ask=ask,
            note=leave,
            is_apart=is_apart,
        )

    def _described(self, member: Member) -> Iterator[str]:
        working = {running.turn.member for running in self._running.values()}
        waiting = {turn.member for turn in self._state.queue.waiting}
        for other in self._team.members[:MOST_MEMBERS]:
            kind = "person" if other.type == "human" else "agent"
            role = " ".join(other.role.split())
            facts = [
                "this is you" if other.name == member.name else "",
                "works now" if other.name in working and other.name != member.name else "",
                "waits for its turn" if other.name in waiting else "",
                "you may not hand over to it" if reach(member, other) == "never" and other.name != member.name else "",
            ]
            about = "; ".join(filter(None, [role, *facts]))
            yield f"- {other.name}, {kind}" + (f": {about}" if about else "")

    def with_calls(self, markers: Markers, running: RunningTurn) -> Markers:
        """Return the markers of a reply, with the hand-overs that were called; what both say counts once."""
        tools = running.tools
        if tools is not None and tools.offered and not markers.ask:
            markers = replace(markers, ask=tools.offered)
        if tools is None or not tools.handed_over or markers.best_of is not None:
            return markers
        known = set(map(self._name_of, markers.addressees))
        groups: list[tuple[Addressee, ...]] = []
        for called in tools.handed_over:
            if group := tuple(one for one in called if one.name not in known):
                groups.append(group)
                known.update(one.name for one in group)
        return replace(markers, next=(*markers.next, *groups))

    def not_followed(self, markers: Markers, running: RunningTurn) -> tuple[str, ...]:
        """Return what is said of hand-overs that were called and are not followed."""
        if running.tools is None or markers.best_of is None:
            return ()
        called = {one.name for group in running.tools.handed_over for one in group}
        others = sorted(called.difference(map(self._name_of, markers.addressees)))
        return (f"The call that handed over to {listed(others)} was not followed: {BEST_OF_ONLY}",) if others else ()

    def _name_of(self, written: str) -> str:
        try:
            return self._router.member(written).name
        except UnknownMember:
            return written


def _has_noted(store: Store, conversation_id: str, message_id: str, member: str, text: str) -> bool:
    """Return whether a member has left this very note since it was asked: a new owner may hear a call again."""
    asked = store.message(conversation_id, message_id).sequence
    since = store.messages(conversation_id, after=asked, limit=LOOK_BACK)
    return any(one.message.speaker.role_id == member and one.message.content == text for one in since)


def with_notes(text: str, markers: Markers, running: RunningTurn) -> str:
    """Return a reply with what was said along with its hand-overs; a team task goes to the end of a message."""
    notes = running.tools.notes if running.tools is not None else []
    return "\n\n".join([*notes, text] if markers.team_task is not None else [text, *notes])
