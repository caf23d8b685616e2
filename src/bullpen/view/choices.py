"""Choice and Decision: what waits for a person, and the answers with their keys. Pure."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.errors import BullpenError
from bullpen.text.numbers import counted

NAME_LETTERS = "bcdfghjkmnpqrstvwxz"
"""Of the names of questions: without vowels, they are hardly ever words."""
MOST_KEYS = 9
YES, YES_FROM_NOW_ON, NO, STOP = "1", "2", "3", "esc"
"""The keys of answers to questions, the same on every card: one that is not offered leaves its key out."""
WITHOUT_KEY = ("drop", "discard")
"""What cannot be undone is typed, or chosen with the mouse."""
AT_A_GLANCE_LINES, AT_A_GLANCE_CHARACTERS = 12, 800
"""What is shown of a question and fits on a small screen, with its answers."""

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
    "left",
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
    begins: str = ""
    """What it begins in the composer, if words are to follow: "/no 14 "."""
    lacks_name: bool = False
    """Whether it does nothing without those words: a name, or a turn."""
    key: str = ""
    """What chooses it on its card, where nothing is written yet: a digit, or esc."""
    is_risky: bool = False
    """Whether it lets an agent do something."""


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
        return self.turn if self.question == ASK else f"{self.turn}/{letters(self.question)}"

    @property
    def keys(self) -> str:
        """Its answers with their keys, in a line."""
        return "  ".join(f"{choice.key} {choice.label}" for choice in self.choices if choice.key)

    @property
    def is_about_doing(self) -> bool:
        """Whether an agent that works asks if it may do something."""
        return self.kind == "question" and bool(self.choices) and self.choices[0].is_risky

    @property
    def is_yes_or_no(self) -> bool:
        """Whether its first answer is a yes, and its last a no."""
        return self.is_about_doing or self.kind in ("allow", "left", "missed", "programs")

    @property
    def length(self) -> str:
        """How long what is shown is, unless all of it is seen at a glance: a screen may begin or end in its middle."""
        return length_of(self.shown)

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong."""
        return self.kind in ("failed", "trouble")

    @property
    def asks(self) -> bool:
        """Whether a person is asked something, besides failures and what follows from them."""
        return not self.is_failure and self.kind not in ("paused", "held", "missed")


def with_keys(decision: Decision) -> Decision:
    """Return a decision whose answers have digits, in their order. Where a yes or a no is asked, they have theirs."""
    if decision.kind == "question" or any(choice.key for choice in decision.choices[:1]):
        return decision
    keys = iter([*map(str, range(1, MOST_KEYS + 1)), *[""] * len(decision.choices)])
    choices = (replace(one, key="" if one.action in WITHOUT_KEY else next(keys)) for one in decision.choices)
    return replace(decision, choices=tuple(choices))


def with_key(text: str, decisions: Sequence[Decision]) -> Choice | None:
    """Return the answer that a person chooses with a digit; None if no answer has that key now.

    The most urgent decision comes first: many doors show no other, so a digit that passes it over is refused.
    """
    word = text.strip()
    meant = [one for one in decisions if word.isdecimal() and word in [choice.key for choice in one.choices]]
    # An agent that asks is waiting: its question comes first.
    meant = [one for one in meant if one.kind == "question"] or meant
    found = [choice for one in meant for choice in one.choices if choice.key == word]
    passed_over = decisions[0].choices[:1] if meant and decisions[0] not in meant else ()
    if len(found) > 1 or passed_over:
        typed = " or ".join(choice.typed for choice in (*passed_over, *found))
        raise BullpenError(f"Several things wait for you. Which one do you mean: {typed}?")
    return found[0] if found else None


def letters(question: str) -> str:
    """Return three letters for a question. They stay when others come and go, which a place in a list does not."""
    digest = sha256(question.encode(errors="surrogatepass")).digest()
    return "".join(NAME_LETTERS[byte % len(NAME_LETTERS)] for byte in digest[:3])


def length_of(shown: str, before: str = "") -> str:
    """Return how long a text is, unless all of it is seen at a glance."""
    lines = shown.count("\n") + 1
    if lines <= AT_A_GLANCE_LINES and len(shown) <= AT_A_GLANCE_CHARACTERS:
        return ""
    return (
        f"{before}That is {counted(lines, 'line')} and {len(shown):,} characters: read it from the first to the last."
    )
