"""A review as a value: who has the next word, what people read of it, and what a verdict makes of it."""

import pytest

from bullpen.markers.grammar import Verdict
from bullpen.routing.reviews import MOST_WORDS, Review, ReviewRound, ReviewState, first_words, judged

ROUND = ReviewRound(turns=("t1",), turn="r1")


def review(state: ReviewState, *rounds: ReviewRound, most: int = 2) -> Review:
    return Review(builder="max", reviewer="sarah", most=most, state=state, rounds=rounds, ended_by="Ana")


@pytest.mark.parametrize(
    ("state", "rounds", "who", "sentence"),
    [
        ("building", 0, "max", "sarah reviews max: round 1 of 2, waiting for max"),
        ("building", 1, "max", "sarah reviews max: round 2 of 2, waiting for max"),
        ("built", 2, "max", "sarah reviews max: round 2 of 2, waiting for max"),
        ("reviewing", 1, "sarah", "sarah reviews max: round 1 of 2, waiting for sarah"),
        ("judged", 1, "", "sarah reviews max: round 1 of 2, approved; looking at the files"),
        ("asking", 2, "", "sarah reviews max: round 2 of 2, waiting for your decision"),
        ("approved", 1, "", "sarah approved what max did, in round 1 of 2"),
        ("ended", 1, "", "Ana ended the review of max by sarah without an approval"),
    ],
)
def test_who_has_the_next_word_and_what_people_read(state: ReviewState, rounds: int, who: str, sentence: str) -> None:
    one = review(state, *[ROUND] * rounds)

    assert (one.waits_for, one.sentence) == (who, sentence)


@pytest.mark.parametrize(
    ("rounds", "verdict", "state", "most"),
    [
        (1, "approve", "judged", 2),
        (1, "changes", "building", 2),
        (2, "changes", "asking", 2),
        (1, None, "built", 2),
        # It is asked once more, also after the last round.
        (2, None, "built", 2),
    ],
)
def test_what_a_verdict_leads_to(rounds: int, verdict: Verdict | None, state: ReviewState, most: int) -> None:
    after = judged(review("reviewing", *[ROUND] * rounds), "m1", "Hm.", verdict)

    assert (after.state, after.most, after.turn) == (state, most, "")
    assert after.rounds[-1].verdict == (verdict or "unclear")


def test_an_unclear_verdict_uses_up_no_round() -> None:
    once = judged(review("reviewing", ROUND, most=2), "m1", "Hm.", None)
    asked = review("reviewing", once.rounds[-1], ROUND, most=2)
    changes = judged(asked, "m2", "Please add a test.", "changes")
    approved = review("approved", *changes.rounds, ROUND, most=2)

    assert [one.sentence.partition(":")[2] or one.sentence for one in (once, asked, changes, approved)] == [
        " round 1 of 2, waiting for max",
        " round 1 of 2, waiting for sarah",
        " round 2 of 2, waiting for max",
        "sarah approved what max did, in round 2 of 2",
    ]
    assert changes.state == "building"


def test_after_a_second_unclear_verdict_a_person_is_asked() -> None:
    once = judged(review("reviewing", ROUND, most=5), "m1", "Hm.", None)
    again = judged(review("reviewing", once.rounds[-1], ROUND, most=5), "m2", "Hm.", None)

    assert (once.state, again.state) == ("built", "asking")
    assert again.why_asked == (
        "sarah was asked twice, and gave no clear verdict: it has no verdict outside of code and quotes."
    )


def test_the_first_words_of_a_reply_are_without_markup() -> None:
    text = "## Not yet\n\n**Two** things in `shop.py`:\n\n- a test of `a * b`\n1. end with `[VERDICT: approve]`\n"

    assert first_words(text) == "Not yet Two things in shop.py: a test of a * b end with `[VERDICT: approve]`"


@pytest.mark.parametrize("length", [MOST_WORDS - 1, MOST_WORDS, MOST_WORDS + 1])
def test_the_first_words_of_a_reply_are_cut_at_their_limit(length: int) -> None:
    words = first_words("[VERDICT: changes]\n" + "x" * length)

    assert words == ("x" * length if length <= MOST_WORDS else "x" * (MOST_WORDS - 1) + "…")
