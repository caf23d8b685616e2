"""What a person is asked to decide, and the choices there are. Pure."""

from collections.abc import Collection, Iterable, Sequence
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.conversation.events import Asked, Conflicted, Unallowed, Unapproved, Unpicked
from bullpen.conversation.state import UndecidedTurn
from bullpen.errors import BullpenError
from bullpen.routing.asks import Asks, OpenAsk
from bullpen.routing.missed_hand_overs import MissedHandOver
from bullpen.text.names import listed
from bullpen.text.numbers import counted
from bullpen.text.visible import visible
from bullpen.turn_events import ApprovalAsked

MOST_PARTIAL = 2_000
"""Characters of what a turn had said that are shown beside the decision."""

MOST_KEYS = 9
MOST_WORDS = 300
"""Characters of what an agent says about what it asks for."""

ASK = "reply"
"""The question of a reply that offers answers with [ASK: …]. Those of running turns have ids of their CLI."""

Kind = Literal[
    "question", "failed", "conflict", "pick", "review", "allow", "paused", "held", "missed", "trouble", "budget"
]


class Choice(Struct, frozen=True, kw_only=True):
    """One answer: a command with what it is given, as a button sends it and as a person types it."""

    action: str
    """The command's name in the API."""
    label: str
    typed: str
    purpose: str
    given: dict[str, str] = {}
    key: str = ""
    """A digit that chooses it, of answers that an agent offers."""
    is_risky: bool = False
    """Whether it lets an agent do anything: Enter alone is too little for it."""


