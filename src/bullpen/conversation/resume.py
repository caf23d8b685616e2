"""Taking over what an earlier process left: what ran is interrupted, what waits needs a word, who is gone is gone."""

from collections.abc import Sequence

from msgspec.structs import replace

from bullpen.conversation.events import Dropped, News, Paused, Undecided
from bullpen.conversation.running_turn import milliseconds
from bullpen.conversation.state import NO_CHANGE, Change, Ledger
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Turn
from bullpen.team.team import Team

INTERRUPTED = "was interrupted when bullpen ended. It may have changed files."


async def take_over(team: Team, ledger: Ledger) -> list[News]:
    """Bring a conversation that is opened in order, and return what there is to tell about it."""
    news: list[News] = []
    gone = tuple(turn for turn in ledger.queue.waiting if turn.member not in {member.name for member in team.members})
    change = _without_those_who_left(team, ledger)
    if gone or change != NO_CHANGE:
        await ledger.update(at=milliseconds(), drops=gone, change=change)
    if gone:
        news.append(Dropped(turns=gone))
    await _pause(team, ledger)
    if ledger.paused is not None:
        news.append(Paused(kind="interrupted" if ledger.lost else "left_over", text=ledger.paused))
    turns = [await ledger.turn(turn_id) for turn_id in ledger.undecided]
    return [*news, *map(_undecided, turns)]


async def _pause(team: Team, ledger: Ledger) -> None:
    """Let nothing begin by itself: whoever opens a conversation again has not seen yet how it stands."""
    if ledger.lost:
        text = f"bullpen ended while {names(ledger.lost)} ran. It may have changed files."
        change = Change(paused=text, waits_for=ledger.progress.person)
        await ledger.interrupt(at=milliseconds(), change=change)
    elif ledger.paused is None and ledger.next_group([person.name for person in team.people]):
        count = len(ledger.queue.waiting)
        waited = "1 turn was waiting" if count == 1 else f"{count} turns were waiting"
        await ledger.update(at=milliseconds(), change=Change(paused=f"{waited} when bullpen ended."))


def _without_those_who_left(team: Team, ledger: Ledger) -> Change:
    """Return what must be forgotten because the team file does not name somebody any more."""
    people = {person.name for person in team.people}
    agents = {agent.name for agent in team.agents}
    before = ledger.progress
    progress = replace(
        before,
        person=before.person if before.person in people else None,
        handed_over={to: by for to, by in before.handed_over.items() if to in people and by in agents},
    )
    change = NO_CHANGE if progress == before else Change(progress=progress)
    return change if ledger.waits_for in (None, *people) else replace(change, waits_for=None)


def _undecided(turn: Turn) -> Undecided:
    if turn.failure is None:
        return Undecided(turn=turn.waiting, state="interrupted", text=f"{turn.member} {INTERRUPTED}")
    text = f"{turn.member}: {turn.failure.message} {turn.failure.hint}".strip()
    return Undecided(turn=turn.waiting, state="cancelled" if turn.state == "cancelled" else "failed", text=text)


def names(turns: Sequence[WaitingTurn]) -> str:
    """Return which turns of whom, for a sentence."""
    return ", ".join(f"turn {turn.id} of {turn.member}" for turn in turns)
