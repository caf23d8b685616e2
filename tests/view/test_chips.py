"""Chips: a reply's verdict and its checks, in a word each, the same for every door."""

import pytest

from bullpen.check_results import CheckResult
from bullpen.messages import ConversationMessage, Speaker
from bullpen.view.checks import check_shown
from bullpen.view.chips import Chip, chips


def said(text: str, *, kind: str = "ai") -> ConversationMessage:
    speaker = Speaker(role_id="sarah", role_name="Sarah", type=kind)  # type: ignore[arg-type]
    return ConversationMessage(id="m", speaker=speaker, content=text, timestamp=1)


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        ("Fine.\n\n[VERDICT: approve]", ("green", "✓", "approved")),
        ("The loop never ends.\n\n[VERDICT: changes]", ("yellow", "↺", "changes wanted")),
        ("[VERDICT: approve]\n\nBut the tests are red, so no.", ("grey", "?", "verdict unclear")),
    ],
)
def test_a_verdict_is_a_chip_of_its_reply(text: str, chip: tuple[str, str, str]) -> None:
    assert [(one.light, one.sign, one.words) for one in chips(said(text))] == [chip]


def test_what_only_quotes_a_verdict_has_no_chip() -> None:
    assert chips(said("End with `[VERDICT: approve]`.")) == ()
    assert chips(said("[VERDICT: approve]", kind="human")) == ()


def test_each_check_of_a_turn_is_a_chip() -> None:
    red = CheckResult(
        number=7,
        turn_id="3",
        member="max",
        workspace="/w",
        name="pytest",
        command=("pytest",),
        state="red",
        at=1,
        exit_code=1,
    )
    assert chips(said("Done."), [check_shown(red)]) == (
        Chip(kind="check", light="red", sign="✗", words="pytest", check=7),
    )