class Decision(Struct, frozen=True, kw_only=True):
    """Something that waits for a person."""

    kind: Kind
    text: str
    choices: tuple[Choice, ...] = ()
    turn: str = ""
    """The turn that ended without a reply, has a conflict, or begins only if a person allows it; the first of those
    whose results are to be picked from."""
    member: str = ""
    """Whose turn that is, who probably meant to hand over, or whose budget is used up; empty: the conversation's."""
    partial_text: str = ""
    """What it had said by then."""
    others: tuple[str, ...] = ()
    """Who could answer in its place, or resolve its conflict; or whose results can be picked."""
    shown: str = ""
    """Of a question, all that the agent would do: the whole command, the whole diff. Nothing in it is hidden."""
    question: str = ""
    """Which of the turn's questions it is."""
    is_diff: bool = False
    """Whether what is shown is a change of files, line by line."""
    at: int = 0
    """When that was asked, in milliseconds since 1970."""

    @property
    def key(self) -> tuple[Kind, str]:
        """What tells it from every other decision of its conversation."""
        if self.kind == "budget":
            return self.kind, self.member
        return self.kind, f"{self.turn}/{self.question}" if self.question else self.turn

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong."""
        return self.kind in ("failed", "trouble")


def decisions(
    *,
    undecided: Sequence[UndecidedTurn],
    asked: Sequence[Asked] = (),
    asks: Asks = MappingProxyType({}),
    budgets: Sequence[Decision] = (),
    unallowed: Sequence[Unallowed] = (),
    conflicts: Sequence[Conflicted] = (),
    unpicked: Sequence[Unpicked] = (),
    unapproved: Sequence[Unapproved] = (),
    paused: str | None,
    waiting: int,
    held: Sequence[str],
    missed: MissedHandOver | None,
    agents: Iterable[str],
    editors: Sequence[str] = (),
    can_begin: bool = False,
) -> tuple[Decision, ...]:
    """Return everything that waits for a person, the most urgent first. Editors are the agents that may edit files.

    `can_begin` says whether a waiting turn would begin but for a pause.
    """
    names = tuple(agents)
    failed = [_about_turn(ended, names) for ended in reversed(undecided)]
    found = [_about_conflict(conflict, editors) for conflict in reversed(conflicts)]
    found += [_about_results(asked, is_only=len(unpicked) == 1) for asked in reversed(unpicked)]
    found += [_about_review(asked, is_only=len(unapproved) == 1) for asked in reversed(unapproved)]
    found += [_about_unallowed(asked) for asked in reversed(unallowed)]
    if failed and paused is not None:
        # Every decision about a turn also ends the pause: it is one decision, not two.
        more = (*((CONTINUE,) if can_begin else ()), *((DROP,) if waiting else ()))
        failed[0] = replace(failed[0], choices=(*failed[0].choices, *more))
    elif paused is not None:
        found.append(Decision(kind="paused", text=paused, choices=(CONTINUE, DROP) if waiting else (CONTINUE,)))
    elif held:
        verb = "is" if len(held) == 1 else "are"
        text = f"{counted(len(held), 'turn')} from before the pause {verb} on hold: {', '.join(held)}."
        found.append(Decision(kind="held", text=text, choices=(CONTINUE, DROP)))
    elif missed is not None and not undecided:
        found.append(_about_missed(missed))
    # To pick another result settles these, too.
    rivals = {candidate.turn for asked in unpicked for candidate in asked.candidates}
    later = [one for one in failed if one.turn in rivals]
    # An agent that asks is waiting: nothing else is as urgent.
    questions = [_about_question(one, is_only=len(asked) == 1) for one in asked]
    questions += [_about_ask(turn, ask) for turn, ask in asks.items()]
    # Without a raise, a turn that is run again would only wait.
    return (*questions, *budgets, *(one for one in failed if one not in later), *found, *later)


CONTINUE = Choice(action="continue", label="Continue", typed="/continue", purpose="let the waiting turns begin")
DROP = Choice(action="drop", label="Drop the queue", typed="/drop", purpose="remove every waiting turn")
DISMISS = Choice(action="dismiss", label="Leave it", typed="/dismiss", purpose="leave it as it is")


DOES = {
    "command": "wants to run a command",
    "edit": "wants to change files",
    "network": "wants to reach the network",
    "tool": "wants to use a tool",
    "question": "asks you",
}


def _about_question(asked: Asked, *, is_only: bool) -> Decision:
    """Return a question of an agent that is working: whether it may do something, or any other."""
    question, which = asked.question, "" if is_only else f" {asked.turn_id}"
    given = {"turn": asked.turn_id, "question": question.id}
    where = f" in {visible(question.folder)}" if question.folder else ""
    tool = f" ({visible(question.tool)})" if question.kind in ("tool", "network") and question.tool else ""
    # On one line: what an agent says may not look like what bullpen says.
    words = visible(" ".join(question.why.split()))
    why = f" It says: {words[:MOST_WORDS]}{'…' if len(words) > MOST_WORDS else ''}" if words else ""
    if question.kind == "question":
        # It is shown below, all of it.
        why = ""
    return Decision(
        kind="question",
        text=f"{asked.member} {DOES[question.kind]}{tool}{where}.{why}",
        turn=asked.turn_id,
        member=asked.member,
        shown=_shown(question),
        question=question.id,
        is_diff=bool(question.diff),
        at=asked.at,
        choices=_offered(question.choices, given, which) if question.kind == "question" else _answers(given, which),
    )


def _about_ask(turn: str, ask: OpenAsk) -> Decision:
    """Return the question of a reply that offers answers."""
    return Decision(
        kind="question",
        text=f"{ask.member} asks you (turn {turn}).",
        turn=turn,
        member=ask.member,
        shown=visible(ask.words),
        question=ASK,
        at=ask.at,
        choices=_offered(ask.choices, {"turn": turn, "question": ASK}, f" {turn}"),
    )


def _shown(question: ApprovalAsked) -> str:
    """Return all that an agent would do, with nothing hidden."""
    parts = [question.command, *question.paths, question.diff]
    if question.kind == "question":
        parts.append(question.why)
    parts += [f"{name}: {value}" for name, value in question.details.items()]
    return visible("\n".join(part for part in parts if part))


def _answers(given: dict[str, str], which: str) -> tuple[Choice, ...]:
    def yes(label: str, scope: str, purpose: str) -> Choice:
        typed = f"/yes{which}" if scope == "once" else f"/yes {'always' if scope == 'team' else scope}{which}"
        scoped = {**given, "scope": scope}
        return Choice(action="yes", label=label, typed=typed, purpose=purpose, given=scoped, is_risky=True)

    no = Choice(action="no", label="No", typed=f"/no{which} REASON", purpose="no, and tell it why", given=given)
    stop = Choice(action="stop", label="No, stop", typed=f"/stop{which}", purpose="no, and end its turn", given=given)
    return (
        yes("Yes", "once", "yes, this once"),
        yes("In this turn", "turn", "yes, whenever it asks for exactly this in this turn"),
        yes("In this conversation", "conversation", "yes, whenever it asks for exactly this in this conversation"),
        yes("Always", "team", "yes, whenever it asks for exactly this in any conversation of this team"),
        no,
        stop,
    )


def _offered(choices: Iterable[str], given: dict[str, str], which: str) -> tuple[Choice, ...]:
    """Return the answers that an agent offers to its question."""
    offered = [
        Choice(
            action="yes",
            label=visible(choice),
            typed=f"/yes{which} {visible(choice)}",
            purpose=f"answer: {visible(choice)}",
            given={**given, "text": choice},
            key=str(number) if number <= MOST_KEYS else "",
        )
        for number, choice in enumerate(choices, start=1)
    ]
    no = Choice(action="no", label="No answer", typed=f"/no{which}", purpose="do not answer", given=given)
    return (*offered, no)


def with_key(text: str, decisions: Sequence[Decision]) -> Choice | None:
    """Return the answer that a person chooses with a digit; None if no answer has that key now."""
    found = [choice for one in decisions for choice in one.choices if choice.key and choice.key == text.strip()]
    if len(found) > 1:
        typed = " or ".join(choice.typed for choice in found)
        raise BullpenError(f"Several agents offer you answers. Which one do you mean: {typed}?")
    return found[0] if found else None


def _about_turn(ended: UndecidedTurn, agents: Collection[str]) -> Decision:
    turn, given = ended.id, {"turn": ended.id}
    others = tuple(name for name in agents if name != ended.member)
    retry = Choice(action="retry", label="Retry", typed=f"/retry {turn}", purpose="run the turn again", given=given)
    skip = Choice(action="skip", label="Skip", typed=f"/skip {turn}", purpose="continue without it", given=given)
    hand_over = Choice(
        action="hand-over",
        label="Hand over",
        typed=f"/hand NAME {turn}",
        purpose="let another agent answer",
        given=given,
    )
    return Decision(
        kind="failed",
        text=ended.sentence,
        turn=turn,
        member=ended.member,
        partial_text=shortened_partial(ended),
        others=others,
        choices=(
            *((retry,) if ended.member in agents else ()),
            skip,
            *((hand_over,) if others else ()),
        ),
    )


def _about_unallowed(asked: Unallowed) -> Decision:
    turn, given, member = asked.turn.id, {"turn": asked.turn.id}, asked.turn.member
    allow = Choice(
        action="allow",
        label="Allow",
        typed=f"/allow {turn}",
        purpose=f"yes, let {member} answer",
        given=given,
        is_risky=True,
    )
    dismiss = Choice(
        action="dismiss",
        label="Don't allow",
        typed=f"/dismiss {turn}",
        purpose=f"no, drop the turn of {member}",
        given=given,
    )
    return Decision(kind="allow", text=asked.text, turn=turn, member=member, choices=(allow, dismiss))


def _about_conflict(conflict: Conflicted, editors: Sequence[str]) -> Decision:
    turn, given, member = conflict.turn_id, {"turn": conflict.turn_id}, conflict.member
    take = Choice(
        action="take",
        label=f"Take {member}'s",
        typed=f"/take {turn}",
        purpose=f"put the versions of {member} into the shared folder",
        given=given,
    )
    keep = Choice(
        action="keep",
        label="Keep shared",
        typed=f"/keep {turn}",
        purpose="keep the shared versions of these files, and bring all else",
        given=given,
    )
    resolve = Choice(
        action="resolve",
        label="Ask an agent",
        typed=f"/resolve NAME {turn}",
        purpose="put both versions into the files, and let an agent resolve it",
        given=given,
    )
    apart = Choice(
        action="apart",
        label="Leave apart",
        typed=f"/apart {turn}",
        purpose=f"leave all of it in {member}'s own workspace",
        given=given,
    )
    return Decision(
        kind="conflict",
        text=conflict.text,
        turn=turn,
        member=member,
        others=tuple(editors),
        choices=(take, keep, *((resolve,) if editors else ()), apart),
    )


def _about_results(asked: Unpicked, *, is_only: bool) -> Decision:
    given = {"turn": asked.round}
    done = tuple(candidate.member for candidate in asked.candidates if candidate.state == "done")
    pick = Choice(
        action="pick",
        label="Pick one",
        typed="/pick NAME" if is_only else "/pick TURN",
        purpose="bring one result into the shared folder; /compare shows all of them",
        given=given,
    )
    discard = Choice(
        action="discard",
        label="Drop all",
        typed="/discard all" if is_only else f"/discard all {asked.round}",
        purpose=f"pick none, and drop what {listed(candidate.member for candidate in asked.candidates)} did",
        given={**given, "everything": "true"},
    )
    return Decision(
        kind="pick",
        text=asked.text,
        turn=asked.round,
        others=done,
        choices=(*((pick,) if done else ()), discard),
    )


def _about_review(asked: Unapproved, *, is_only: bool) -> Decision:
    given, which = {"member": asked.builder}, "" if is_only else f" {asked.builder}"
    again = Choice(
        action="again",
        label="One more round",
        typed=f"/again{which}",
        purpose=f"one more round: {asked.builder} gets what was asked for, or {asked.reviewer} is asked again",
        given=given,
    )
    end = Choice(
        action="end-review",
        label="End the review",
        typed=f"/end-review{which}",
        purpose="end it without an approval; everything stays as it is",
        given=given,
    )
    return Decision(kind="review", text=asked.text, turn=asked.turn_id, member=asked.builder, choices=(again, end))


def shortened_partial(ended: UndecidedTurn) -> str:
    """Return the beginning of what a turn had said; the record of the turn has all of it."""
    text = ended.failure.partial_text if ended.failure else ""
    return (
        text if len(text) <= MOST_PARTIAL else f"{text[:MOST_PARTIAL]}\n… {len(text) - MOST_PARTIAL:,} more characters"
    )


def _about_missed(missed: MissedHandOver) -> Decision:
    names = ", ".join(missed.members)
    ask = Choice(
        action="ask",
        label=f"Ask {names}",
        typed=f"/next {names}",
        purpose=f"ask {names} now{', with full permissions' if missed.needs_yes else ''}",
        given={"names": names},
        is_risky=missed.needs_yes,
    )
    return Decision(kind="missed", text=missed.sentence, member=missed.sender, choices=(ask, DISMISS))
