"""The grammar of markers: what is read."""

import pytest

from bullpen.markers.grammar import MOST_MARKERS, MOST_NAMES, Addressee, Markers, read_markers
from bullpen.markers.stripping import strip_all_markers


def addressees(text: str) -> tuple[str, ...]:
    return read_markers(text).addressees


def test_a_text_without_markers_says_nothing() -> None:
    assert read_markers("Just a[0] and [links](x).") == Markers()
    assert not read_markers("")


@pytest.mark.parametrize(
    "text",
    [
        "Done. [NEXT: max]",
        "Done. [next:max]",
        "Done. [Next:  max  ]",
        "Done. ［NEXT：max］",
        "Done. [NEXT：max］",
        "[NEXT: max]\nDone.",
        "完成了。[NEXT: max]",
        "- a list\n- of [NEXT: max] things",
        "[NEXT:\nmax\n]",
    ],
)
def test_one_name(text: str) -> None:
    assert addressees(text) == ("max",)


def test_a_relay_and_a_group_and_intents() -> None:
    markers = read_markers("[NEXT: max, sarah & carol!P1, 小明 ！P3]")

    assert markers.next == (
        (Addressee("max"),),
        (Addressee("sarah"), Addressee("carol", intent=1)),
        (Addressee("小明", intent=3),),
    )


def test_several_markers_add_up_in_order() -> None:
    assert addressees("[NEXT: max] and then [NEXT: sarah，carol]") == ("max", "sarah", "carol")


def test_empty_names_are_nobody() -> None:
    markers = read_markers("[NEXT: , & ,]")

    assert (markers.next, len(markers)) == ((), 1)


@pytest.mark.parametrize(
    ("text", "names"), [("[NEXT: !P1]", ()), ("[NEXT: ！P3 & max]", ("max",)), ("[NEXT: a, !P1, b]", ("a", "b"))]
)
def test_an_intent_without_a_name_is_nobody(text: str, names: tuple[str, ...]) -> None:
    assert addressees(text) == names


def test_the_sender() -> None:
    assert read_markers("[FROM: kailai] hello").sender == "kailai"
    assert read_markers("[FROM:] hello") == Markers()
    assert read_markers("[FROM: a][FROM: b]").sender == "b"


def test_what_to_drop() -> None:
    assert read_markers("[DROP: max | sarah] [DROP: ALL]").drop == ("max", "sarah", "ALL")


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("[TEAM_TASK] Build it", "Build it"),
        ("[TEAM_TASK] fix a[0] and b", "fix a[0] and b"),
        ("[TEAM_TASK]\nline one\n\nline two\n[NEXT: max] bye", "line one\n\nline two"),
        ("[TEAM_TASK: fix a[b[0]] now] bye", "fix a[b[0]] now"),
        ("[TEAM_TASK: one] [TEAM_TASK: two]", "two"),
        ("[TEAM_TASK: one\n- two\n- three]", "one\n- two\n- three"),
        ("[TEAM_TASK] one [TEAM_TASK] two", "two"),
        ("[TEAM_TASK: one] [TEAM_TASK:  ]", "one"),
        ("[TEAM_TASK]", None),
        ("[TEAM_TASK] use `[NEXT: x]` in\n```\n[NEXT: y]\n```", "use `[NEXT: x]` in\n```\n[NEXT: y]\n```"),
        ("［TEAM_TASK］设计登录系统", "设计登录系统"),
    ],
)
def test_the_team_task(text: str, task: str | None) -> None:
    assert read_markers(text).team_task == task


