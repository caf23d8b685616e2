"""A backup of a server is one state of everything in it, in a file that every command reads, while it is in use."""

import threading
from pathlib import Path

import psycopg
import pytest
from tests.exchange.test_moving import fill
from tests.store.postgres.server import needs_postgres, new_schema

from bullpen.cli import main
from bullpen.store.postgres.store import PostgresStore
from bullpen.store.sqlite import SqliteStore
from bullpen.store.transfer import digest_of
from bullpen.testing.postgres import PASSWORD
from bullpen.testing.store_contract import OWNER, begin, said

pytestmark = needs_postgres


def test_a_backup_is_read_by_every_command_and_can_be_brought_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, file = new_schema(), tmp_path / "backup.db"
    with PostgresStore(url) as store:
        fill(store)
        # Somebody has it open.
        assert store.claim("c", OWNER, is_alive=lambda _: True)

        assert main(["backup", str(file), "--db", url]) == 0
        printed = capsys.readouterr().out
        with SqliteStore(file) as copy, store.copying_out("c") as there, copy.copying_out("c") as here:
            assert digest_of(here) == digest_of(there)

    assert "1 conversation with 3 messages, all as they were written." in printed
    assert "bullpen move --from FILE --to ADDRESS" in printed
    assert PASSWORD not in printed
    assert not file.with_name("backup.db-wal").exists()
    assert main(["fsck", "--db", str(file)]) == 0
    assert main(["sessions", "list", "--db", str(file)]) == 0
    assert main(["move", "--from", str(file), "--to", new_schema()]) == 0
    assert main(["backup", str(file), "--db", url]) == 1
    assert main(["backup", str(file), "--db", url, "--force"]) == 0


def test_it_is_one_state_although_others_write_meanwhile(tmp_path: Path) -> None:
    url, file = new_schema(), tmp_path / "backup.db"
    with PostgresStore(url) as store:
        for conversation_id in ("a", "b"):
            begin(store, conversation_id)
        stop = threading.Event()

        def talk() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                # Always first in a, then in b.
                for conversation_id in ("a", "b"):
                    store.extend(conversation_id, [said(f"{conversation_id}{number}", "word " * 20)])

        talking = threading.Thread(target=talk)
        talking.start()
        try:
            for _ in range(5):
                assert main(["backup", str(file), "--db", url, "--force"]) == 0
                with SqliteStore(file) as copy:
                    in_a, in_b = (copy.conversation(one).messages for one in ("a", "b"))
                assert in_a - in_b in (0, 1)
        finally:
            stop.set()
            talking.join()


def test_an_empty_server_has_a_backup_too(tmp_path: Path) -> None:
    file = tmp_path / "backup.db"

    assert main(["backup", str(file), "--db", new_schema()]) == 0
    assert main(["fsck", "--db", str(file)]) == 0


def test_damage_is_said_and_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, file = new_schema(), tmp_path / "backup.db"
    with PostgresStore(url) as store:
        fill(store)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE messages SET content = 'Other words.' WHERE sequence = 1")

    assert main(["backup", str(file), "--db", url]) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
