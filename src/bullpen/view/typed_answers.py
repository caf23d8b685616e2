"""Typed answers: each is about a question that was shown where it was typed, not about one that came meanwhile."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from bullpen.errors import BullpenError
from bullpen.team.team import Team
from bullpen.text.asked_words import few
from bullpen.view.choices import ASK, Choice, Decision
from bullpen.view.command_arguments import NOT_SHOWN, OneAnswer
from bullpen.view.commands import Command, Typed, read_command, typed_choice


def read_typed(text: str, team: Team, shown: Sequence[Decision], more: Iterable[Command] = ()) -> Typed | None:
    """Return the command that a text is, as read_command does; an answer has the question that is meant.

    `shown` is what the person saw. If that question is not open any more, the command says so and answers nothing.
    """
    questions = [one for one in shown if one.kind == "question"]
    if (choice := _offered(text, questions)) is not None:
        return typed_choice(choice)
    typed = read_command(text, team, more)
    if typed is None or not isinstance(typed.given, OneAnswer):
        return typed
    return Typed(typed.command, _about(typed.given, questions, text))


def _offered(text: str, questions: Sequence[Decision]) -> Choice | None:
    """Return the answer of an agent that was typed word for word: "Always" and "8080" may be such, too."""
    line = _plain(text)
    found = [
        choice
        for one in questions
        for choice in one.choices
        if "text" in choice.given
        and line in (_plain(f"/yes {which} {choice.label}") for which in ("", one.turn, one.name))
    ]
    if len({(choice.given["turn"], choice.given["question"]) for choice in found}) > 1:
        raise _several(choice.typed for choice in found)
    return found[0] if found else None


def _about(given: OneAnswer, questions: Sequence[Decision], text: str) -> OneAnswer:
    """Return an answer with the question that is meant."""
    named = given.question and f"{given.turn}/{given.question}"
    meant = [one for one in questions if given.turn in (None, one.turn) and named in (None, one.name)]
    # Agents that wait come first.
    meant = [one for one in meant if one.question != ASK] or meant
    if len({(one.turn, one.question) for one in meant}) > 1:
        turns, command = [one.turn for one in meant], text.split()[0]
        names = (
            one.turn if turns.count(one.turn) == 1 and not given.command else f"{one.name} ({few(one.shown)})"
            for one in meant
        )
        raise _several(f"{command} {name}" for name in names)
    if not meant:
        return given if given.turn is not None else replace(given, question=NOT_SHOWN)
    one = meant[0]
    if given.scope != "once" and not any(choice.is_risky for choice in one.choices):
        # To a question that is not about doing something, "turn" is a word like any other.
        given = replace(given, scope="once", text=f"{text.split()[1]} {given.text}".strip())
    return replace(given, turn=one.turn, question=one.question)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _several(typed: Iterable[str]) -> BullpenError:
    return BullpenError(f"Several questions wait for you. Which one do you mean: {' or '.join(typed)}?")
