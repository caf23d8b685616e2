"""Who would be asked by what a person has typed so far, for every composer to show before it is sent."""

from collections.abc import Iterable
from itertools import groupby

from msgspec import Struct

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.routing.router import NOBODY_WAS_ASKED, Route
from bullpen.text.names import listed
from bullpen.view.command_arguments import ALL
from bullpen.view.commands import is_command_line

WHO_ANSWERS = (
    "A message that names nobody goes to the agent that spoke to you last; at first, and after a review, to the lead."
)
"""The rule, as every door says it."""
LONGEST = 20_000
"""Characters. Who is asked by a longer text is shown when it is sent: this is worked out at every key."""


class Addressees(Struct, frozen=True, kw_only=True):
    """Who would be asked, in which order, and why."""

    steps: tuple[tuple[str, ...], ...] = ()
    """A relay of groups; the members of a group answer at once."""
    reason: str = ""
    """Why these, if the text does not name them."""
    problems: tuple[str, ...] = ()
    is_best_of: bool = False
    """Whether they do the same task apart from each other, and one result is picked."""
    is_blind: bool = False
    """Whether who answers after a group is not told whose replies are whose."""
    judge: str = ""
    """Who picks; empty: a person."""
    queued: str = ""
    """Which of them are working, so that this waits in the queue, and how they are told something now."""

    @property
    def line(self) -> str:
        """The same in a line: "→ sarah & lee, then max". Where it is cut, the reason goes first."""
        between = " | " if self.is_best_of else " & "
        names = ", then ".join(between.join(step) for step in self.steps) or "nobody."
        if self.is_best_of:
            names += f", each apart; {self.judge or 'you'} pick{'s' if self.judge else ''}"
        if self.is_blind:
            names += ", who is not told whose reply is whose"
        reason = self.reason and f"({self.reason})"
        rest = [*self.problems, f"· {self.queued}", reason] if self.queued else [reason, *self.problems]
        return " ".join(filter(None, [f"→ {names}", *rest]))


def addressees(conversation: Conversation, text: str, sender: str | None = None) -> Addressees | None:
    """Return who would be asked by a text; None if it is empty, a command, or too long to tell at every key."""
    if not text.strip() or len(text) > LONGEST or is_command_line(text):
        return None
    try:
        route = conversation.route_of(text, sender=sender)
    except BullpenError as error:
        return Addressees(problems=(str(error),))
    return Addressees(
        steps=_steps(conversation, route),
        reason=route.reason,
        is_best_of=route.is_best_of,
        is_blind=route.is_blind,
        judge=route.judge.member if route.judge else "",
        problems=tuple(note for note in route.notes if note != NOBODY_WAS_ASKED),
        queued=_queued(conversation, route),
    )


def notes_outside_chat(notes: Iterable[str], resume: str) -> tuple[str, ...]:
    """Return the notes on a message where nobody can type a command of a chat; `resume` opens one."""
    instead = {NOBODY_WAS_ASKED: f"Nobody was asked. Say it again, or ask somebody in a chat: {resume}"}
    return tuple(instead.get(note, note) for note in notes)


def _queued(conversation: Conversation, route: Route) -> str:
    """Return that working agents get this in their next turns."""
    running = {one.turn.member: one for one in conversation.running.values()}
    busy = list(dict.fromkeys(one.member for one in route.asked if one.member in running))
    if not busy:
        return ""
    if asking := [
        name for name in busy if any(turn == running[name].turn.id for turn, _ in conversation.approvals.open)
    ]:
        verb, its = ("waits", "its next turn") if len(asking) == 1 else ("wait", "their next turns")
        return f"{listed(asking)} {verb} for your answer; this is a message, queued for {its}"
    now = next((f"; /tell {name} … reaches it now" for name in busy if running[name].can_be_told), "")
    next_turn, verb = ("its next turn", "is") if len(busy) == 1 else ("their next turns", "are")
    return f"{listed(busy)} {verb} working: queued for {next_turn}{now}"


def _steps(conversation: Conversation, route: Route) -> tuple[tuple[str, ...], ...]:
    """Return who is asked, in groups; a person who is only handed over to comes last."""
    groups = [tuple(one.member for one in group) for _, group in groupby(route.asked, key=lambda one: one.step)]
    asked = {name for group in groups for name in group}
    people = tuple(name for name in route.addressees if name not in asked)
    everyone = tuple(agent.name for agent in conversation.team.agents)
    is_all = [len(group) > 1 and set(group) == set(everyone) and not route.is_best_of for group in groups]
    named = [(ALL,) if named_all else group for group, named_all in zip(groups, is_all, strict=True)]
    return (*named, *((people,) if people else ()))
