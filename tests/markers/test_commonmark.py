"""Code and quotes are where markdown-it finds them, in short and in long texts, apart from differences that we name."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest
from markdown_it import MarkdownIt
from tests.markers.hostile_lines import NAME, hostile_lines, ordinary_lines

from bullpen.markers import code, runs
from bullpen.markers.blocks import BlockReader
from bullpen.markers.code import HIDDEN, hide_code

TEXTS = 2_000
MOST_THAT_DIFFER = 0.001
PROSE = "Prose, as people write it.\n\n" * 4_000

# Not what is written in CommonMark: HTML is text to us, and so are definitions of links (docs/decisions.md, 3).
MARKDOWN = MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).disable("reference")
QUOTED_LINE = re.compile(r"[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*>")
INDENTED_QUOTE = re.compile(r"(?m)^(?: {0,3}\t| {4})[ \t]*>")


def places(text: str) -> dict[str, str]:
    """Return for each name what markdown-it takes its place for."""
    found = dict.fromkeys(NAME.findall(text), "text")
    depth = 0
    for token in MARKDOWN.parse(text):
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type in ("fence", "code_block"):
            kind = "fence" if token.type == "fence" else "indented"
            found |= dict.fromkeys(NAME.findall(f"{token.info} {token.content}"), "quote" if depth else kind)
        elif token.type == "inline" and depth:
            found |= dict.fromkeys(NAME.findall(token.content), "quote")
        elif token.type == "inline":
            spans = [child.content for child in token.children or () if child.type == "code_inline"]
            found |= {name: "span" for span in spans for name in NAME.findall(span)}
    return found


def difference(text: str, visible: str, name: str, place: str) -> str | None:
    """Return how we differ from markdown-it about one name: by what we name in docs/decisions.md, or without a name."""
    at = text.index(name)
    is_hidden = visible[at] == HIDDEN
    if is_hidden == (place in ("fence", "quote", "span")):
        return None
    line = text[text.rfind("\n", 0, at) + 1 : at]
    if place == "indented":
        return "what is only indented is not code"
    if is_hidden and QUOTED_LINE.match(line):
        return "a line that begins with > is quoted"
    if place == "quote" and not QUOTED_LINE.match(line):
        return "a quote ends with its line"
    if INDENTED_QUOTE.search(text):
        return "markdown-it reads an indented > otherwise than CommonMark says"
    return "without a name"


def differences(seed: int) -> Iterator[str | None]:
    random = Random(seed)
    for _ in range(TEXTS):
        text = hostile_lines(random)
        visible = hide_code(text)
        for name, place in places(text).items():
            yield difference(text, visible, name, place)


def test_code_and_quotes_are_where_markdown_it_finds_them() -> None:
    found = Counter(differences(seed=1))

    assert found["without a name"] <= MOST_THAT_DIFFER * found.total()
    assert set(found) - {None, "without a name"} == {
        "what is only indented is not code",
        "a line that begins with > is quoted",
        "a quote ends with its line",
        "markdown-it reads an indented > otherwise than CommonMark says",
    }


def test_a_long_text_is_read_like_a_short_one() -> None:
    random = Random(4)
    for _ in range(100):
        text = hostile_lines(random)

        assert hide_code(PROSE + text) == PROSE + hide_code(text)
        assert hide_code(f"{PROSE}`x`\n\n{text}")[-len(text) :] == hide_code(text)


@pytest.mark.parametrize("lines", [hostile_lines, ordinary_lines])
def test_runs_are_what_is_found_line_by_line(lines: Callable[[Random], str], monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(5)
    texts = [lines(random) for _ in range(TEXTS)]
    in_runs = [visible_signs(text) for text in texts]

    monkeypatch.setattr(code, "runs", line_by_line)

    assert in_runs == [visible_signs(text) for text in texts]


def line_by_line(text: str, reader: BlockReader) -> Iterator[runs.Run]:
    start = 0
    for line in text.split("\n"):
        yield reader.read(line), start, start + len(line) + 1
        start += len(line) + 1


def visible_signs(text: str) -> list[int]:
    """Return where something is to be seen; whether the space between two hidden lines is hidden does not matter."""
    return [place for place, sign in enumerate(hide_code(text)) if sign != HIDDEN and not sign.isspace()]
