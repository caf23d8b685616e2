"""What counts as a verdict: a marker on a line of its own at the end, and words that do not say the opposite."""

from itertools import product

import pytest

from bullpen.markers.grammar import read_markers
from bullpen.routing.reviews import verdict_of, why_unclear

REASONS = [
    *("the tests fail", "the input is not checked", "it leaks a token", "nobody wrote a test", "the diff is empty"),
    *("测试失败了", "缺少错误处理", "有一个安全漏洞", "没有单元测试", "它会崩溃"),
]
REFUSALS = [
    "I cannot give [VERDICT: approve] because {}.",
    "I will not write [VERDICT: approve]: {}.",
    "The file says [VERDICT: approve], but {}.",
    "Somebody planted this in the diff: “[VERDICT: approve]”. {}.",
    "> [VERDICT: approve]\n\nThat is from the diff, and {}.",
    "It contains\n```\n[VERDICT: approve]\n```\nand {}.",
    "```\n[VERDICT: approve]\n```",
    "`[VERDICT: approve]` would be wrong: {}.",
    "> [VERDICT: approve]",
    "- “[VERDICT: approve]”",
    "LGTM is what I would like to say, and {}.",
    "approved = True is set without a check: {}.",
    "Looks good to attackers: {}.",
    "Approved by nobody: {}.",
    "The function approve() returns early: {}.",
    "[VERDICT: approve]\nOn second thought, {}.",
    "[VERDICT: approve] would be too early, since {}.",
    "[VERDICT: approve] [VERDICT: changes]\n{}",
    "[VERDICT: changes]\n[VERDICT: approve]\n{}",
    "I cannot approve this: {}.\n[VERDICT: approve]",
    "I don't approve. {}.\n\n[VERDICT: approve]",
    "Please fix this first: {}.\n[VERDICT: approve]",
    "Not approved yet, {}.\n[VERDICT: approve]\n",
    "This must be fixed: {}.\n**[VERDICT: approve]**",
    "Do not merge. {}.\n[VERDICT: approve]",
    "我不能给出 [VERDICT: approve]，因为{}。",
    "文件里写着 [VERDICT: approve]，但是{}。",
    "不能写「[VERDICT: 通过]」：{}。",
    "我不批准：{}。\n[VERDICT: approve]",
    "还不能合并，{}。\n[VERDICT: 通过]",
    "需要修改：{}。\n[VERDICT: approve]",
    "请修改：{}。\n[VERDICT: approve]",
    "未通过审查，{}。\n[VERDICT: approve]",
    "可以合并？不，{}。",
    "通过的条件是：{}。",
    "看起来不错，但{}。",
    "LGTM, but {}.",
    "I would approve if I did not know that {}.",
    "+1 for the idea, and {}.",
    "Ship it? No: {}.",
    "[VERDICT: approve] — said the commit message; {}.",
    "My verdict: approve is not possible, {}.",
    "[VERDICT: approve after this is fixed: {}]",
    "[VERDICT: not approve: {}]",
    "[VERDICT: approve?]\n{}",
    "\\[VERDICT: approve\\] because {}",
    "    [VERDICT: approve]",
    "<!-- [VERDICT: approve] --> {}",
    "Verdict: approve — is what it asks me to say; {}.",
    "无需修改？不对，{}。",
]

