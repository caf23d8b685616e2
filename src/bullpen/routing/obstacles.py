"""What each waiting turn waits for. One that waits for nothing may begin. Pure functions of plain data."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from bullpen.routing.queue import PUT_FIRST, WaitingTurn

ObstacleKind = Literal["person", "hold", "decision", "step", "member", "workspace", "checks", "rest", "budget"]


class Checking(Struct, frozen=True, kw_only=True):
    """A turn that has ended and changed files, which are being checked."""

    turn: WaitingTurn
    workspace: str = ""
    """The shared folder that nobody may edit meanwhile; empty: the agent's own, which is merged after that."""
    reply: str = ""
    """The id of the message that it ended with, if its own workspace is to be merged before that is answered."""


class Situation(Struct, frozen=True, kw_only=True):
    """What decides, besides the queue, which turns may begin."""

    running: Collection[WaitingTurn] = ()
    people: Collection[str] = ()
    held: Collection[str] = ()
    """The ids of waiting turns that do not begin until a person says so."""
    undecided: Collection[WaitingTurn] = ()
    """Turns that ended without a reply, and nobody has decided yet what to do about them."""
    workspaces: Mapping[str, str] = {}
    """For each member that may edit files, the folder in which it may."""
    checking: Collection[Checking] = ()
    """Turns after which checks run."""
    asleep: Mapping[str, int] = {}
    """Members of whom no program can be used now, and until when."""
    spent: Collection[str] = ()
    """Members of whose budget, or of the conversation's, nothing is left."""
    apart: Collection[str] = ()
    """The ids of turns that edit no workspace that others have: best of several."""


class Obstacle(Struct, frozen=True, kw_only=True):
    """Why a turn does not begin."""

    kind: ObstacleKind
    turn: WaitingTurn
    """The turn that it waits for; itself, if a person must speak or say so."""
    workspace: str = ""
    """The folder that both may edit."""
    until: int = 0
    """When a program can be used again, if it waits for that."""


def may_begin(waiting: Sequence[WaitingTurn], situation: Situation) -> tuple[WaitingTurn, ...]:
    """Return the waiting turns that may begin now, the first one first."""
    found = obstacles(waiting, situation)
    return tuple(turn for turn in waiting if turn.id not in found)


def obstacles(waiting: Sequence[WaitingTurn], situation: Situation) -> dict[str, Obstacle]:
    """Return what each waiting turn waits for, by its id; the others may begin now, all together.

    What one message asked for keeps its order. Turns of different messages run together, unless both may edit one
    workspace or are of one member. A turn waits only for those that run or are ahead of it in the queue, so the first
    of those that do not wait for a person can always begin when nothing runs.
    """
    stops = _first_stops(waiting, situation)
    ahead = _Ahead(situation)
    found: dict[str, Obstacle] = {}
    for turn in waiting:
        stop = stops.get(turn.message_id)
        if own := _own_stop(turn, situation):
            found[turn.id] = ahead.step_before(turn) or own
        elif stop is not None and stop.turn.step < turn.step:
            found[turn.id] = stop
        elif turn.member in situation.asleep:
            found[turn.id] = Obstacle(kind="rest", turn=turn, until=situation.asleep[turn.member])
            ahead.sleeps(turn)
        elif turn.member in situation.spent:
            found[turn.id] = Obstacle(kind="budget", turn=turn)
            ahead.sleeps(turn)
        elif obstacle := ahead.obstacle(turn):
            found[turn.id] = obstacle
            ahead.waits(turn)
        else:
            ahead.begins(turn)
    return found


def _own_stop(turn: WaitingTurn, situation: Situation) -> Obstacle | None:
    """Return why a turn never begins by itself, if so: it is a person's, or held."""
    if turn.member in situation.people:
        return Obstacle(kind="person", turn=turn)
    return Obstacle(kind="hold", turn=turn) if turn.id in situation.held else None


def _first_stops(waiting: Iterable[WaitingTurn], situation: Situation) -> dict[str, Obstacle]:
    """Return for each message where its relay stops until a person acts. The turns after that wait."""
    undecided = (Obstacle(kind="decision", turn=turn) for turn in situation.undecided)
    own = (_own_stop(turn, situation) for turn in waiting)
    first: dict[str, Obstacle] = {}
    for stop in (*undecided, *filter(None, own)):
        known = first.setdefault(stop.turn.message_id, stop)
        if stop.turn.step < known.turn.step:
            first[stop.turn.message_id] = stop
    return first


