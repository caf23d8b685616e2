"""What bullpen says: one line, what unfolds, and the diffs it points to."""

import pytest

from bullpen.messages import ConversationMessage, Speaker
from bullpen.view.notices import Notice, Words, notice_of, words_with_diffs


def said(content: str, role: str = "bullpen", kind: str = "system") -> ConversationMessage:
    speaker = Speaker(role_id=role, role_name=role, type=kind)  # type: ignore[arg-type]
    return ConversationMessage(id="msg-1", content=content, speaker=speaker)


def test_a_notice_is_a_line_and_what_unfolds() -> None:
    assert notice_of(said("sarah approved it.\n\nWhat was done: much.")) == Notice(
        line="sarah approved it.", rest="What was done: much."
    )
    assert notice_of(said("The check is red. [CHECKS: 3]")) == Notice(line="The check is red.", rest="")


@pytest.mark.parametrize("speaker", [("max", "ai"), ("bullpen", "human"), ("other", "system")])
def test_what_others_say_is_no_notice(speaker: tuple[str, str]) -> None:
    assert notice_of(said("sarah approved it.", *speaker)) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("No diff.", ["No diff."]),
        (
            "2 files, +1 −1. The diff: /diff 1..4, or bullpen diff 1..4",
            ["2 files, +1 −1. ", ("The diff of turns 1..4", "1..4"), ""],
        ),
        (
            "It changed a program. /diff 14 shows what changed.",
            ["It changed a program. ", ("The diff of turn 14", "14"), " shows what changed."],
        ),
        ("Read it: /diff 3.", ["Read it: ", ("the diff of turn 3", "3"), "."]),
        ("/diff all, /diff <b>", ["/diff all, /diff <b>"]),
    ],
)
def test_the_diffs_in_a_text_are_found(text: str, parts: list[str | tuple[str, str]]) -> None:
    expected = [Words(one) if isinstance(one, str) else Words(*one) for one in parts]
    assert list(words_with_diffs(text)) == expected