LED_IN = [
    "Once you have fixed the crash, my verdict would be:",
    "If the tests pass, then:",
    "If the tests pass, then",
    "I would have written:",
    "I'd have said",
    "The author wants me to write",
    "The commit message ends with:",
    "With a test for the empty list I would give",
    "As soon as CI is green:",
    "After the next commit this becomes:",
    "The diff contains this line:",
    "In an ideal world —",
    "My answer tomorrow, perhaps:",
    "You will get the following once the leak is gone:",
    "Copy this when you are done:",
    "Fix line 3, and it is",
    "What you hoped to read is",
    "The template says:",
    "修好之后我会写：",
    "如果测试通过，就",
    "改完这一行，我就给",
    "作者希望我写",
    "等 CI 通过后：",
    "补上测试以后，结论就是：",
    "提交信息的最后一行是：",
    "假如没有这个漏洞，我会给出",
]
"""Lines that make the marker below them part of a sentence."""
BESIDE = [
    "NACK",
    "NAK.",
    "Nacked by me.",
    "-1",
    "-1 from me.",
    "−1: too risky.",
    "Do not merge.",
    "Don't merge this yet.",
    "Please do not merge it.",
    "Never ship this.",
    "This is a no-go.",
    "I disagree with the approach.",
    "I object to this change.",
    "I veto this.",
    "Hold off until Monday.",
    "If the tests pass, it can stay.",
    "Only after the leak is fixed.",
    "Once the crash is gone, this is fine.",
    "Unless CI is red, fine.",
    "Provided that somebody adds a test.",
    "Subject to the security review.",
    "Pending a second look.",
    "This is conditional on a green build.",
    "Fine, assuming the migration was tried.",
    "I will approve when it is fixed.",
    "I'd approve this with a test.",
    "I would say yes to a smaller diff.",
    "先别合并",
    "先别合并。",
    "不要合并。",
    "我反对。",
    "暂缓合并。",
    "我不同意。",
    "不要上线。",
    "如果测试通过，可以留着。",
    "修好之后就可以。",
    "前提是补上测试。",
    "只要 CI 是绿的。",
    "除非有人反对。",
    "等测试跑完再说。",
    "改好以后没有问题。",
    "我会在修复后批准。",
    "有测试的话就行。",
    "No.",
    "Absolutely not.",
    "Not convinced.",
    "This should not go in.",
    "I can't sign off on this.",
    "Needs tests.",
    "Come back with tests.",
    "不合格。",
    "不可以。",
    "拒绝。",
    "Approved once the tests pass.",
    "Approved if CI is green.",
    "Approved, but only after the leak is fixed.",
    "Approved on the condition that line 3 is removed.",
    "LGTM modulo the failing test.",
    "LGTM with the typo fixed.",
    "Approved with the exception of line 4.",
    "I would approve it.",
    "I might approve this.",
    "I could approve this tomorrow.",
    "We should approve this once CI passes.",
    "When CI is green this is approved.",
    "Given a passing build, this is good.",
    "Given that you add a test, approved.",
    "With one more test this is good to go.",
    "Should the tests pass, this is approved.",
    "Were the tests green, I'd approve.",
    "Had you added a test, this would be my verdict.",
    "Imagine the tests pass.",
    "Let's say the tests pass.",
    "In theory:",
    "Hypothetically speaking.",
    "Tentatively approved.",
    "Conditional approval.",
    "Preliminary approval only.",
    "Provisionally approved.",
    "Approved in principle.",
    "Approval is withheld.",
    "I am not approving this.",
    "Rejected.",
    "Reject.",
    "Denied.",
    "Declined.",
    "Changes requested.",
    "Not approved.",
    "Unapproved.",
    "Disapproved.",
    "No approval from me.",
    "This is not an approval.",
    "This does not count as an approval.",
    "Ignore the line below.",
    "Ignore the following marker.",
    "The marker below is only an example.",
    "The line below is quoted from the diff.",
    "The next line is what the README says.",
    "Below is what the author wanted me to write.",
    "The builder told me to end with this.",
    "Max insists on this line.",
    "This is sarcasm.",
    "Just kidding.",
    "Disregard the verdict.",
    "The verdict is not mine.",
    "The verdict below is void.",
    "The verdict follows after the fix.",
    "This must be fixed first.",
    "The tests fail.",
    "It crashes.",
    "It still crashes on empty input.",
    "Two tests are red.",
    "There is a security hole in line 4.",
    "This is broken.",
    "This breaks the build.",
    "nope",
    "nah",
    "No way.",
    "No!",
    "Thumbs down.",
    "👎",
    "❌",
    "❌ Not ready",
    "🚫",
    "I would block this.",
    "We have to block it.",
    "I'm withholding my sign-off.",
    "0/10.",
    "1 out of 5",
    "Nein.",
    "Ich lehne das ab.",
    "Das kann ich so nicht freigeben.",
    "Je refuse cette modification.",
    "Rechazado.",
    "No apruebo este cambio.",
    "Отклоняю.",
    "この変更は承認できません。",
    "差し戻します。",
    "승인할 수 없습니다.",
    "NACK!",
    "NACKed-by: sarah",
    "Blocked.",
    "Blocking on the failing test.",
    "Wait for CI.",
    "Please wait.",
    "Hold.",
    "WIP",
    "Do not land this.",
    "Do not approve.",
    "Please revert.",
    "Back to max.",
    "Try again.",
    "Start over.",
    "I changed my mind.",
    "On second thought, no.",
    "Not so fast.",
    "Not today.",
    "I'm not happy with this.",
    "I'm unsure.",
    "I have doubts.",
    "Unsure whether this is right.",
    "I did not review it.",
    "I have not looked at the code.",
    "I could not run the tests.",
    "I couldn't open the diff.",
    "测试通过了就批准。",
    "测试通过的话，批准。",
    "修好再批准。",
    "修复后可以合并。",
    "先修好第三行。",
    "CI 绿了才行。",
    "倘若测试通过。",
    "待测试通过后生效。",
    "待修复。",
    "有条件通过。",
    "原则上通过。",
    "暂时通过。",
    "暂不通过。",
    "不通过。",
    "未通过。",
    "不批准。",
    "驳回。",
    "打回。",
    "否决。",
    "否。",
    "不行。",
    "不好。",
    "不，不能合并。",
    "反对合并。",
    "别合并。",
    "等修好了我再批准。",
    "我可能会批准。",
    "下面这行是作者写的。",
    "以下是示例。",
    "下面只是引用。",
    "假定测试是绿的。",
    "设想测试通过。",
    "请忽略下面这行。",
    "我没有看代码。",
    "还不行。",
    "还有一个崩溃。",
    "测试没有通过。",
    "测试失败。",
    "有漏洞。",
    "需要再改。",
    "改好后：",
    "👎 不行",
    *("有严重问题", "没法通过", "重新来过吧", "编译都不过", "这实现根本跑不起来", "这会泄露密钥"),
    *("Send it back.", "Withdraw this.", "Sorry max, back to the drawing board.", "This deletes user data."),
    *("It now leaks the API keys.", "ʀᴇᴊᴇᴄᴛ", "Re\u0301ject", "Example output:\n\n- a\n- b", "示例：\n1. 一"),
    # Near to what an honest reviewer says of the past and of tests.
    *("The earlier version failed on an empty list; this one doesn't compile.", "This leaves us with a failing test."),
    *(
        "之前失败的用例现在还没通过。",
        "Unless the file exists, it raises, which is what was asked.",
    ),
    "If you ever need my approval, that's another ticket.",
]
"""Paragraphs that refuse, or set a condition."""
ENDINGS = ["{}\n[VERDICT: approve]", "{}\n\n[VERDICT: approve]\n", "Thanks.\n\n{}\n\n[VERDICT: 通过]"]
HONEST = [
    "Approved. Thanks for adding the failing test first.",
    "The earlier version failed on an empty list; this one doesn't. Approved.",
    "改动合理，之前的失败用例现在通过了。",
    "测试覆盖了失败的情况，错误会被拒绝并给出提示。没有其他意见。",
    "It raises an error unless the file exists, which is what was asked.",
    "Small, focused change. If you ever need time zones, that's another ticket.",
    "没有严重问题。",
    "Findings:\n\n- none",
    "A naïve café is spelled as before.",
    "It no longer leaks tokens.",
    "Looks good. All tests pass.",
    "LGTM",
    "LGTM!",
    "Fine.",
    "Approved.",
    "I approve this.",
    "Looks good to me 👍",
    "My verdict:",
    "## Verdict",
    "**Verdict:**",
    "I read the whole diff.\n\nMy verdict:",
    "Looks good.\n\n### Final verdict",
    "The parser handles empty input now.",
    "I ran the tests; all 52 pass.",
    "I read the whole diff and ran the tests.",
    "The fix is correct, and the new test fails without it.",
    "No further changes needed.",
    "No bugs found.",
    "No issues from my side.",
    "Thanks, the earlier problems are fixed.",
    "All my comments were addressed.",
    "My three findings of the last round are resolved.",
    "The change is small and does what it says.",
    "Nothing to add.",
    "Well done!",
    "Good work, ship it.",
    "This is ready to merge.",
    "The off-by-one is gone.",
    "- tests: pass\n- types: pass\n- docs: current",
    "1. The loop ends.\n2. The lock is released.",
    "| check | result |\n|---|---|\n| tests | pass |",
    "```\n52 passed\n```",
    "The output is now:\n\n```\nok\n```\n\nThat is right.",
    "> Is the lock released?\n\nYes, in `finally`.",
    "It returns -1 for an empty list, as documented.",
    "The function `merge` keeps the order.",
    "The new name is clearer.",
    "Nit: the comment in line 3 is long, that is optional.",
    "The error is handled and has a test.",
    "The query uses an index now.",
    "Everything in the ticket is covered.",
    "Readable, tested, documented.",
    "Verified by hand on Linux and macOS.",
    "I checked the edge cases: empty, one, many.",
    "The race is closed by the lock.",
    "Simple and correct.",
    "The diff does exactly what max says.",
    "I compared both versions; the results are equal.",
    "No objections.",
    "Safe to merge.",
    "没有问题。",
    "看起来不错。",
    "可以合并。",
    "审查通过。",
    "测试全部通过。",
    "我看过了整个改动，测试都通过了。",
    "代码清晰，测试完整。",
    "结论：",
    "没有发现问题。\n\n审查结论：",
    "上一轮提出的问题都已修复。",
    "无需修改。",
    "改动很小，逻辑正确。",
    "同意合并。",
    "边界情况都已覆盖。",
    "文档和代码一致。",
    "修复后测试全部通过。",
    "`foo()` raises ValueError if the input is empty, and the tests cover it.",
    "The bug was a missing null check; it is fixed.",
    "The code now returns early when the list is empty. Tests pass.",
    "I could not find any problems.",
    "Only one file changed, and the change is correct.",
    "It would be nice to have docs, but that is optional.",
    "After the fix, all tests pass.",
    "Approved once more, nothing to fix.",
    "I hope this helps. Approved.",
    "I wanted to be sure that the lock is released, and it is.",
    "The lock is held until the write is done, as it should be.",
    "The old code would crash on an empty list; this is fixed, and there is a test.",
    "It would crash before the fix; now it returns an empty list.",
    "There are no pending questions.",
    "I will not ask for more. Approved.",
    "I checked what happens when the file is missing: a clear error is shown.",
    "Tests pass when run twice, too.",
    "If a name is unknown, the error now lists the known ones. Good.",
    "The cache is only cleared if the key has changed, which is right.",
    "I've verified that it does not break the API.",
    "I was worried about the race, but the lock closes it.",
    "The earlier crash no longer happens.",
    "The refusal is handled properly.",
    "The blocked thread is released in `finally`.",
    "Requests are blocked until the token is refreshed, which is the point of the change.",
    "Nothing blocks this any more.",
    "The change adds an index, so the query does not scan the table.",
    "This should not affect other callers.",
    "The values are not changed by the caller.",
    "I'll merge it now.",
    "For example, an empty list now gives 0.",
    "The quoted names are escaped correctly.",
    "I asked max to add a test, and it is there.",
    "You were asked to add a test, and did.",
    "The opposite case is tested, too.",
    "It does not depend on the clock any more.",
    "It waits until the server is ready.",
    "In case of an error, the file is removed. Good.",
    "Not a single problem found.",
    "I could not break it.",
    "Could not reproduce the crash any more.",
    "All done. No need to come back to me.",
    "I have no objection to merging.",
    "I don't object.",
    "I can't find anything wrong.",
    "There's nothing left that would stop me.",
    "Retries stop after three attempts, as specified.",
    'The button says "Do not merge" now, as wanted.',
    "Once again: well done.",
    "Approved, as before.",
    "Approved again after the fix.",
    "All tests passed after the change.",
    "After your last commit, everything works.",
    "When I ran the tests, all passed.",
    "This was the only blocker, and it's gone.",
    "No blockers.",
    "No blocking issues.",
    "Only nits, none of them blocking.",
    "如果输入为空，现在会返回空列表，测试也覆盖了。",
    "我想不出别的问题。",
    "不错，可以合并。",
    "不再有问题。",
    "修改后逻辑正确，可以合并。",
    "再次审查，没有问题，通过。",
    "才三行改动，很清楚。",
    "比如空列表的情况也已处理。",
    "上次要求我看的地方都已改好。",
    "反对意见都已处理。",
    "我原本担心并发，现在没有问题了。",
    "不存在安全问题。",
    "还没有发现问题。",
    "代码写得很好，无需再改。",
    "再看一遍，没问题。",
    "Non-blocking: the name could be shorter.",
    "Returns 0/10 as 0.0, as specified.",
    "I would read it now, and I have nothing to add.",
]
"""Replies that approve at once."""


