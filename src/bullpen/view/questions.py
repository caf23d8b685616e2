"""What agents ask, as decisions: whether they may do something, and anything else. Pure."""

from collections.abc import Iterable

from bullpen.approvals import Scope
from bullpen.conversation.events import Asked
from bullpen.routing.asks import OpenAsk
from bullpen.team.answer_scopes import may_hold_longer
from bullpen.text.visible import visible
from bullpen.turn_events import ApprovalAsked
from bullpen.view.choices import ASK, MOST_KEYS, NO, STOP, YES, YES_FROM_NOW_ON, Choice, Decision, length_of, letters

MOST_WORDS = 300
"""Characters of what an agent says about what it asks for."""

DOES = {
    "command": "wants to run a command",
    "edit": "wants to change files",
    "network": "wants to reach the network",
    "tool": "wants to use a tool",
    "question": "asks you",
}


def about_question(asked: Asked, *, is_only: bool, is_alone: bool) -> Decision:
    """Return a question of an agent that is working: whether it may do something, or any other.

    `is_alone` says whether its turn asks nothing else: if it does, the turn is not a name for this.
    """
    name = f"{asked.turn_id}/{letters(asked.question.id)}"
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
        text=f"{asked.member} {DOES[question.kind]}{tool}{where}{named}.{length_of(shown, ' ')}{why}",
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


def about_ask(turn: str, ask: OpenAsk) -> Decision:
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


def _answers(question: ApprovalAsked, given: dict[str, str], which: str) -> tuple[Choice, ...]:
    longer = _yes("conversation", "Yes, for exactly this from now on", YES_FROM_NOW_ON, given, which)
    return (
        _yes("once", "Yes", YES, given, which),
        *((longer,) if may_hold_longer(question) else ()),
        Choice(
            action="no",
            label="No, and say why",
            typed=f"/no{which} REASON",
            purpose="no, and tell it why",
            given=given,
            begins=f"/no{which} ",
            key=NO,
        ),
        Choice(
            action="stop", label="stop", typed=f"/stop{which}", purpose="no, and end its turn", given=given, key=STOP
        ),
    )


HOW_LONG: dict[Scope, str] = {
    "once": "this once",
    "conversation": "whenever it asks for exactly this in this conversation",
}


def _yes(scope: Scope, label: str, key: str, given: dict[str, str], which: str) -> Choice:
    return Choice(
        action="yes",
        label=label,
        typed=f"/yes{which}" if scope == "once" else f"/yes {scope}{which}",
        purpose=f"yes, {HOW_LONG[scope]}",
        given={**given, "scope": scope},
        key=key,
        is_risky=True,
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
