"""What an agent only announces before a tool is folded; everything else that it says is shown whole."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.markers.stripping import text_for_people
from bullpen.messages import ConversationMessage, Speaker
from bullpen.view.reply_parts import MOST_PARTS, ReplyPart, only_narrates, reply_parts

MAX = Speaker(role_id="max", role_name="max", type="ai")
REMARK = "I'll look at the tests now."


def message(*texts: str, **extra: Any) -> ConversationMessage:
    """Return a reply of texts, as they are stored: joined by empty lines, with the places of all but the first."""
    content, places = texts[0], []
    for text in texts[1:]:
        places.append(len(content) + 2)
        content += f"\n\n{text}"
    fields = {"textsAt": places, **extra} if places else extra
    return ConversationMessage(id="m", content=content, speaker=MAX, extra=fields or None)


def whole(text: str) -> ReplyPart:
    return ReplyPart(text=text)


@pytest.mark.parametrize(
    "text",
    [
        REMARK,
        "I’ll look at the tests now.",
        "Let me read `tests/test_a.py`:",
        "Great! Now let me run the tests.",
        "I will open a.py. Then I'll change it.",
        "I'm going to search for its callers…",
        "Okay, let's see what is in the folder.",
        "我先看看测试。",
        "好的。接下来我来运行测试！",
    ],
)
def test_what_only_announces_the_next_step_is_narration(text: str) -> None:
    assert only_narrates(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Great!",
        "Two tests fail.",
        "Let me check. The key is revoked.",
        "Let me know which one is better.",
        "I'll not delete it.",
        "I won't run that.",
        "I'll use SQLite because PostgreSQL is missing.",
        "I'll need your password.",
        "I'll fix the failing test, it was wrong.",
        "Let me look. Shall I go on?",
        "I'll look\nand then run it.",
        "I'll look.\n\nI'll run it.",
        "- I'll look at the tests",
        "1. I'll look at the tests",
        "# I'll look",
        "> I'll look",
        "I'll do **this**.",
        "I'll run ```make```",
        "I'll ask. [NEXT: sarah]",
        "I'll ask. ［NEXT：sarah］",
        "I'll read https://example.com",
        "I'll look at " + "a" * 200,
        "Nothing is left.",
        "我先看看测试，但是密钥没有了。",
        "我先看看，可以吗？",
        "测试坏了。",
    ],
)
def test_whatever_may_say_more_is_not(text: str) -> None:
    assert not only_narrates(text)


def test_remarks_next_to_each_other_are_one_part_and_the_last_text_is_whole() -> None:
    texts = (REMARK, "Let me run them.", "Two fail.", "It is the clock.", "I'll mend it.", "I'll look at it later.")
    assert reply_parts(message(*texts)) == (
        ReplyPart(remarks=(REMARK, "Let me run them.")),
        whole("Two fail.\n\nIt is the clock."),
        ReplyPart(remarks=("I'll mend it.",)),
        whole("I'll look at it later."),
    )


def test_the_heading_says_how_many_are_below_it() -> None:
    (first, _) = reply_parts(message(REMARK, "Let me run them.", "Done."))

    assert first.heading == "2 remarks while it worked: I'll look at the tests now."


@pytest.mark.parametrize("places", ["9", [9, 3], [-1], [10_000], [1.5], None, {"a": 1}])
def test_places_that_cannot_be_right_are_not_looked_at(places: object) -> None:
    said = message(REMARK, "Done.", textsAt=places)

    assert reply_parts(said) == (whole(said.content),)


def test_a_reply_without_places_is_one_text_as_before() -> None:
    assert reply_parts(message(f"{REMARK}\n\nDone. [NEXT: kim]")) == (whole(f"{REMARK}\n\nDone."),)


def test_a_marker_in_the_last_text_is_left_out_as_ever() -> None:
    assert reply_parts(message(REMARK, "Done. [NEXT: kim]")) == (ReplyPart(remarks=(REMARK,)), whole("Done."))


@pytest.mark.parametrize(
    "texts",
    [
        ("[TEAM_TASK] Build it.", REMARK, "Done."),
        ("```\ncode that does not end", REMARK, "Done. [NEXT: kim]"),
        ("[NEXT: kim]", "[NEXT: kim]"),
    ],
)
def test_where_a_marker_would_be_read_differently_nothing_is_folded(texts: tuple[str, ...]) -> None:
    said = message(*texts)

    assert reply_parts(said) == (whole(text_for_people(said.content)),)


def test_too_many_parts_are_shown_as_one() -> None:
    said = message(*[REMARK, "Two fail."] * MOST_PARTS, "Done.")

    assert reply_parts(said) == (whole(said.content),)


TEXTS = st.sampled_from(
    [REMARK, "Two fail.", "[NEXT: a]", "```\nx", "- a", "[TEAM_TASK] b", "`", "", "我先看看。", "[DROP: ["]
)


@given(st.lists(TEXTS | st.text(max_size=20), min_size=1, max_size=8))
def test_the_parts_say_together_what_the_message_says(texts: list[str]) -> None:
    said = message(*texts)
    words = [word for part in reply_parts(said) for text in (*part.remarks, part.text) for word in text.split()]

    assert words == text_for_people(said.content).split()