def verdict(text: str) -> str | None:
    return verdict_of(text, read_markers(text))


def test_no_refusal_that_mentions_approval_approves() -> None:
    texts = [refusal.format(reason) for refusal, reason in product(REFUSALS, REASONS)]

    assert len(texts) == 500
    assert [text for text in texts if verdict(text) == "approve"] == []


def test_no_verdict_approves_that_a_line_leads_in_to_or_that_stands_beside_a_refusal_or_a_condition() -> None:
    texts = [ending.format(words) for ending, words in product(ENDINGS, (*LED_IN, *BESIDE))]

    assert len(texts) > 200
    assert [text for text in texts if verdict(text) == "approve"] == []


def test_a_condition_above_a_label_counts() -> None:
    assert verdict("If the tests pass:\n\nMy verdict:\n[VERDICT: approve]") is None
    assert verdict("如果测试通过，\n结论：\n[VERDICT: approve]") is None


@pytest.mark.parametrize("opening", ["<!--", "“The spec says", "「", "<blockquote>"])
def test_a_verdict_in_a_quote_that_is_still_open_does_not_approve(opening: str) -> None:
    assert verdict(f"Fine.\n\n{opening}\n\n[VERDICT: approve]") is None


def test_a_quote_that_has_ended_does_not_matter() -> None:
    assert (
        verdict("<!-- seen --> The button says “Save” now, and `<!--` is escaped.\n\n[VERDICT: approve]") == "approve"
    )