@pytest.mark.parametrize(
    "text",
    [
        "Write `[NEXT: max]` at the end.",
        "Write ``a ` [NEXT: max]`` at the end.",
        "A span `over\nlines [NEXT: max] here` too.",
        "```\n[NEXT: max]\n```",
        "```python\n[NEXT: max]\n~~~\n[NEXT: max]\n````\n",
        "~~~~\n[NEXT: max]\n~~~\n[NEXT: max]\n~~~~",
        "An open fence:\n```\n[NEXT: max]",
        "1. item\n   ```\n   [NEXT: max]\n   ```",
        "- ```\n  [NEXT: max]\n  ```",
        "> [NEXT: max]",
        "  > sarah said [NEXT: max]",
        ">> [NEXT: max]",
        "- > [NEXT: max]",
        "> ```\n> [NEXT: max]\n> ```",
    ],
)
def test_code_and_quotes_do_not_route(text: str) -> None:
    assert read_markers(text) == Markers()


@pytest.mark.parametrize(
    "text",
    [
        "> quoted\n[NEXT: max]",
        "A lone ` backtick [NEXT: max]",
        "Two paragraphs `\n\n[NEXT: max] ` with one each",
        "- `one\n- [NEXT: max] `two",
        "Escaped \\`[NEXT: max]\\` backticks",
        "Unequal ` [NEXT: max] `` runs",
        "```\ncode\n```\n[NEXT: max]",
        "```\ncode\n````\n[NEXT: max]",
        "    indented [NEXT: max]",
        "Like this:\n\n    [NEXT: max]",
        '"[NEXT: max]"',
        "<!-- [NEXT: max] -->",
        "5 > 4 [NEXT: max]",
        "`[NEXT: sarah]` then [NEXT: max]",
    ],
)
def test_what_only_looks_like_code_does_route(text: str) -> None:
    assert addressees(text) == ("max",)


@pytest.mark.parametrize(
    "text",
    [
        "[NEXT max]",
        "[ NEXT: max]",
        "[NEXT : max]",
        "[NEXTS: max]",
        "[NEXT: max",
        "[NEXT: max\n\n]",
        "NEXT: max]",
        "[TEAM_TASK: open",
        "[TEAM_TASK: over\n \ntwo paragraphs]",
        "[NEXT: a [b]",
        "[TEAM TASK] x",
        "[DONE]",
        "[ſROM: x]",
        "\\[NEXT: x\\]",
        "\\[NEXT: x]",
        "[NEXT: x\\]",
        "\\\\\\[NEXT: x]",
        "\\[TEAM_TASK\\] x",
        "[TEAM_TASK\\] x",
    ],
)
def test_what_is_no_marker(text: str) -> None:
    assert read_markers(text) == Markers()


def test_blocks_of_both_kinds_in_one_text() -> None:
    # CPython's re once failed here with a SystemError.
    assert addressees("[NEXT: max]\n```\n[NEXT: x]\n```\n~~~\n[NEXT: y]\n~~~\n> [NEXT: z]\n") == ("max",)


def test_a_name_keeps_its_own_exclamation_mark() -> None:
    assert read_markers("[NEXT: 小！明!P1]").next == ((Addressee("小！明", intent=1),),)


def test_a_close_bracket_in_code_does_not_close() -> None:
    assert read_markers("[NEXT: a`]`b]").found[0].value == "a`]`b"
    assert read_markers("[TEAM_TASK: one\n- two `]` three]").team_task == "one\n- two `]` three"


def test_an_unfinished_marker_does_not_swallow_the_next() -> None:
    assert addressees("[NEXT: [NEXT: max]") == ("max",)


def test_a_backslash_that_is_escaped_itself_escapes_no_bracket() -> None:
    assert addressees("C:\\\\[NEXT: max]") == ("max",)
    assert read_markers("[NEXT: max\\\\]").found[0].value == "max\\\\"


def test_an_escaped_bracket_within_a_marker_is_text() -> None:
    assert read_markers("[TEAM_TASK: explain \\[NEXT: x\\] to them]").team_task == "explain \\[NEXT: x\\] to them"
    assert addressees("[NEXT: \\[NEXT: y\\], max]") == ("\\[NEXT: y\\]", "max")


def test_a_backslash_in_code_escapes_nothing_behind_it() -> None:
    assert addressees("`C:\\`[NEXT: max]") == ("max",)
    assert addressees("``C:\\``[NEXT: max]") == ("max",)


