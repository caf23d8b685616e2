"""Reviews: what one agent does and another one reviews, round by round, until it approves. Plain data."""

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.markers.code import hide_code
from bullpen.markers.grammar import Markers, Verdict, read_markers
from bullpen.markers.stripping import strip_all_markers
from bullpen.routing.verdict_doubts import against_approval
from bullpen.routing.verdict_readings import readings
from bullpen.routing.verdict_words import verdict_in_words
from bullpen.text.clean import INVISIBLE, one_line
from bullpen.text.patterns import pattern

ReviewState = Literal["building", "built", "reviewing", "judged", "asking", "approved", "ended"]
"""The builder works; has ended its turn; the reviewer is asked; has approved, which is compared with the files; a
person decides. It is over: approved, or ended by a person."""
OVER: tuple[ReviewState, ...] = ("approved", "ended")
UNASKED = "verdictUnasked"
"""The field of a message with a verdict that nobody had asked for, so that it did nothing."""
MOST_WORDS = 300
"""Characters of what a reviewer asked for that are kept."""
_MARKUP = pattern(r"(?m)^[ \t]*(?:#{1,6}|[-*+>]|\d{1,3}[.)])[ \t]+|\*\*|(?<!`)`(?P<code>[^`\[\]\n]+)`(?!`)")
"""What only says how a text is set. Code with a marker stays code."""
EMPHASIS = "*_ \t\r"
"""What may be around a marker on its line."""
CODE = ("    ", "\t")
"""What a line of code begins with."""
BLANK = " \t\r"
_TAG = re.compile(r"^[ \t]*<([a-z][a-z0-9-]*)", re.MULTILINE)
NEVER_CLOSED = frozenset({"br", "hr", "img", "li", "p"})
"""Elements of HTML within which a line is not."""
_TABLE_HEAD = re.compile(r"[ \t|:+-]*-[ \t|:+-]*\r?")
OPEN_QUOTES = (("<!--", "-->"), ("“", "”"), ("「", "」"), ("『", "』"), ("<blockquote", "</blockquote"))
"""What opens a quote or a comment, and what closes it."""


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
    why: str = ""
    """Why the verdict is unclear, as the end of a sentence."""


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
    def number(self) -> int:
        """Which round it is: how often there was a verdict, with the one that the reviewer is asked for."""
        return sum(one.verdict != "unclear" for one in self.rounds)

    @property
    def has_rounds_left(self) -> bool:
        """Whether the reviewer may be asked once more without a person."""
        return self.number < self.most

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
        is_next = self.is_unclear or (self.state in ("building", "built") and bool(self.rounds))
        number = max(self.number + is_next, 1)
        where = f"{self.reviewer} reviews {self.builder}: round {min(number, self.most)} of {self.most}"
        match self.state:
            case "approved":
                return f"{self.reviewer} approved what {self.builder} did, in round {self.number} of {self.most}"
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
    """Return the verdict of a reply: [VERDICT: …] as a line of its own at its end; None if that is not clear.

    Anywhere else it may be what the work says, or part of a sentence that says the opposite. Words that say the
    opposite of the marker, a condition before it, and markers that differ, are not clear. One that hands back to the
    builder without any marker wants something of it.
    """
    if not markers.verdicts:
        return "changes" if hands_back else None
    return None if why_unclear(text, markers) else markers.verdicts[-1]


def why_unclear(text: str, markers: Markers) -> str:
    """Return why a reply gives no verdict, as the end of a sentence; empty if it gives one.

    It contains no marker: those are removed from what the reviewer is told.
    """
    if not markers.verdicts:
        return "it has no verdict outside of code and quotes"
    verdict = _verdict_at_the_end(text, markers)
    if verdict is None:
        return "the verdict is not a line of its own at its end"
    if any(one != verdict for one in markers.verdicts):
        return "it has several verdicts that differ"
    if any(verdict_in_words(one) not in (None, verdict) for one in readings(text)):
        return "its words say the opposite of its verdict"
    return next(filter(None, map(against_approval, readings(text))), "") if verdict == "approve" else ""


def _verdict_at_the_end(text: str, markers: Markers) -> Verdict | None:
    """Return what the last line says; lines after it with other markers alone do not count."""
    last = next((marker for marker in reversed(markers.found) if marker.kind == "verdict"), None)
    if last is None:
        return None
    start = text.rfind("\n", 0, last.start) + 1
    behind, _, after = text[last.end :].partition("\n")
    around = (text[start : last.start], behind)
    # An item of a list may be one of several, and a line right below a quote belongs to it.
    is_item = bool(around[0].strip()) and around[0][-1:].isspace()
    # Bold, it may be a quote of what was asked for; a yes must be plain.
    around_it = BLANK if markers.verdicts[-1] == "approve" else EMPHASIS
    is_alone = not "".join(around).strip(around_it) and not around[0].startswith(CODE) and not is_item
    is_alone = is_alone and not _is_in_quote(text[:start])
    return markers.verdicts[-1] if is_alone and not strip_all_markers(after).strip() else None


def _is_in_quote(before: str) -> bool:
    """Return whether the paragraph that a line continues has begun as a quote or table, or one before is still open."""
    lines = before.split("\n")[:-1]
    if lines and "|" in lines[-1] and _TABLE_HEAD.fullmatch(lines[-1]):
        return True
    for line in reversed(lines):
        if not line.strip(BLANK):
            break
        if line.lstrip(BLANK + INVISIBLE).startswith((">", "＞")):
            return True
    lower = hide_code(before).lower()
    tags = {*_TAG.findall(lower)} - NEVER_CLOSED
    pairs = [(f"<{tag}", f"</{tag}") for tag in tags]
    return any(lower.rfind(opens) > lower.rfind(closes) for opens, closes in (*OPEN_QUOTES, *pairs))


def judged(one: Review, reply: str, text: str, verdict: Verdict | None) -> Review:
    """Return a review with what the reviewer said in its last round."""
    why = "" if verdict else why_unclear(text, read_markers(text))
    last = replace(one.rounds[-1], reply=reply, verdict=verdict or "unclear", words=first_words(text), why=why)
    one = replace(one.with_last(last), turn="")
    if verdict == "approve":
        return replace(one, state="judged")
    if verdict == "changes" and one.has_rounds_left:
        return replace(one, state="building")
    if verdict is None and not any(before.verdict == "unclear" for before in one.rounds[-2:-1]):
        # The reviewer is asked once more, and then a person.
        return replace(one, state="built")
    return asking(one, _why(one, verdict))


def asking(one: Review, why: str) -> Review:
    """Return a review about which a person decides."""
    return replace(one, state="asking", turn="", why_asked=why, is_asked=False)


def _why(one: Review, verdict: Verdict | None) -> str:
    if verdict == "changes":
        return f"{one.reviewer} still asks for changes in round {one.number} of {one.most}."
    why = f": {one.rounds[-1].why}" if one.rounds[-1].why else ""
    return f"{one.reviewer} was asked twice, and gave no clear verdict{why}."


def first_words(text: str) -> str:
    """Return how a text begins, in one line without markers."""
    words = one_line(strip_all_markers(_MARKUP.sub(lambda found: found["code"] or "", text)))
    return words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 1].rstrip()}…"