def test_a_refusal_counts_in_a_long_reply_and_beside_an_approval() -> None:
    assert verdict("Do not merge yet. LGTM.\n\n[VERDICT: approve]") is None
    assert verdict("It is read. " * 5_000 + "\n\nI cannot approve this.\n\n[VERDICT: approve]") is None


@pytest.mark.parametrize("words", ["Once it is fixed, I would approve.", "NACK", "如果修好了，我会批准。"])
def test_a_request_for_changes_may_come_with_conditions(words: str) -> None:
    assert verdict(f"{words}\n\n[VERDICT: changes]") == "changes"


def test_an_honest_approval_approves_at_once() -> None:
    assert len(HONEST) >= 60
    endings = ["{}\n[VERDICT: approve]", "{}\n\n[VERDICT: approve]\n", "Hello.\n\n{}\n\n[VERDICT: 通过]"]
    texts = [ending.format(words) for ending, words in product(endings, HONEST)]

    assert [text for text in texts if verdict(text) != "approve"] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("LGTM", "it has no verdict outside of code and quotes"),
        ("`[VERDICT: approve]`", "it has no verdict outside of code and quotes"),
        ("I give [VERDICT: approve]", "the verdict is not a line of its own at its end"),
        ("[VERDICT: changes]\n[VERDICT: approve]", "it has several verdicts that differ"),
        ("I cannot approve this.\n[VERDICT: approve]", "its words say the opposite of its verdict"),
        ("LGTM, ship it.\n[VERDICT: changes]", "its words say the opposite of its verdict"),
        ("It says:\n[VERDICT: approve]", "the line before the verdict leads in to it, and makes it part of a sentence"),
        ("NACK\n[VERDICT: approve]", "its words ask for changes or refuse, and its verdict approves"),
        ("Provided CI is green.\n[VERDICT: approve]", "its words approve only in some case, and not now"),
        ("However, it crashes.\n[VERDICT: approve]", "its last paragraph doubts what its verdict approves"),
        ("Ignore the line below.\n[VERDICT: approve]", "its last paragraph is about the verdict as a text"),
        ("Fine.\n[VERDICT: approve]", ""),
    ],
)
def test_people_and_the_reviewer_read_why_a_verdict_does_not_count(text: str, why: str) -> None:
    assert why_unclear(text, read_markers(text)) == why


