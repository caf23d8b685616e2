"""Conversations move from a file to a server and back, exactly."""

from pathlib import Path

import psycopg
import pytest
from tests.exchange.test_moving import fill
from tests.store.postgres.server import needs_postgres, new_schema

from bullpen.cli import main
from bullpen.exchange.moving import move
from bullpen.store.postgres.store import PostgresStore
from bullpen.store.sqlite import SqliteStore
from bullpen.store.transfer import CONVERSATION, STATE, TABLES, digest_of
from bullpen.testing.postgres import PASSWORD
from bullpen.testing.store_contract import begin, everything, said

pytestmark = needs_postgres


def test_there_and_back(tmp_path: Path) -> None:
    with (
        SqliteStore(tmp_path / "a.db") as first,
        PostgresStore(new_schema()) as server,
        SqliteStore(tmp_path / "b.db") as last,
    ):
        fill(first)
        begin(first, "long")
        first.extend("long", [said(f"m{number}", f"word{number} 词") for number in range(1200)])
        assert [one.was_there for one in move(first, server)] == [False, False]
        assert [one.was_there for one in move(server, last)] == [False, False]
        assert [one.was_there for one in move(last, server)] == [True, True]

        assert everything(first) == everything(server) == everything(last)
        assert server.memories("c") == first.memories("c") != []
        assert server.record("c", "7") == first.record("c", "7")
        assert [found.sequence for found in server.search("词", limit=3)] == [1200, 1199, 1198]
        for conversation_id in ("c", "long"):
            with first.copying_out(conversation_id) as one, last.copying_out(conversation_id) as other:
                assert digest_of(one) == digest_of(other)
        assert server.fsck() == last.fsck() == []


def test_what_was_filled_by_the_server_is_the_same(tmp_path: Path) -> None:
    """A conversation that was written there, not moved there, has the same digest as one that was written here."""
    with SqliteStore(tmp_path / "a.db") as here, PostgresStore(new_schema()) as there:
        fill(here)
        fill(there)
        with here.copying_out("c") as one, there.copying_out("c") as other:
            assert digest_of(one) == digest_of(other)


def test_every_column_is_copied() -> None:
    url = new_schema()
    PostgresStore(url).close()
    own = {"number", "conversation"}
    state = own | {"messages", "head", "owner", "owner_token", "owner_node", "locked_at"}
    not_copied = {"conversations": own | {"deleted_at"}, "states": state}
    copied = {table.name: set(table.columns) for table in TABLES}
    copied |= {"conversations": set(CONVERSATION), "states": set(STATE)}
    stored: dict[str, set[str]] = {}
    with psycopg.connect(url) as db:
        query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
        for table, column in db.execute(query):
            stored.setdefault(table, set()).add(column)
    for as_messages in ("messages", "speakers", "migrations"):
        del stored[as_messages]
    assert {name: found - not_copied.get(name, own) for name, found in stored.items()} == copied


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, file = new_schema(), tmp_path / "a.db"
    with SqliteStore(file) as store:
        fill(store)

    assert main(["move", "--from", str(file), "--to", url]) == 0
    said_there = capsys.readouterr().out
    assert "1 conversation with 3 messages copied, all as they were written." in said_there
    assert main(["move", "c", "--from", url, "--to", str(tmp_path / "b.db")]) == 0
    assert main(["move", "--from", str(file), "--to", url]) == 0
    said_again = capsys.readouterr().out
    assert "1 conversation there already, exactly the same." in said_again
    with SqliteStore(tmp_path / "b.db") as store:
        assert store.conversation("c").messages == 3
    assert PASSWORD not in said_there + said_again
    assert main(["fsck", "--db", url]) == 0
    assert capsys.readouterr().out.endswith("/postgres: everything is as it was written.\n")
    with psycopg.connect(url) as db:
        db.execute("UPDATE messages SET timestamp = 7 WHERE sequence = 1")
    assert main(["fsck", "--db", url]) == 1
    assert "message 'm1' has changed since it was stored" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["sessions", "--db", url])
    refused = capsys.readouterr().err
    assert "this command needs a file" in refused
    assert PASSWORD not in refused
    assert main(["move", "--from", str(tmp_path / "nowhere.db"), "--to", url]) == 1
    assert "There is no file" in capsys.readouterr().err
