"""Reviews: what one agent does and another one reviews, round by round, until it approves. Plain data."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.markers.grammar import Markers, Verdict, read_markers
from bullpen.markers.stripping import strip_all_markers
from bullpen.routing.verdict_words import verdict_in_words
from bullpen.text.clean import one_line

ReviewState = Literal["building", "built", "reviewing", "judged", "asking", "approved", "ended"]
"""The builder works; has ended its turn; the reviewer is asked; has approved, which is compared with the files; a
person decides. It is over: approved, or ended by a person."""
OVER: tuple[ReviewState, ...] = ("approved", "ended")
MOST_WORDS = 300
"""Characters of what a reviewer asked for that are kept."""


class ReviewRound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One time that the reviewer was asked."""

    turns: tuple[str, ...]
    """The builder's turns since the round before."""
    turn: str
    """The reviewer's turn."""
    files: str = ""
    """The id of all files for which the verdict counts; empty: nobody knows."""
    reply: str = ""
    """The message with the verdict."""
    verdict: Literal["", "approve", "changes", "unclear"] = ""
    is_stale: bool = False
    """Whether files had changed by the time that it approved."""
    words: str = ""
    """How the reply begins."""


class Review(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a builder does and its reviewer says about it."""

    builder: str
    reviewer: str
    most: int
    """How many rounds there may be, with those that a person has allowed."""
    state: ReviewState = "built"
    turn: str = ""
    """The turn that is waited for: the reviewer's, or one in which the builder answers; empty: any of the builder's."""
    turns: tuple[str, ...] = ()
    """The builder's turns that nobody has reviewed yet."""
    message_id: str = ""
    """What the builder said last."""
    is_wanted: bool = False
    """Whether the builder handed over to its reviewer: then it is asked even if no files were changed."""
    rounds: tuple[ReviewRound, ...] = ()
    why_asked: str = ""
    """Why a person is asked, in a sentence."""
    is_asked: bool = False
    """Whether a person is asked already."""
    asked_at: int = 0
    """When; the rounds count from zero if a person has spoken since."""
    ended_by: str = ""
    """The person who ended it without an approval."""
    is_told: bool = False
    """Whether the conversation says how it ended."""

    @property
    def is_over(self) -> bool:
        """Whether nobody is asked any more."""
        return self.state in OVER

    @property
    def has_rounds_left(self) -> bool:
        """Whether the reviewer may be asked once more without a person."""
        return len(self.rounds) < self.most

    @property
    def is_unclear(self) -> bool:
        """Whether the reviewer's last reply has no clear verdict."""
        return bool(self.rounds) and self.rounds[-1].verdict == "unclear"

    @property
    def question(self) -> str:
        """What a person decides."""
        if self.is_unclear:
            return f"Should {self.reviewer} be asked for its verdict again?"
        return f"Should {self.reviewer} and {self.builder} continue for one more round?"

    @property
    def all_turns(self) -> tuple[str, ...]:
        """All turns of the builder, in order."""
        return tuple(dict.fromkeys([*(turn for one in self.rounds for turn in one.turns), *self.turns]))

    @property
    def waits_for(self) -> str:
        """Who has the next word; empty: nobody, or a person."""
        if self.state in ("building", "built"):
            return self.builder
        return self.reviewer if self.state == "reviewing" else ""

    @property
    def sentence(self) -> str:
        """What becomes of it now, in a line for people."""
        number = max(len(self.rounds) + (self.state in ("building", "built") and bool(self.rounds)), 1)
        where = f"{self.reviewer} reviews {self.builder}: round {min(number, self.most)} of {self.most}"
        match self.state:
            case "approved":
                return f"{self.reviewer} approved what {self.builder} did, in round {len(self.rounds)} of {self.most}"
            case "ended":
                return f"{self.ended_by} ended the review of {self.builder} by {self.reviewer} without an approval"
            case "asking":
                return f"{where}, waiting for your decision"
            case "judged":
                return f"{where}, approved; looking at the files"
            case _:
                return f"{where}, waiting for {self.waits_for}"

    def with_last(self, last: ReviewRound) -> "Review":
        """Return the review with its last round replaced."""
        return replace(self, rounds=(*self.rounds[:-1], last))


Reviews = Mapping[str, Review]
"""By the names of the builders."""


def review_of(reviews: Reviews, turn: str) -> Review | None:
    """Return the review in which a turn is the reviewer's that is asked for a verdict."""
    return next((one for one in reviews.values() if one.state == "reviewing" and one.turn == turn), None)


def verdict_of(text: str, markers: Markers, *, hands_back: bool = False) -> Verdict | None:
    """Return the verdict of a reply: what [VERDICT: …] says, else what its words do; None if that is not clear.

    Several that differ are not clear: one of them may be what the work says itself, repeated by the reviewer. One that
    hands back to the builder without a word of approval wants something of it.
    """
    if markers.verdicts:
        first, *others = markers.verdicts
        return first if all(other == first for other in others) else None
    words = verdict_in_words(text)
    return "changes" if words is None and hands_back else words


def judged(one: Review, reply: str, text: str, verdict: Verdict | None) -> Review:
    """Return a review with what the reviewer said in its last round."""
    last = replace(one.rounds[-1], reply=reply, verdict=verdict or "unclear", words=first_words(text))
    one = replace(one.with_last(last), turn="")
    if verdict == "approve":
        return replace(one, state="judged")
    if verdict == "changes" and one.has_rounds_left:
        return replace(one, state="building")
    return asking(one, _why(one, text, verdict))


def asking(one: Review, why: str) -> Review:
    """Return a review about which a person decides."""
    return replace(one, state="asking", turn="", why_asked=why, is_asked=False)


def _why(one: Review, text: str, verdict: Verdict | None) -> str:
    if verdict == "changes":
        return f"{one.reviewer} still asks for changes in round {len(one.rounds)} of {one.most}."
    said = "several verdicts that differ" if len(read_markers(text).verdicts) > 1 else "no clear verdict"
    return f"{one.reviewer}'s reply has {said}."


def first_words(text: str) -> str:
    """Return how a text begins, in one line without markers."""
    words = one_line(strip_all_markers(text))
    return words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 1].rstrip()}…"
