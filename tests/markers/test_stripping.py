"""Stripping: only the marker goes, and what only it caused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bullpen.markers.grammar import MOST_MARKERS, Markers, read_markers
from bullpen.markers.stripping import strip_all_markers, without_markers
from bullpen.text.clean import WHITE_SPACE

CODE = "Here:\n\n    def f():\n        return  1\n\n\tdone  now"


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("", ""),
        ("  plain  ", "plain"),
        ("Hello [NEXT: max] world", "Hello world"),
        ("[FROM: kailai] Hello", "Hello"),
        ("Hello [NEXT: max]", "Hello"),
        ("Hello[NEXT: max] world", "Hello world"),
        ("Hello[NEXT: max]world", "Helloworld"),
        ("one\n[NEXT: max]\ntwo", "one\ntwo"),
        ("one\n\n[NEXT: max]\n\ntwo", "one\n\n\ntwo"),
        ("one\r\n[NEXT: max]\r\ntwo", "one\r\ntwo"),
        ("one   [NEXT: max]  \ntwo", "one\ntwo"),
        ("one\n  [NEXT: max] two", "one\n  two"),
        ("one\n[NEXT: max]   two", "one\ntwo"),
        ("a [FROM: x] [NEXT: y][DROP: ALL] b", "a b"),
        ("a[FROM: x] [NEXT: y]b", "a b"),
        ("a[FROM: x][NEXT: y]b", "ab"),
        ("a [NEXT: x,\ny [z]] b", "a b"),
        ("\ufeff[NEXT: x] a", "a"),
        ("one\n[FROM: x] [NEXT: y]\ntwo", "one\ntwo"),
        ("before [TEAM_TASK] all of\nthis goes", "before"),
        ("Intro\n[TEAM_TASK] a\nb\n[NEXT: max]\nOutro", "Intro\nOutro"),
        ("[TEAM_TASK: x] go on", "go on"),
        ("see a[0], [x](y) and `[NEXT: max]`", "see a[0], [x](y) and `[NEXT: max]`"),
        ("> [NEXT: max]\nok [NEXT: max]", "> [NEXT: max]\nok"),
        ("see \\[NEXT: a\\] and [NEXT: max]", "see \\[NEXT: a\\] and"),
        ("[NEXT: a\\], b] c", "c"),
        ("a \\\\[NEXT: max] b", "a \\\\ b"),
        (f"{CODE}\n[NEXT: max]", CODE),
    ],
)
def test_the_marker_goes_and_the_rest_stays(text: str, stripped: str) -> None:
    assert strip_all_markers(text) == stripped


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("Hello [NEXT: max] world", "Hello world"),
        (f"{CODE}\n[NEXT: max]", "Here:\ndef f():\nreturn 1\ndone now"),
        ("one\n\n[NEXT: max]\n\ntwo", "one\ntwo"),
        ("  a \t  b  ", "a b"),
        ("a\t[NEXT: x] b", "a b"),
    ],
)
def test_collapsing_is_the_old_behaviour(text: str, stripped: str) -> None:
    assert strip_all_markers(text, "collapse") == stripped


JAVASCRIPT_SPACE = "\t\v\f \xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff"


@pytest.mark.parametrize("space", JAVASCRIPT_SPACE)
def test_collapse_takes_for_white_space_what_javascript_does(space: str) -> None:
    assert strip_all_markers(f"{space}a{space}{space}b{space}", "collapse") == "a b"


@pytest.mark.parametrize("character", "\x1c\x1d\x1e\x1f\x85\u200b")
def test_collapse_leaves_what_only_python_takes_for_white_space(character: str) -> None:
    assert (
        strip_all_markers(f"{character}a{character}{character}b", "collapse") == f"{character}a{character}{character}b"
    )


def test_another_word_for_whitespace_is_an_error() -> None:
    with pytest.raises(ValueError, match="whitespace must be 'preserve', 'collapse' or 'specification', got 'trim'"):
        strip_all_markers("x", "trim")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("[FR[NEXT:x]OM: human]", "[ FROM: human]"),
        ("[NEXT:[NEXT:x]a]", "[ NEXT:a]"),
        ("[TEAM_[DROP: a]TASK] evil", "[ TEAM_TASK] evil"),
        ("[[NEXT:x]NEXT: max]", "[ NEXT: max]"),
        # Without its marker the first line becomes a fence, and what was code behind it no longer is.
        ("[NEXT: a]```\nfoo\n```\n[NEXT: b]\n```", "```\nfoo\n```\n[ NEXT: b]\n```"),
    ],
)
def test_stripping_makes_no_marker(text: str, stripped: str) -> None:
    assert strip_all_markers(text) == stripped
    assert not read_markers(stripped)


SYNTAX = (
    "[ ] ［ ］ : ： NEXT FROM DROP TEAM_TASK [NEXT:a] [TEAM_TASK] [TEAM_TASK: ` `` ``` ~~~ > - \\ # FR OM:x] a 文 😀"
)
PIECES = st.sampled_from([*SYNTAX.split(), "\\[", "\\]", "\n", "\n\n", "\r\n", " ", "\t", "> ", "- "])
MARKED_TEXTS = st.one_of(st.lists(PIECES, max_size=24).map("".join), st.text())


@given(text=MARKED_TEXTS, whitespace=st.sampled_from(["preserve", "collapse"]))
@example(text="[TEAM_TASK:[TEAM_TASK:[NEXT:a]]]", whitespace="preserve")
@example(text="`a\n\nb ` [NEXT:x] ` c", whitespace="collapse")
def test_a_stripped_text_has_no_marker_and_stays_as_it_is(text: str, whitespace: str) -> None:
    stripped = strip_all_markers(text, whitespace)  # type: ignore[arg-type]

    assert not read_markers(stripped)
    assert strip_all_markers(stripped, whitespace) == stripped  # type: ignore[arg-type]


@given(text=MARKED_TEXTS)
def test_only_markers_and_white_space_are_lost(text: str) -> None:
    markers = read_markers(text)
    kept = "".join(text[end:start] for end, start in gaps([(m.start, m.end) for m in markers], len(text)))

    assert without_space(strip_all_markers(text)) == without_space(kept)


def without_space(text: str) -> str:
    return "".join(text.split()).replace("\ufeff", "")


def gaps(spans: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return what lies between the spans."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), length]
    return list(zip(ends, starts, strict=True))


@given(text=MARKED_TEXTS)
def test_a_text_without_markers_is_only_trimmed(text: str) -> None:
    if not read_markers(text):
        assert strip_all_markers(text) == text.strip(WHITE_SPACE)


def test_trimming_the_first_line_makes_no_marker_of_what_was_code() -> None:
    text = "\n\t```\n\n- ```\n```\n```[NEXT: max]"

    assert read_markers(strip_all_markers(text)) == Markers()


@pytest.mark.parametrize("whitespace", ["preserve", "collapse"])
def test_markers_that_are_not_read_stay_and_are_none_any_more(whitespace: str) -> None:
    text = "[NEXT: a] " * MOST_MARKERS + "Look: [NEXT: b] ［FROM：c］ `[NEXT: d]` done."

    stripped = strip_all_markers(text, whitespace)  # type: ignore[arg-type]

    assert stripped == "Look: [ NEXT: b] ［ FROM：c］ `[ NEXT: d]` done."
    assert strip_all_markers(stripped, whitespace) == stripped  # type: ignore[arg-type]


def test_too_many_new_markers_are_none_either() -> None:
    text = "[NEXT: a]```\nx\n```\n" + "[NEXT: b] c\n" * 2 * MOST_MARKERS + "```"

    stripped = strip_all_markers(text)

    assert read_markers(text).addressees == ("a",)
    assert read_markers(stripped) == Markers()
    assert strip_all_markers(stripped) == stripped


@pytest.mark.parametrize("count", [MOST_MARKERS - 1, MOST_MARKERS, MOST_MARKERS + 1, 3 * MOST_MARKERS])
def test_the_words_between_many_markers_are_kept(count: int) -> None:
    stripped = strip_all_markers("word [NEXT: a] " * count)

    assert stripped.count("word") == count
    assert not read_markers(stripped)


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("hello", "hello"),
        ("ab [TEAM_TASK: build it] cd [NEXT: max]", "ab build it cd"),
        ("[TEAM_TASK] build it\nnow", "build it\nnow"),
    ],
)
def test_a_task_that_does_not_count_is_text(text: str, stripped: str) -> None:
    assert without_markers(text, task_counts=False) == stripped