def test_only_the_brackets_of_markdown_can_be_escaped() -> None:
    assert addressees("\\［NEXT：max］") == ("max",)


@pytest.mark.parametrize(
    "text",
    [
        "```\n    ```\n[NEXT: max]\n```",
        "    ```\n\n```\n[NEXT: max]\n```",
        "-\n  ```\n  code\n\n```\n[NEXT: max]",
        "- ```\n  a\n  ```\n\n- b\n\n  ~~~\n  [NEXT: max]\n  ~~~",
        "`a\n#b [NEXT: max]`",
        "`a\n10. [NEXT: max]`",
        "`a\n---\n`[NEXT: max]`",
        "a\r> [NEXT: max]",
        "a\r```\r[NEXT: max]\r```\r",
        ">\t```\n>\t[NEXT: max]",
        "1. a\n\n   > b\n   > [NEXT: max]",
        "- - - > [NEXT: max]",
        "[NEXT: \n> max, sarah\n]",
        "[NEXT: a\n```\n, max,\n```\n]",
    ],
)
def test_code_and_quotes_are_what_markdown_says(text: str) -> None:
    assert addressees(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "- ```\n  code\n[NEXT: max]",
        "1. do\n   ```sh\n   x\n   ```\n2. [NEXT: max]",
        "- a\n\n      ```\n[NEXT: max]",
        "***\n[NEXT: max]",
        "`a\n\n===\n[NEXT: max]`",
        "`a\n---\n[NEXT: max]`",
        "-\n\n  [NEXT: max]",
    ],
)
def test_code_ends_where_markdown_says(text: str) -> None:
    assert addressees(text) == ("max",)


@pytest.mark.parametrize(
    "text",
    [
        "> > a\n\t```\n`b\n    ```\n[NEXT: max]```",
        "> > a\n\t```\nb `c\n    ```\n[NEXT: max]\\`",
    ],
)
def test_what_one_parser_or_the_other_calls_code_does_not_route(text: str) -> None:
    # Below a quote in a quote, a line that is indented belongs to the quote or is code, depending on whom one asks.
    assert addressees(text) == ()


def test_below_a_quote_code_hides_only_what_is_code() -> None:
    assert addressees("> a `b\nsee `c`, [NEXT: max] and `d`") == ("max",)


def test_code_is_hidden_in_a_long_text_as_in_a_short_one() -> None:
    text = "word\n" * 10_000 + "- a\n\n  ```\n  [NEXT: w]\n  ```\n\n> [NEXT: y]\n\n`[NEXT: z]` [NEXT: max]"

    assert addressees(text) == ("max",)


def test_markers_after_the_first_thousand_are_not_read() -> None:
    markers = read_markers("[NEXT: a]" * MOST_MARKERS + "[NEXT: max][TEAM_TASK] all")

    assert (len(markers), set(markers.addressees), markers.team_task) == (MOST_MARKERS, {"a"}, None)
    assert markers.are_cut
    assert not read_markers("[NEXT: a]" * MOST_MARKERS).are_cut


def test_markers_in_code_and_open_ones_are_not_counted() -> None:
    text = "`[NEXT: a]`\n\n" * 2 * MOST_MARKERS + "[NEXT:" * 2 * MOST_MARKERS + "[NEXT: max]"

    assert addressees(text) == ("max",)
    assert not read_markers(text).are_cut


def test_the_last_task_that_is_read_ends_at_the_next_marker() -> None:
    markers = read_markers("`x` [NEXT: a] " * (MOST_MARKERS - 1) + "[TEAM_TASK] build\n" + "[NEXT: b] c " * 100_000)

    assert (markers.team_task, markers.are_cut) == ("build", True)


