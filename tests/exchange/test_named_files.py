"""A file that a person names in a chat: written, or a sentence says why not."""

from pathlib import Path

import pytest

from bullpen.errors import BullpenError
from bullpen.exchange.files import export_named
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, write_example


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(tmp_path / "c.db")
    write_example(store)
    return store


@pytest.mark.parametrize("name", ["", "a.md", "b.HTML", "c.json"])
def test_the_name_says_the_format(name: str, store: SqliteStore) -> None:
    path = export_named(store, EXAMPLE_ID, name)

    assert path == Path(name or f"{EXAMPLE_ID}.md")
    assert path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("~nosuchuser/x.md", "cannot be the name of a file"),
        ("a\0b.md", "cannot be the name of a file"),
        ("x.pdf", r"must end in \.md, \.html or \.json"),
        ("no/such/folder/x.md", "cannot be written"),
        ("there.md", r"already exists and was not changed\. Choose another file\.$"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_sentence(name: str, why: str, store: SqliteStore) -> None:
    Path("there.md").write_text("mine")

    with pytest.raises(BullpenError, match=why):
        export_named(store, EXAMPLE_ID, name)
    assert Path("there.md").read_text() == "mine"