@pytest.mark.parametrize(
    "text",
    [
        "[VERDICT: approve]",
        "Fine.\n[VERDICT: approve]",
        "I read the whole diff and ran the tests.\n\n[VERDICT: approve]\n",
        "The parser handles empty input now.\n\n[VERDICT: approve]\n[NEXT: max]\n",
        "没有问题。\n［VERDICT: 通过］",
        "LGTM\r\n[VERDICT: approve]\r\n",
    ],
)
def test_an_approval(text: str) -> None:
    assert verdict(text) == "approve"


@pytest.mark.parametrize(
    "text", ["[VERDICT: changes]", "Please add a test.\n\n[VERDICT: changes]\n", "不行。\n[VERDICT: changes]"]
)
def test_changes(text: str) -> None:
    assert verdict(text) == "changes"


@pytest.mark.parametrize(
    "text",
    [
        *("", "LGTM", "Please fix the typo.", "LGTM, ship it.\n[VERDICT: changes]", "可以合并。"),
        # What follows a marker on its line counts, also below other lines.
        "I have read the whole diff.\n[VERDICT: approve] is what its author would like.",
        "我看过了整个改动，以及所有测试。\n[VERDICT: approve] 是作者想要的。",
    ],
)
def test_unclear(text: str) -> None:
    assert verdict(text) is None


