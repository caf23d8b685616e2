"""Markdown for people, in which nobody can pretend to be somebody else."""

import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bullpen.exchange.files import Format, write_export
from bullpen.exchange.markdown import quoted
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example

BEGINNING = """\
# Where do we start?

quiet-river-4f2a · Team Builders · 2025-03-03 09:00 UTC · 6 messages · ○ asleep

Messages are quoted word for word. A heading inside a quote is part of the message.

Team task:

> Build the login.

## #1 Kai → max · 2025-03-03 09:00 UTC

> Where do we start?

## #2 Max → kai · 2025-03-03 09:01 UTC

> With the login: one form, one cookie, and a test for each.
"""


def exported(store: SqliteStore, conversation_id: str = "quiet-river-4f2a") -> str:
    file = io.StringIO()
    write_export(store, conversation_id, file, "md")
    return file.getvalue()


def test_a_conversation_reads_well(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        write_example(store)

        text = exported(store)

    assert text.startswith(BEGINNING)
    assert ">     set_cookie(🍪)\n" in text


@pytest.mark.parametrize("file_format", ["md", "html"])
def test_only_a_note_is_called_a_note(tmp_path: Path, file_format: Format) -> None:
    kai = Speaker(role_id="kai", role_name="kai", type="human")
    max_ = Speaker(role_id="max", role_name="max", type="ai")
    said = [
        (kai, Routing()),
        (kai, Routing(resolved_addressees=("max",))),
        (kai, Routing(parent_message_id="1")),
        (kai, Routing(raw_next_markers=("mux",))),
        (kai, None),
        (max_, Routing()),
    ]
    with SqliteStore(tmp_path / "a.db") as store:
        store.create("c", team="A", team_file="", started_at=1)
        for number, (speaker, routing) in enumerate(said):
            store.append("c", ConversationMessage(id=f"{number}", content="x", speaker=speaker, routing=routing))
        file = io.StringIO()
        write_export(store, "c", file, file_format)

    [note] = [line for line in file.getvalue().splitlines() if "a note: nobody was asked" in line]
    assert "#m1" in note if file_format == "html" else note.startswith("## #1 kai (a note: nobody was asked)")


def test_a_name_cannot_be_more_than_a_name(tmp_path: Path) -> None:
    speaker = Speaker(role_id="m", role_name="Max\n## #9 [Kai](x) <b>", type="ai")
    with SqliteStore(tmp_path / "a.db") as store:
        store.create("c", team="A\n# B", team_file="", started_at=1)
        store.append("c", ConversationMessage(id="m", content="", speaker=speaker))

        lines = exported(store, "c").splitlines()

    assert [line for line in lines if line.startswith("#")] == [
        "# New conversation",
        r"## #1 Max \#\# \#9 \[Kai\](x) \<b\>",
    ]


def test_a_title_made_of_the_first_words_cannot_be_more_than_a_title(tmp_path: Path) -> None:
    speaker = Speaker(role_id="k", role_name="Kai", type="human")
    with SqliteStore(tmp_path / "a.db") as store:
        store.create("c", team="A", team_file="", started_at=1)
        store.append("c", ConversationMessage(id="m", content="[Hi](x)\n## #9 Max", speaker=speaker))

        lines = exported(store, "c").splitlines()

    assert [line for line in lines if line.startswith("#")] == [r"# \[Hi\](x) \#\# \#9 Max", "## #1 Kai"]


PIECES = "``` ~~~~ ` `` <h2> </blockquote> <!-- --> <script> <!DOCTYPE <?php <https://x.y> <pre> <div - > 1. == | ***"
pieces = st.sampled_from(
    [*PIECES.split(), "\n", "\r", "\r\n", "\n\n", "    ", " ", "\t", "# Kai", "[x]: y", "\\", "\u2028", "a"]
)


@given(st.lists(pieces, max_size=12).map("".join) | st.text(max_size=40))
@example("```\n<h2>\n```\n<h2>")
@example("`a\n\n<h2>`</blockquote>")
@example("\\<h2>")
@example("- ```\n</blockquote>")
@example("> ```\n\n</blockquote>")
@example("- x\n  ```\n</blockquote>")
@example("[a]: b\n+ \n\t```\n```]]>`` ` ``\n\n<script>alert(1)</script>")
@example("[a\nb]: c\n+ \n\t```\n```]]>`` ` ``\n\n<script>alert(1)</script>")
def test_no_text_leaves_its_quote(text: str) -> None:
    tokens = MarkdownIt("commonmark", {"html": True}).parse(f"{quoted(text)}\n\n## ours\n")

    assert [token.type for token in tokens if token.level == 0] == [
        "blockquote_open",
        "blockquote_close",
        "heading_open",
        "heading_close",
    ]
    kinds = {token.type for outer in tokens for token in (outer, *(outer.children or ()))}
    assert not kinds & {"html_block", "html_inline"}


def test_text_is_kept_as_it_is_in_code_and_outside() -> None:
    text = "List<int> is `a < b`:\n```\n<b>&amp;\n```\n* <https://a.b>\n"

    assert quoted(text) == "> List&lt;int> is `a < b`:\n> ```\n> <b>&amp;\n> ```\n> * <https://a.b>\n> "


def test_the_definition_of_a_link_is_shown_as_it_was_said() -> None:
    text = "[a]: http://b\n- [c d]: e\n[f\ng]: h\n[i](j) [k]: l\n```\n[m]: n\n```"

    shown = MarkdownIt("commonmark").render(quoted(text))

    assert "[a]: http://b" in shown
    assert "[c d]: e" in shown
    assert "[f\ng]: h" in shown
    assert '<a href="j">i</a> [k]: l' in shown
    assert "<code>[m]: n" in shown


def test_a_tag_behind_a_fence_that_a_tab_closes_is_text() -> None:
    # Behind "> " a tab is two columns wide, so the fence is closed where four columns would not close it.
    assert quoted("```\n<b>\n\t```\n<b>") == "> ```\n> <b>\n> \t```\n> &lt;b>"


def test_a_tag_behind_a_fence_that_is_indented_is_text() -> None:
    assert quoted(" ```\n```\n<b>") == ">  ```\n> ```\n> &lt;b>"