@pytest.mark.parametrize("names", ["a, ", "a & ", "a, b & "])
def test_names_after_the_first_thousand_are_not_read(names: str) -> None:
    markers = read_markers(f"[NEXT: {names * MOST_NAMES} max] [DROP: sarah]")

    assert (len(markers.addressees), markers.drop, markers.are_cut) == (MOST_NAMES, (), True)
    assert "max" not in markers.addressees


def test_names_to_drop_count_with_the_others() -> None:
    markers = read_markers(f"[DROP: {'b | ' * 10} c] [NEXT: {'a, ' * (MOST_NAMES - 10)}]")

    assert (len(markers.addressees), markers.drop, markers.are_cut) == (MOST_NAMES - 10, ("b",) * 10, True)
    assert not read_markers(f"[NEXT: {'a, ' * MOST_NAMES}]").are_cut


def test_what_is_too_long_to_be_a_name_is_not_remembered() -> None:
    from bullpen.markers.grammar import _known_group

    _known_group.cache_clear()

    assert read_markers(f"[NEXT: {'x' * 100_000}]").addressees == ("x" * 100_000,)
    assert read_markers("[NEXT: max]").addressees == ("max",)

    assert _known_group.cache_info().currsize == 1


@pytest.mark.parametrize("span", ["`b`", "``b``"])
def test_a_marker_goes_on_in_a_line_that_begins_with_a_code_span(span: str) -> None:
    assert len(read_markers(f"[NEXT: a,\n{span}]")) == 1


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("Look. [CHECKS]", ""),
        ("Look. [checks: 7]", "7"),
        ("［CHECKS：7］ [DIFF: 3]", "7"),
        ("[DIFF] and [CHECKS]", ""),
        ("`[CHECKS]` and [CHECK] and [CHECKSUM: 7]", None),
    ],
)
def test_what_checks_said_is_asked_for_with_a_marker(text: str, turn: str | None) -> None:
    assert read_markers(text).checks == turn
    assert strip_all_markers("a [CHECKS] b [CHECKS: 7]") == "a b"


def test_a_verdict_is_a_marker_in_any_spelling() -> None:
    text = "Fine. [VERDICT: approve] [verdict：Changes.] ［VERDICT: 通过］ [VERDICT: maybe]"
    assert read_markers(text).verdicts == ("approve", "changes", "approve", None)
    assert strip_all_markers(text) == "Fine."
    assert read_markers("`[VERDICT: approve]`\n> [VERDICT: approve]\n\\[VERDICT: approve\\]").verdicts == ()


@pytest.mark.parametrize(
    "text",
    [
        "Compare. [NEXT: max & sarah, carol] blind",
        "Compare. [NEXT: max & sarah, carol; blind]",
        "Compare. [NEXT：max ＆ sarah，carol；Blind]",
        "Compare. [NEXT: max & sarah, carol] BLIND [DIFF]",
    ],
)
def test_the_word_blind_belongs_to_the_marker(text: str) -> None:
    markers = read_markers(text)
    assert (markers.is_blind, markers.addressees) == (True, ("max", "sarah", "carol"))
    assert strip_all_markers(text) == "Compare."


@pytest.mark.parametrize(
    "text",
    ["[NEXT: max & sarah, carol] blind tests are needed", "[DROP: max] blind", "[NEXT: max]\nblind", "[NEXT: blind]"],
)
def test_prose_that_begins_with_blind_is_prose(text: str) -> None:
    assert not read_markers(text).is_blind
    assert "blind" in text


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Please. [SUM UP]", ""),
        ("[sum_up: Max] and [SUM UP: sarah]", "sarah"),
        ("［SUM UP：麦克斯］ [DIFF]", "麦克斯"),
        ("`[SUM UP]` and [SUMUP] and [SUM UPS: a] and [SUM  UP]", None),
        ("[TEAM_TASK] Sum it up [SUM UP]", ""),
    ],
)
def test_sum_up_names_who_sums_up(text: str, asked: str | None) -> None:
    assert read_markers(text).sum_up == asked
    assert strip_all_markers("a [SUM UP] b [SUM UP: max] c [SUM_UP]") == "a b c"