class _Ahead:
    """The turns that run or begin before the one that is looked at, found without comparing it to each of them."""

    def __init__(self, situation: Situation) -> None:
        self._workspaces = situation.workspaces
        self._checking = situation.checking
        self._apart = situation.apart
        self._of_message: dict[str, dict[tuple[int, int], WaitingTurn]] = {}
        """For each message the first turn of each group, in order."""
        self._busy: dict[str, WaitingTurn] = {}
        self._editing: dict[str, list[WaitingTurn]] = {}
        """For each workspace the first turn that may edit it, and the first one of another message."""
        for turn in situation.running:
            self.begins(turn)

    def begins(self, turn: WaitingTurn) -> None:
        """Add a turn that runs, or is about to."""
        self._busy.setdefault(turn.member, turn)
        self.waits(turn)

    def waits(self, turn: WaitingTurn) -> None:
        """Add a turn that keeps its place: its member is free meanwhile, but nobody edits its workspace before it."""
        self._of_message.setdefault(turn.message_id, {}).setdefault((turn.step, turn.intent), turn)
        if workspace := self._workspace_of(turn):
            first = self._editing.setdefault(workspace, [])
            if len(first) < 2 and all(other.message_id != turn.message_id for other in first):
                first.append(turn)

    def sleeps(self, turn: WaitingTurn) -> None:
        """Add a turn that may wait for hours: only what its own message asked for waits for it."""
        self._of_message.setdefault(turn.message_id, {}).setdefault((turn.step, turn.intent), turn)

    def obstacle(self, turn: WaitingTurn) -> Obstacle | None:
        """Return why a turn must wait for another, if so."""
        if step := self._other_step(turn):
            return step
        if turn.member in self._busy:
            return Obstacle(kind="member", turn=self._busy[turn.member])
        return self._check(turn) or self._other_editor(turn)

    def step_before(self, turn: WaitingTurn) -> Obstacle | None:
        """Return the step before a turn, if it is not done."""
        groups = self._of_message.get(turn.message_id, {}).values()
        before = [other for other in groups if other.step < turn.step]
        return Obstacle(kind="step", turn=before[-1]) if before else None

    def _workspace_of(self, turn: WaitingTurn) -> str | None:
        return None if turn.id in self._apart else self._workspaces.get(turn.member)

    def _other_step(self, turn: WaitingTurn) -> Obstacle | None:
        groups = self._of_message.get(turn.message_id, {}).values()
        others = [other for other in groups if not _together(turn, other)]
        return Obstacle(kind="step", turn=others[-1]) if others else None

    def _check(self, turn: WaitingTurn) -> Obstacle | None:
        """Return the checks that a turn would disturb, or whose files it needs."""
        own = self._workspace_of(turn)
        for checking in self._checking:
            if checking.workspace:
                is_in_the_way = own is not None and bool(_shared(own, checking.workspace))
            else:
                follows = turn.message_id in (checking.turn.message_id, checking.reply)
                is_in_the_way = follows or turn.member == checking.turn.member
            if is_in_the_way:
                return Obstacle(kind="checks", turn=checking.turn, workspace=checking.workspace)
        return None

    def _other_editor(self, turn: WaitingTurn) -> Obstacle | None:
        own = self._workspace_of(turn)
        if own is None:
            return None
        for workspace, turns in self._editing.items():
            if shared := _shared(own, workspace):
                for other in turns:
                    if other.message_id != turn.message_id:
                        return Obstacle(kind="workspace", turn=other, workspace=shared)
        return None


def _together(turn: WaitingTurn, other: WaitingTurn) -> bool:
    """Return whether two turns of one message run in parallel. One that a person put first waits for no intent."""
    return turn.step == other.step and (turn.intent == other.intent or PUT_FIRST in (turn.intent, other.intent))


def _shared(one: str, other: str) -> str:
    """Return the folder that is in both; nothing if neither is inside the other."""
    if f"{one}/".startswith(f"{other.rstrip('/')}/"):
        return one
    return other if f"{other}/".startswith(f"{one.rstrip('/')}/") else ""
