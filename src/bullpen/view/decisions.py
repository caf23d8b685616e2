"""What a person is asked to decide, and the choices there are. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.conversation.events import Asked, Conflicted, ProgramsChanged, Unallowed, Unapproved, Unpicked
from bullpen.conversation.state import UndecidedTurn
from bullpen.errors import BullpenError
from bullpen.routing.asks import Asks, OpenAsk
from bullpen.routing.missed_hand_overs import MissedHandOver
from bullpen.team.answer_scopes import may_hold_longer
from bullpen.text.names import listed
from bullpen.text.numbers import counted
from bullpen.text.visible import visible
from bullpen.turn_events import ApprovalAsked

MOST_PARTIAL = 2_000
"""Characters of what a turn had said that are shown beside the decision."""

NAME_LETTERS = "bcdfghjkmnpqrstvwxz"
"""Of the names of questions: without vowels, they are hardly ever words."""
MOST_KEYS = 9
YES, YES_FROM_NOW_ON, NO, STOP = "1", "2", "3", "esc"
"""The keys of answers, the same on every card: one that is not offered leaves its key out."""
REASON = "REASON"
AT_A_GLANCE_LINES, AT_A_GLANCE_CHARACTERS = 12, 800
"""What is shown of a question and fits on a small screen, with its answers."""
MOST_WORDS = 300
"""Characters of what an agent says about what it asks for."""

ASK = "reply"
"""The question of a reply that offers answers with [ASK: …]. Those of running turns have ids of their CLI."""

Kind = Literal[
    "question",
    "failed",
    "conflict",
    "pick",
    "review",
    "allow",
    "paused",
    "held",
    "missed",
    "trouble",
    "budget",
    "programs",
]
DecisionKey = tuple[Kind, str]


class Choice(Struct, frozen=True, kw_only=True):
    """One answer: a command with what it is given, as a button sends it and as a person types it."""

    action: str
    """The command's name in the API."""
    label: str
    typed: str
    purpose: str
    given: dict[str, str] = {}
    key: str = ""
    """What chooses it on its card, where nothing is written yet: a digit, or esc."""
    is_risky: bool = False
    """Whether it lets an agent do something."""

    @property
    def begins(self) -> str:
        """What it begins in the composer, if words are to follow: "/no 14 "."""
        return self.typed.removesuffix(REASON) if self.typed.endswith(REASON) else ""


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
    hint: str = ""
    """Of a failure, what to do about it; the text ends with it."""
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
    def key(self) -> DecisionKey:
        """What tells it from every other decision of its conversation."""
        if self.kind == "budget":
            return self.kind, self.member
        return self.kind, f"{self.turn}/{self.question}" if self.question else self.turn

    @property
    def name(self) -> str:
        """What a person types to mean this question, whichever others its turn asks: "14/bkq"."""
        return self.turn if self.question == ASK else f"{self.turn}/{_letters(self.question)}"

    @property
    def keys(self) -> str:
        """Its answers with their keys, in a line."""
        return "  ".join(f"{choice.key} {choice.label}" for choice in self.choices if choice.key)

    @property
    def is_about_doing(self) -> bool:
        """Whether an agent that works asks if it may do something."""
        return self.kind == "question" and bool(self.choices) and self.choices[0].is_risky

    @property
    def length(self) -> str:
        """How long what is shown is, unless all of it is seen at a glance: a screen may begin or end in its middle."""
        return _length(self.shown)

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong."""
        return self.kind in ("failed", "trouble")

    @property
    def asks(self) -> bool:
        """Whether a person is asked something, besides failures and what follows from them."""
        return not self.is_failure and self.kind not in ("paused", "held", "missed")


def decisions(
    *,
    undecided: Sequence[UndecidedTurn],
    asked: Sequence[Asked] = (),
    asks: Asks = MappingProxyType({}),
    budgets: Sequence[Decision] = (),
    unallowed: Sequence[Unallowed] = (),
    programs: Sequence[ProgramsChanged] = (),
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
    cancelled: Sequence[UndecidedTurn] = (),
) -> tuple[Decision, ...]:
    """Return everything that waits for a person, the most urgent first. Editors are the agents that may edit files.

    Nobody is asked about a turn that they have cancelled themselves, but while others wait, it can be retried.
    `can_begin` says whether a waiting turn would begin but for a pause.
    """
    names = tuple(agents)
    failed = [_about_turn(ended, names) for ended in reversed(undecided)]
    found = [_about_conflict(conflict, editors) for conflict in reversed(conflicts)]
    found += [_about_results(asked, is_only=len(unpicked) == 1) for asked in reversed(unpicked)]
    found += [_about_review(asked, is_only=len(unapproved) == 1) for asked in reversed(unapproved)]
    found += [_about_unallowed(asked) for asked in reversed(unallowed)]
    if len(failed) > 1:
        failed[0] = replace(failed[0], choices=(*failed[0].choices, SKIP_ALL))
    if failed and paused is not None:
        # Every decision about a turn also ends the pause: it is one decision, not two.
        more = (*((CONTINUE,) if can_begin else ()), *((DROP,) if waiting else ()))
        failed[0] = replace(failed[0], choices=(*failed[0].choices, *more))
    elif paused is not None:
        more = (*((DROP,) if waiting else ()), *(_retry(one) for one in cancelled[-1:] if one.member in names))
        found.append(Decision(kind="paused", text=paused, choices=(CONTINUE, *more)))
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
    of_turn = Counter(one.turn_id for one in asked)
    questions = [_about_question(one, is_only=len(asked) == 1, is_alone=of_turn[one.turn_id] == 1) for one in asked]
    questions += [_about_ask(turn, ask) for turn, ask in asks.items()]
    # Without a raise, a turn that is run again would only wait.
    changed = [_about_programs(one) for one in programs]
    return (*questions, *changed, *budgets, *(one for one in failed if one not in later), *found, *later)


CONTINUE = Choice(action="continue", label="Continue", typed="/continue", purpose="let the waiting turns begin")
DROP = Choice(action="drop", label="Drop the queue", typed="/drop", purpose="remove every waiting turn")
SKIP_ALL = Choice(
    action="skip",
    label="Skip all",
    typed="/skip all",
    purpose="continue without any of the turns that ended without a reply",
    given={"everything": "true"},
)
DISMISS = Choice(action="dismiss", label="Leave it", typed="/dismiss", purpose="leave it as it is")


DOES = {
    "command": "wants to run a command",
    "edit": "wants to change files",
    "network": "wants to reach the network",
    "tool": "wants to use a tool",
    "question": "asks you",
}


def _letters(question: str) -> str:
    """Return three letters for a question. They stay when others come and go, which a place in a list does not."""
    digest = sha256(question.encode(errors="surrogatepass")).digest()
    return "".join(NAME_LETTERS[byte % len(NAME_LETTERS)] for byte in digest[:3])


def _about_question(asked: Asked, *, is_only: bool, is_alone: bool) -> Decision:
    """Return a question of an agent that is working: whether it may do something, or any other.

    `is_alone` says whether its turn asks nothing else: if it does, the turn is not a name for this.
    """
    name = f"{asked.turn_id}/{_letters(asked.question.id)}"
    question, which = asked.question, "" if is_only else f" {asked.turn_id}" if is_alone else f" {name}"
    named = "" if is_alone else f" (question {name})"
    given = {"turn": asked.turn_id, "question": question.id}
    where = f" in {visible(question.folder)}" if question.folder else ""
    tool = f" ({visible(question.tool)})" if question.kind in ("tool", "network") and question.tool else ""
    # On one line: what an agent says may not look like what bullpen says.
    words = visible(" ".join(question.why.split()))
    why = f" It says: {words[:MOST_WORDS]}{'…' if len(words) > MOST_WORDS else ''}" if words else ""
    if question.kind == "question":
        # It is shown below, all of it.
        why = ""
    shown = _shown(question)
    return Decision(
        kind="question",
        text=f"{asked.member} {DOES[question.kind]}{tool}{where}{named}.{_length(shown, ' ')}{why}",
        turn=asked.turn_id,
        member=asked.member,
        shown=shown,
        question=question.id,
        is_diff=bool(question.diff),
        at=asked.at,
        choices=_offered(question.choices, given, which)
        if question.kind == "question"
        else _answers(question, given, which),
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


def _length(shown: str, before: str = "") -> str:
    lines = shown.count("\n") + 1
    if lines <= AT_A_GLANCE_LINES and len(shown) <= AT_A_GLANCE_CHARACTERS:
        return ""
    return (
        f"{before}That is {counted(lines, 'line')} and {len(shown):,} characters: read it from the first to the last."
    )


def _answers(question: ApprovalAsked, given: dict[str, str], which: str) -> tuple[Choice, ...]:
    once = Choice(
        action="yes",
        label="Yes",
        typed=f"/yes{which}",
        purpose="yes, this once",
        given={**given, "scope": "once"},
        key=YES,
        is_risky=True,
    )
    longer = Choice(
        action="yes",
        label="Yes, for exactly this from now on",
        typed=f"/yes conversation{which}",
        purpose="yes, whenever it asks for exactly this in this conversation",
        given={**given, "scope": "conversation"},
        key=YES_FROM_NOW_ON,
        is_risky=True,
    )
    no = Choice(
        action="no",
        label="No, and say why",
        typed=f"/no{which} {REASON}",
        purpose="no, and tell it why",
        given=given,
        key=NO,
    )
    stop = Choice(
        action="stop", label="stop", typed=f"/stop{which}", purpose="no, and end its turn", given=given, key=STOP
    )
    return (once, *((longer,) if may_hold_longer(question) else ()), no, stop)


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
    word = text.strip()
    found = [choice for one in decisions for choice in one.choices if word.isdecimal() and choice.key == word]
    if len(found) > 1:
        typed = " or ".join(choice.typed for choice in found)
        raise BullpenError(f"Several questions wait for you. Which one do you mean: {typed}?")
    return found[0] if found else None


def _about_turn(ended: UndecidedTurn, agents: Collection[str]) -> Decision:
    turn, given = ended.id, {"turn": ended.id}
    others = tuple(name for name in agents if name != ended.member)
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
        hint=ended.hint,
        turn=turn,
        member=ended.member,
        partial_text=shortened_partial(ended),
        others=others,
        choices=(
            *((_retry(ended),) if ended.member in agents else ()),
            skip,
            *((hand_over,) if others else ()),
        ),
    )


def _retry(ended: UndecidedTurn) -> Choice:
    given = {"turn": ended.id}
    return Choice(action="retry", label="Retry", typed=f"/retry {ended.id}", purpose="run the turn again", given=given)


def _about_unallowed(asked: Unallowed) -> Decision:
    turn, given, member = asked.turn.id, {"turn": asked.turn.id}, asked.turn.member
    allow = Choice(
        action="allow",
        label="Allow",
        typed=f"/allow {turn}",
        purpose=f"yes, let {member} answer",
        given=given,
        key=YES,
        is_risky=True,
    )
    dismiss = Choice(
        action="dismiss",
        label="Don't allow",
        typed=f"/dismiss {turn}",
        purpose=f"no, drop the turn of {member}",
        given=given,
        key=NO,
    )
    return Decision(kind="allow", text=asked.text, turn=turn, member=member, choices=(allow, dismiss))


def _about_programs(changed: ProgramsChanged) -> Decision:
    turn, given = changed.turn_id, {"turn": changed.turn_id}
    keep = Choice(
        action="allow",
        label="Keep",
        typed=f"/allow {turn}",
        purpose=f"keep these files as {changed.member} made them, and let agents begin",
        given=given,
        key=YES,
        is_risky=True,
    )
    undo = Choice(
        action="dismiss",
        label="Put back",
        typed=f"/dismiss {turn}",
        purpose="put these files back to what they were before that turn, and let agents begin",
        given=given,
        key=NO,
    )
    text = f"{changed.text} /diff {turn} shows what changed."
    choices = (keep, undo) if changed.can_be_undone else (keep,)
    return Decision(kind="programs", text=text, turn=turn, member=changed.member, choices=choices)


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
        key=YES,
        is_risky=missed.needs_yes,
    )
    leave = replace(DISMISS, key=NO)
    return Decision(kind="missed", text=missed.sentence, member=missed.sender, choices=(ask, leave))
