"""How a conversation stands, as one value: what the side of the page shows, and what the API answers."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import InvalidTeam
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store, StoredConversation, Turn
from bullpen.team.colors import colours_of
from bullpen.team.reader import examine_team
from bullpen.team.team import Team
from bullpen.turn_events import Usage


class Spent(Struct, frozen=True, kw_only=True):
    """What turns took."""

    turns: int = 0
    failures: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    """None where no CLI says."""

    def __add__(self, other: "Spent") -> "Spent":
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Spent(
            turns=self.turns + other.turns,
            failures=self.failures + other.failures,
            tokens=self.tokens + other.tokens,
            cost_usd=sum(costs) if costs else None,
        )


class Working(Struct, frozen=True, kw_only=True):
    """A turn at work."""

    turn: str
    member: str
    doing: str
    since: int
    """Milliseconds since 1970."""
    tokens: int = 0
    cost_usd: float | None = None


class MemberState(Struct, frozen=True, kw_only=True):
    """A member, and what it is at."""

    name: str
    display_name: str
    type: str
    role: str
    color: str
    agent: str
    """Which CLI or program it is; empty for a person."""
    spent: Spent
    working: Working | None = None


class InQueue(Struct, frozen=True, kw_only=True):
    """A turn that waits."""

    turn: str
    member: str
    held: bool = False
    """It stands still until a person lets it go on."""
    at_once: bool = False
    """It begins together with the one before it."""


class ToDecide(Struct, frozen=True, kw_only=True):
    """A turn that ended without a reply."""

    turn: str
    member: str
    state: str
    text: str
    partial_text: str = ""


class Missed(Struct, frozen=True, kw_only=True):
    """A hand-over that was probably meant."""

    member: str
    names: tuple[str, ...]
    text: str


class State(Struct, frozen=True, kw_only=True):
    """One conversation at one moment."""

    id: str
    team: str
    is_open: bool
    """Whether this server runs its turns."""
    number: int = 0
    """The latest news that is in here; news after it can be watched."""
    epoch: str = ""
    """Numbers are only comparable within one."""
    task: str | None = None
    paused: str | None = None
    waits_for: str | None = None
    members: tuple[MemberState, ...] = ()
    queue: tuple[InQueue, ...] = ()
    undecided: tuple[ToDecide, ...] = ()
    missed: Missed | None = None
    total: Spent = Spent()

    @property
    def colors(self) -> dict[str, str]:
        """Each member's colour, by its name."""
        return {member.name: member.color for member in self.members}


def spent_by_member(store: Store, conversation_id: str) -> dict[str, Spent]:
    """Return what every member's turns took until now."""
    spent: dict[str, Spent] = defaultdict(Spent)
    for turn in store.turns(conversation_id):
        if turn.started_at is not None:
            failures = int(turn.state in ("failed", "interrupted"))
            spent[turn.member] += Spent(turns=1, failures=failures) + used(turn.usage)
    return dict(spent)


def used(usage: Usage | None) -> Spent:
    """Return what one turn has used."""
    if usage is None:
        return Spent()
    return Spent(tokens=usage.input_tokens + usage.output_tokens, cost_usd=usage.cost_usd)


def undecided_turns(store: Store, conversation_id: str, turn_ids: Iterable[str]) -> tuple[ToDecide, ...]:
    """Return what is known of turns that a person must decide about."""
    return tuple(_to_decide(store.turn(conversation_id, turn_id)) for turn_id in turn_ids)


def _to_decide(turn: Turn) -> ToDecide:
    failure = turn.failure
    text = f"{failure.message} {failure.hint}".strip() if failure else f"The turn was {turn.state}."
    partial_text = failure.partial_text if failure else ""
    return ToDecide(turn=turn.id, member=turn.member, state=turn.state, text=text, partial_text=partial_text)


async def state_of(
    conversation: Conversation, spent: dict[str, Spent], working: Iterable[RunningTurn], epoch: str
) -> State:
    """Return how a conversation stands that is open here."""
    number = conversation.last_number
    undecided = await conversation.read(undecided_turns, [turn.id for turn in conversation.undecided])
    running = {running.turn.member: _working(running) for running in working}
    return State(
        id=conversation.id,
        team=conversation.team.name,
        is_open=True,
        number=number,
        epoch=epoch,
        task=conversation.team_task,
        paused=conversation.paused,
        waits_for=conversation.waits_for,
        members=tuple(_members(conversation.team, spent, running)),
        queue=tuple(_queue(conversation.waiting, {turn.id for turn in conversation.held})),
        undecided=undecided,
        missed=await _missed(conversation),
        total=_total(spent, running.values()),
    )


def stored_state(store: Store, conversation_id: str) -> State:
    """Return how a conversation stands that is not open here, as far as the store knows."""
    stored = store.conversation(conversation_id)
    spent = spent_by_member(store, conversation_id)
    running = {
        turn.member: Working(turn=turn.id, member=turn.member, doing="at work", since=turn.started_at or 0)
        for turn in store.running(conversation_id)
    }
    undecided = stored.progress.get("undecided", ())
    return State(
        id=stored.id,
        team=stored.team,
        is_open=False,
        task=stored.team_task,
        paused=stored.paused,
        waits_for=stored.waits_for,
        members=tuple(_members(team_of(stored), spent, running)),
        queue=tuple(_queue([turn.waiting for turn in store.queued(conversation_id)], set())),
        undecided=undecided_turns(store, conversation_id, undecided),
        total=_total(spent, ()),
    )


def team_of(stored: StoredConversation) -> Team | None:
    """Return the team that a conversation was started with, as far as its file can still be read."""
    try:
        return examine_team(stored.team_file)[0]
    except InvalidTeam:
        return None


def _members(team: Team | None, spent: dict[str, Spent], running: dict[str, Working]) -> Iterable[MemberState]:
    colours = colours_of(team) if team else {}
    for member in team.members if team else ():
        yield MemberState(
            name=member.name,
            display_name=member.display_name or member.name,
            type=member.type,
            role=member.role,
            color=colours[member.name],
            agent=member.agent or (member.command[0].rpartition("/")[2] if member.command else ""),
            spent=spent.get(member.name, Spent()),
            working=running.get(member.name),
        )


def _working(running: RunningTurn) -> Working:
    turn, spent = running.turn, used(running.usage)
    return Working(
        turn=turn.id,
        member=turn.member,
        doing=running.doing,
        since=running.began_at,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
    )


def _queue(waiting: Iterable[WaitingTurn], held: set[str]) -> Iterable[InQueue]:
    before: tuple[str, int, int] | None = None
    for turn in waiting:
        group = turn.message_id, turn.step, turn.intent
        yield InQueue(turn=turn.id, member=turn.member, held=turn.id in held, at_once=group == before)
        before = group


async def _missed(conversation: Conversation) -> Missed | None:
    """Return the hand-over that the last message probably meant, if everybody is waiting for a person now."""
    newest = await conversation.messages(limit=1)
    if not newest or conversation.running or conversation.waiting:
        return None
    message = newest[0].message
    addressees = message.routing.resolved_addressees if message.routing else ()
    author = next((agent for agent in conversation.team.agents if agent.name == message.speaker.role_id), None)
    if author is None or addressees:
        return None
    found = conversation.progress.missed
    return None if found is None else Missed(member=found.sender, names=found.members, text=found.sentence)


def _total(spent: dict[str, Spent], running: Iterable[Working]) -> Spent:
    now = [Spent(tokens=working.tokens, cost_usd=working.cost_usd) for working in running]
    return sum([*spent.values(), *now], start=Spent())
