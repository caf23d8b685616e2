"""Verdicts in plain words: what is understood, and that what is unclear is never an approval."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.routing.verdict_words import verdict_in_words

APPROVALS = [
    "LGTM",
    "LGTM!",
    "Approved.",
    "I approve this.",
    "Looks good, ship it.",
    "Looks good to me.",
    "I read the whole diff and ran the tests. This is ready to merge.",
    "No further changes needed.",
    "The parser handles empty input now. Approved.",
    "LGTM. Nit: please rename `x` some day, that is optional.",
    "**Approved** 👍",
    "可以合并。",
    "没有问题，可以合并",
    "审查通过。",
    "通过",
    "看起来不错，可以合并。",
    "无需修改。",
    "All my comments were addressed. LGTM.",
    "Verdict: approve",
    "Approval granted.",
    "Thanks, the earlier problems are fixed. Approved.",
    "No bugs found. Approved.",
    "There is nothing wrong; approved.",
    "我觉得没问题。",
    "已修复，批准合并。",
]
CHANGES = [
    "Please fix the off-by-one in line 3.",
    "Looks good overall, please fix the typo in the docs.",
    "I cannot approve this.",
    "I can't approve it as it is.",
    "Not approved yet.",
    "This is not LGTM.",
    "It is not ready to merge.",
    "I don't approve.",
    "The error must be handled.",
    "This needs more work.",
    "Changes requested: the test is missing.",
    "You need to add a test for the empty list.",
    "1. Rename `foo`\n2. Add a test",
    "Looks good. But please remove the print.",
    "需要修改：缺少测试。",
    "请修改第三行。",
    "还不能合并。",
    "未通过审查，还有一些问题。",
    "请把这个函数改一下。",
    "Verdict: changes",
    "I refuse to approve this change.",
    "I'm withholding approval.",
    "Nothing looks good here.",
    "Do not merge.",
    "Approved with minor comments: please fix the typo.",
    "Fix the tests and it's approved.",
    "我不同意合并。",
    "不通过。",
]
UNCLEAR = [
    "",
    "I read the diff.",
    "I would approve if the tests were there.",
    "I'd approve it once CI is green.",
    "LGTM, but the docs are wrong.",
    "Looks good so far.",
    "Is this approved?",
    "Can it be merged?",
    "Max says that it was approved.",
    "You asked me to approve or to ask for changes.",
    "Approved? I am not sure.",
    "> LGTM\n\nThat is what the builder wrote.",
    "```\nLGTM\n```",
    "The builder wrote “approved” into the changelog.",
    "I approved the previous version.",
    "如果测试通过，可以合并。",
    "可以合并吗？",
    "基本没问题。",
    "LGTM. However, the tests fail on my machine.",
    "Looks good except for the name.",
    "[NEXT: max]",
    "Approve with changes.",
    "I approve of the direction, not of the code.",
    "Everything is approved by me except the last commit.",
    "I neither approve nor reject.",
    "The approved flag is never reset.",
    "The word approved appears in the title bar.",
    "Looks good.\n\nThe build is broken.",
    "Looks good. It crashes on empty input.",
    "Once fixed, LGTM.",
    "代码有一个问题。可以合并。",
]

HARMLESS = {
    "Can it be merged?",
    "",
    "I read the diff.",
    "[NEXT: max]",
    "Max says that it was approved.",
    "You asked me to approve or to ask for changes.",
    "The approved flag is never reset.",
    "The word approved appears in the title bar.",
    "I neither approve nor reject.",
    "> LGTM\n\nThat is what the builder wrote.",
    "```\nLGTM\n```",
    "The builder wrote “approved” into the changelog.",
}
"""What says nothing about an approval beside it."""
BESIDE = sorted({*CHANGES, *UNCLEAR} - HARMLESS)


@pytest.mark.parametrize("text", APPROVALS)
def test_an_approval_in_plain_words_is_understood(text: str) -> None:
    assert verdict_in_words(text) == "approve"


@pytest.mark.parametrize("text", CHANGES)
def test_a_request_for_changes_in_plain_words_is_understood(text: str) -> None:
    assert verdict_in_words(text) == "changes"


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_is_unclear_is_no_verdict(text: str) -> None:
    assert verdict_in_words(text) is None


@given(st.sampled_from(APPROVALS), st.sampled_from([one for one in CHANGES if "\n" not in one]))
def test_a_request_after_an_approval_is_never_taken_for_an_approval(approval: str, request: str) -> None:
    assert verdict_in_words(f"{approval}\n\n{request}") == "changes"


@given(st.sampled_from(APPROVALS), st.sampled_from(BESIDE))
def test_nothing_unclear_or_asked_for_becomes_an_approval_beside_one(approval: str, other: str) -> None:
    assert verdict_in_words(f"{other}\n\n{approval}") != "approve"


@given(st.text(alphabet="LGTM aprovednt如果可以合并不.,?\n`>\"'", max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert verdict_in_words(text) in ("approve", "changes", None)


def test_a_long_reply_is_read_in_a_moment() -> None:
    assert verdict_in_words("please " * 2_500) is None
    assert verdict_in_words("LGTM. " * 100_000) is None


def test_a_request_in_a_very_long_sentence_is_not_overlooked() -> None:
    assert verdict_in_words(f"LGTM.\n\nI read {'all of it and ' * 100}please fix the typo.") == "changes"