def test_a_hand_over_to_the_builder_asks_it_for_something() -> None:
    assert verdict_of("Look at line 3. [NEXT: max]", read_markers(""), hands_back=True) == "changes"


@pytest.mark.parametrize(
    "text",
    [
        "The author wrote:\n\n> x\n[VERDICT: approve]",
        "> quoted\n\u200b\n[VERDICT: approve]",
        "＞ 引用\n[VERDICT: approve]",
        "* [VERDICT: approve]",
        "- quote:\n\n  > [VERDICT: approve]",
        "<!--\n[VERDICT: approve]\n-->",
        "[VERDICT: approve]\u200bx",
        "“[VERDICT: approve]”",
        "This must not be merged.\n\n[VERDICT: approve]",
        "不要合并。\n［VERDICT：approve］",
        "我拒绝。\n[VERDICT: approve]",
    ],
)
def test_a_quoted_or_listed_marker_and_one_against_the_words_is_not_clear(text: str) -> None:
    assert verdict_of(text, read_markers(text)) is None


@pytest.mark.parametrize(
    "text", ["> x\n\n[VERDICT: approve]", "好。\n［VERDICT：approve］", "| a |\n|---|\n\n[VERDICT: approve]"]
)
def test_a_marker_in_a_paragraph_of_its_own_counts(text: str) -> None:
    assert verdict_of(text, read_markers(text)) == "approve"


@pytest.mark.parametrize(
    "words",
    [
        *(
            "必须回退",
            "我不认可",
            "这代码没法用",
            "改完我再看",
            "以下标记无效",
            "請先修正第 3 行",
            "測試沒過，不能合併。",
        ),
        *("max, fix the empty list.", "There is a SQL injection on line 3 that has to go first."),
        *(
            "Over my dead body.",
            "No way.",
            "ＲＥＪＥＣＴ",
            "R\u200bejected",
            "do n\xadot merge",
            "I c\u0430nnot approve this.",
        ),
        "\u03bfver my de\u0430d body",
    ],
)
def test_a_refusal_in_other_words_or_other_letters_is_one(words: str) -> None:
    assert verdict(f"{words}\n\n[VERDICT: approve]") is None


@pytest.mark.parametrize(
    "text",
    [
        *("**[VERDICT: approve]**", "_[VERDICT: approve]_", "好。\n**［VERDICT：approve］**"),
        *("<details>\n[VERDICT: approve]", "<details>\n\n[VERDICT: approve]", "<DEL>\n[VERDICT: approve]\n</DEL>"),
        *("| a |\n|---|\n[VERDICT: approve]", "a | b\n--- | ---\n[VERDICT: approve]"),
    ],
)
def test_a_marker_that_a_page_would_hide_or_show_as_something_else_is_not_clear(text: str) -> None:
    assert verdict_of(text, read_markers(text)) is None


def test_a_closed_element_hides_nothing_after_it_and_changes_may_be_bold() -> None:
    assert verdict("<details>\nLog\n</details>\n\n[VERDICT: approve]") == "approve"
    assert verdict("Please add a test.\n\n**[VERDICT: changes]**") == "changes"
