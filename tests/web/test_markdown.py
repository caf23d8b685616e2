"""Agents' text in a page: Markdown works, and nothing else does."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.exchange.rendering import MOST_CHARACTERS
from bullpen.exchange.visible import visible
from bullpen.web.markdown import ATTRIBUTES, TAGS, plain, render, words


class Elements(HTMLParser):
    """Collects what a browser would make of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def is_harmless(html: str) -> bool:
    """Tell whether only known tags with known attributes are there, and links that lead to web pages or mail."""
    for tag, attributes in Elements(html).found:
        allowed = ATTRIBUTES.get(tag, set()) | ({"rel"} if tag == "a" else set())
        link = attributes.get("href", "https://")
        if tag not in TAGS or not set(attributes) <= allowed or not re.match("(?i)https?:|mailto:", link or ""):
            return False
    return True


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** and `code`", "<p><strong>bold</strong> and <code>code</code></p>\n"),
        ("one\ntwo", "<p>one<br>\ntwo</p>\n"),
        ("<b>no</b>", "<p>&lt;b&gt;no&lt;/b&gt;</p>\n"),
        ("[a](javascript:alert)", "<p>[a](javascript:alert)</p>\n"),
        ("[a](JaVaScRiPt:alert)", "<p>[a](JaVaScRiPt:alert)</p>\n"),
        ("[a](data:text/html,x)", "<p>[a](data:text/html,x)</p>\n"),
        ("[a](//evil.example)", "<p>[a](//evil.example)</p>\n"),
        ("[a](/c/x/do/cancel)", "<p>[a](/c/x/do/cancel)</p>\n"),
        (
            "![a](http://evil.example/p.png)",
            '<p><span class="picture">🖼 a <code>http://evil.example/p.png</code></span></p>\n',
        ),
        ("# Big", "<h3>Big</h3>\n"),
        ("a\u202eb", "<p>a⟨U+202E⟩b</p>\n"),
    ],
)
def test_what_becomes_of_a_text(text: str, html: str) -> None:
    assert render(text) == html


def test_code_is_coloured_by_classes_only() -> None:
    html = render("```python\nprint('</pre><script>')\n```")

    assert '<span class="k-nb">print</span>' in html
    assert "&lt;/pre&gt;&lt;script&gt;" in html
    assert is_harmless(html)


def test_what_is_too_long_for_markdown_is_shown_as_it_was_typed() -> None:
    assert render("*a*" * MOST_CHARACTERS).startswith('<pre class="typed" tabindex="0">*a**a*')


def test_what_nobody_can_read_anyway_is_counted() -> None:
    assert plain("a" * 1_000_010).endswith('<p class="more">10 more characters are in the export.</p>')


@given(st.text(alphabet=st.sampled_from("<>\"'&`*_[]()!#-+~|\\:/ \n\tabhrefjavscipton=x\u202e\x00\x1b"), max_size=300))
def test_nothing_that_can_be_typed_does_harm(text: str) -> None:
    assert is_harmless(render(text))


@given(st.text())
def test_what_is_shown_can_be_seen(text: str) -> None:
    shown = visible(text)

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]", shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a␛[31mb"),
        ("line\r\nend", "line\nend"),
        ("old\rnew", "old␍new"),
        ("\x7f", "␡"),
        ("tab\tstays", "tab\tstays"),
        ("family 👨‍👩‍👧 stays", "family 👨‍👩‍👧 stays"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("tag \U000e0041", "tag ⟨U+E0041⟩"),
        ("\u2028", "⟨U+2028⟩"),
    ],
)
def test_signs_for_what_cannot_be_seen(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_small_text_makes_no_large_table() -> None:
    text = "|a" * 700 + "\n" + "|-" * 700 + "\n" + "|\n" * 558

    assert len(render(text)) < 10 * len(text)
    assert "<td>" in render("|a|b|\n|-|-|\n|1|2|")


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("## a\n### b\n# c\n###### d\n## e", ["h3", "h4", "h3", "h4", "h4"]),
        ("###### a\n###### b", ["h3", "h3"]),
        ("# a\n# b\n## c\n### d\n#### e\n##### f\n###### g", ["h3", "h3", "h4", "h5", "h6", "h6", "h6"]),
    ],
)
def test_headings_skip_no_level_whatever_their_author_did(text: str, tags: list[str]) -> None:
    assert re.findall("<(h.)>", render(text)) == tags


def test_the_columns_of_a_table_are_aligned_as_written() -> None:
    html = render("| a | b | c |\n|:--|--:|:-:|\n| 1 | 2 | 3 |")
    assert re.findall(r"<t([hd])(?: class=\"([\w-]+)\")?>", html) == [
        (kind, side) for kind in "hd" for side in ("", "to-right", "to-center")
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Done It is **fixed**, see `a_b` > c [NEXT: kim]", "Done It is fixed, see a_b > c"),
        ("… | a | b | |---|--:| | 1 | 2 |", "… a b 1 2"),
        ("```python def f(): ... ``` [docs](https://example.com)", "def f(): ... docs"),
        ("…ld** and more", "…ld** and more"),
    ],
)
def test_a_part_of_a_text_is_shown_without_the_signs_of_markdown(text: str, shown: str) -> None:
    assert words(text) == shown
