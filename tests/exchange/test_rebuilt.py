"""What an agent remembered travels in exports: that a session was rebuilt, and in JSON each turn's session."""

import json
from pathlib import Path

import pytest
from tests.view.remembering import BEGINNING, FIRST, GONE, MINUTE, SECOND, write_remembering

from bullpen.exchange.as_json import json_pieces
from bullpen.exchange.html import html_pieces
from bullpen.exchange.markdown import markdown_pieces
from bullpen.store.sqlite import SqliteStore

ID = "warm-river-1"


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "a.db")
    write_remembering(store)
    return store


def test_markdown_says_below_the_message_that_its_session_was_rebuilt(store: SqliteStore) -> None:
    text = "".join(markdown_pieces(store, ID))

    assert f"> Answer 3\n\nrebuilt: {GONE}\n\n## #7 Kim" in text
    assert text.count("rebuilt") == 1


def test_html_says_it_too(store: SqliteStore) -> None:
    text = "".join(html_pieces(store, ID))

    (before, after) = text.split(f'<p class="spent">rebuilt: {GONE}</p>')
    assert before.rstrip().endswith("<p>Answer 3</p>\n</div>")
    assert "Question 4" in after


def test_json_has_the_session_that_every_turn_left_without_digests(store: SqliteStore) -> None:
    turns = json.loads("".join(json_pieces(store, ID)))["turns"]

    sessions = [(turn["memory"]["sessionId"], turn["memory"]["origin"], turn["memory"]["reason"]) for turn in turns]
    assert sessions == [(FIRST, "new", ""), (FIRST, "resumed", ""), (SECOND, "rebuilt", GONE), (SECOND, "resumed", "")]
    assert [turn["memory"]["seenTo"] for turn in turns] == [1, 3, 5, 7]
    assert turns[3]["memory"]["beganAt"] == BEGINNING + 6 * MINUTE
    assert not {"file", "system", "firstSystem", "task"} & set(turns[0]["memory"])
