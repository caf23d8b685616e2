"""A summary is a message of its own kind in every export, and copies and forks know it."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.conversation.stage import Stage

from bullpen.exchange.as_json import json_pieces
from bullpen.exchange.forking import fork_conversation
from bullpen.exchange.html import html_pieces
from bullpen.exchange.importing import import_conversation, read_import
from bullpen.exchange.markdown import markdown_pieces
from bullpen.routing.progress import Progress
from bullpen.routing.summaries import Summary
from bullpen.store.sqlite import SqliteStore

FIRST = Summary(number=6, member="a", first=1, last=1, size=13, dropped_by="kim")
SECOND = Summary(number=10, member="a", first=1, last=5, size=12)


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A conversation with two summaries, the first of which was dropped."""
    stage = Stage(tmp_path_factory.mktemp("talk"))
    stage.person("kim")
    stage.agent("a", "The first: #1", "The last: #4", window=3)

    async def play() -> str:
        async with stage.open() as conversation:
            for word in ("one", "two", "three", "four"):
                await conversation.note(word, sender="kim")
            await conversation.sum_up(by="kim")
            await conversation.until_quiet()
            await conversation.note("seven", sender="kim")
            await conversation.drop_summary(by="kim")
            await conversation.say("[SUM UP]", sender="kim")
            await conversation.until_quiet()
            return conversation.id

    return stage.db, asyncio.run(play())


def summaries(store: SqliteStore, conversation_id: str) -> tuple[Summary, ...]:
    return msgspec.convert(store.conversation(conversation_id).progress, Progress).summaries


def test_it_is_called_a_summary_in_markdown_and_html(talk: tuple[Path, str]) -> None:
    db, name = talk
    with SqliteStore(db) as store:
        assert summaries(store, name) == (FIRST, SECOND)
        assert "(summary of #1 to #5)" in "".join(markdown_pieces(store, name))
        assert '<span class="to">summary of #1 to #5</span>' in "".join(html_pieces(store, name))


def test_an_export_brings_it_back_with_what_it_covers_and_who_dropped_it(talk: tuple[Path, str]) -> None:
    db, name = talk
    with SqliteStore(db) as store:
        exported = "".join(json_pieces(store, name))
        assert msgspec.json.decode(exported)["messages"][9]["summaryOf"] == {"first": 1, "last": 5}
        copy = import_conversation(store, read_import(exported.encode()))
        assert summaries(store, copy) == (FIRST, SECOND)
        # What it covers is in the hash: who changes that is found out.
        with pytest.raises(Exception, match="changed"):
            read_import(exported.replace('"last":5', '"last":3').replace('"last": 5', '"last": 3').encode())


def test_a_fork_has_the_summaries_of_its_messages(talk: tuple[Path, str]) -> None:
    db, name = talk
    with SqliteStore(db) as store:
        assert summaries(store, fork_conversation(store, name).id) == (FIRST, SECOND)
        assert summaries(store, fork_conversation(store, name, at=7).id) == (FIRST,)
        assert msgspec.convert(store.conversation(name).progress, Progress).handed_over == {}


def test_a_summary_that_claims_to_cover_itself_is_not_used(tmp_path: Path) -> None:
    document = {
        "version": 1,
        "timestamp": 1,
        "teamTask": None,
        "messages": [
            {
                "id": "msg-1",
                "content": "x",
                "timestamp": 1,
                "speaker": {"roleId": "a", "roleName": "a", "type": "ai"},
                "summaryOf": {"first": 1, "last": 9},
            }
        ],
    }
    with SqliteStore(tmp_path / "db") as store:
        copy = import_conversation(store, read_import(msgspec.json.encode(document)))
        assert [one.dropped_by for one in summaries(store, copy)] == ["bullpen"]
