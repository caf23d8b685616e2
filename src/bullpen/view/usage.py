"""What turns have used in all conversations, together by member, agent, model, day or conversation."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.errors import InvalidTeam
from bullpen.routing.progress import added, usage_of_turn
from bullpen.store.base import Store, StoredConversation, Turn
from bullpen.team.reader import read_team
from bullpen.team.team import Member, colours_of
from bullpen.text.numbers import counted, local_time
from bullpen.turn_events import Usage

By = Literal["member", "agent", "model", "day", "conversation"]
UNKNOWN = "unknown"
ESTIMATE = "~ is an estimate: what the tokens cost by a list of prices (bullpen prices)."
UNPRICED = "{} used tokens whose price nobody knows, which are not in the cost: bullpen prices says how to add it."
NOT_ENDED = ("queued", "running")


class UsageRow(Struct, frozen=True, kw_only=True):
    """What the turns of one member, agent, model, day or conversation have used."""

    name: str
    turns: int = 0
    failures: int = 0
    seconds: float = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None if it is not known of any of them."""
    is_estimate: bool = False
    """Whether some of it is what tokens cost by a list of prices."""
    unpriced: int = 0
    """Turns that used tokens, and nobody knows what those cost: they are not in the money."""

    def __add__(self, other: "UsageRow") -> "UsageRow":
        return replace(
            self,
            turns=self.turns + other.turns,
            failures=self.failures + other.failures,
            seconds=self.seconds + other.seconds,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=added(self.cost_usd, other.cost_usd),
            is_estimate=self.is_estimate or other.is_estimate,
            unpriced=self.unpriced + other.unpriced,
        )


class UsageTable(Struct, frozen=True, kw_only=True):
    """All rows, and their sum."""

    by: By
    rows: tuple[UsageRow, ...]
    total: UsageRow

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know of its money."""
        unpriced = UNPRICED.format(counted(self.total.unpriced, "turn")) if self.total.unpriced else ""
        return tuple(filter(None, (ESTIMATE if self.total.is_estimate else "", unpriced)))


def usage_table(store: Store, by: By = "member", *, conversation_id: str | None = None, since: str = "") -> UsageTable:
    """Return what turns have used that ended on a day or later; days in their order, all else the dearest first."""
    return as_table(by, usage_by_day(store, by, conversation_id=conversation_id, since=since))


def usage_by_day(
    store: Store, by: By = "member", *, conversation_id: str | None = None, since: str = ""
) -> dict[str, dict[str, UsageRow]]:
    """Return for each day what each member, agent, model or conversation used on it, in the order of days."""
    found = [store.conversation(conversation_id)] if conversation_id else store.conversations()
    days: dict[str, dict[str, UsageRow]] = {}
    for stored in found:
        name_of = _namer(by, stored)
        for turn in _ended(store, stored.id, since):
            name, rows = name_of(turn), days.setdefault(_day(turn), {})
            rows[name] = rows.get(name, UsageRow(name=name)) + _row(turn)
    return dict(sorted(days.items()))


def member_colors(store: Store) -> dict[str, str]:
    """Return the colour of each member, as it was in the newest conversation with it."""
    found: dict[str, str] = {}
    for team_file in dict.fromkeys(stored.team_file for stored in store.conversations()):
        with suppress(InvalidTeam):
            found = {**colours_of(read_team(team_file)), **found}
    return found


def as_table(by: By, days: Mapping[str, Mapping[str, UsageRow]]) -> UsageTable:
    """Return all days together."""
    rows: dict[str, UsageRow] = {}
    for row in chain.from_iterable(of_day.values() for of_day in days.values()):
        rows[row.name] = rows[row.name] + row if row.name in rows else row
    ordered = sorted(rows.values(), key=lambda row: row.name if by == "day" else _dearest_first(row))
    return UsageTable(by=by, rows=tuple(ordered), total=sum(ordered, start=UsageRow(name="total")))


def _ended(store: Store, conversation_id: str, since: str) -> Iterator[Turn]:
    for turn in store.turns(conversation_id):
        if turn.state not in NOT_ENDED and turn.started_at is not None and _day(turn) >= since:
            yield turn


def _row(turn: Turn) -> UsageRow:
    counted = usage_of_turn(turn.usage, turn.failure, interrupted=turn.state == "interrupted")
    usage = turn.usage or Usage()
    return UsageRow(
        name="",
        turns=1,
        failures=counted.failures,
        seconds=max(0, (turn.ended_at or 0) - (turn.started_at or 0)) / 1000 if turn.ended_at else 0.0,
        input_tokens=max(0, usage.input_tokens),
        cached_tokens=max(0, usage.cached_tokens),
        output_tokens=max(0, usage.output_tokens),
        cost_usd=counted.cost_usd,
        is_estimate=counted.is_estimate,
        unpriced=int(counted.tokens > 0 and counted.cost_usd is None),
    )


def _namer(by: By, stored: StoredConversation) -> Callable[[Turn], str]:
    """Return what gives the name of a turn's row."""
    if by == "day":
        return _day
    if by == "conversation":
        return lambda _: stored.id
    if by == "member":
        return lambda turn: turn.member
    members = _members(stored)
    if by == "agent":
        return lambda turn: _agent(turn, members)
    return lambda turn: _model(turn, members)


def _agent(turn: Turn, members: Mapping[str, Member]) -> str:
    """Return the program of a turn: a stand-in's, else the member's own."""
    if turn.usage is not None and turn.usage.agent:
        return turn.usage.agent
    return members[turn.member].program if turn.member in members else UNKNOWN


def _model(turn: Turn, members: Mapping[str, Member]) -> str:
    """Return the model of a turn: as its CLI said, else as the team file does."""
    said = turn.usage.model if turn.usage is not None else ""
    if turn.usage is not None and turn.usage.agent:
        return said or UNKNOWN
    member = members.get(turn.member)
    return said or (member.model if member is not None and member.model else UNKNOWN)


def _members(stored: StoredConversation) -> dict[str, Member]:
    try:
        return {member.name: member for member in read_team(stored.team_file).members}
    except InvalidTeam:
        # Of an older version, or an import without one.
        return {}


def _day(turn: Turn) -> str:
    return local_time(turn.ended_at or turn.started_at or 0)[:10] or UNKNOWN


def _dearest_first(row: UsageRow) -> tuple[float, int, str]:
    return -(row.cost_usd or 0.0), -(row.input_tokens + row.output_tokens), row.name
