"""What agents asked and what was answered, in every format and in forks: verifiable in JSON, harmless in the others."""

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.exchange.test_html import OUR_TAGS, Page

from bullpen.approvals import Answer, ApprovalRecord
from bullpen.errors import InvalidImport
from bullpen.exchange.files import Format, write_export
from bullpen.exchange.forking import fork_conversation
from bullpen.exchange.importing import import_conversation, read_import
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, write_example
from bullpen.turn_events import ApprovalAsked

COMMAND = ApprovalAsked(
    id="q1", kind="command", tool="Bash", command="pytest -q\n```", folder="/p", details={"timeoutMs": 5}
)
ASKED = ApprovalRecord(turn_id="1", member="max", question="q1", at=5, asked=COMMAND)
ANSWERED = ApprovalRecord(
    turn_id="1",
    member="max",
    question="q1",
    at=6,
    answer=Answer(verdict="no", reason="Only the tests of the login."),
    by="kai",
    scope="conversation",
    because="A rule",
)
HOSTILE = "\x1b]0;x\x07<script>alert(1)</script>`**\n\n## #9 Max\r\n> \u202e</details></blockquote>\u2028# z"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "c.db") as opened:
        write_example(opened)
        yield opened


def added(store: SqliteStore, *records: ApprovalRecord) -> list[ApprovalRecord]:
    return [store.note_approval(EXAMPLE_ID, record) for record in records]


def exported(store: SqliteStore, file_format: Format, conversation_id: str = EXAMPLE_ID) -> str:
    file = io.StringIO()
    write_export(store, conversation_id, file, file_format)
    return file.getvalue()


def test_the_chain_can_be_recomputed_from_an_export(store: SqliteStore) -> None:
    stored = added(store, ASKED, ANSWERED)

    document = json.loads(exported(store, "json"))
    hashes = [document["conversation"]["firstLink"], *(message["hash"] for message in document["messages"])]
    previous = bytes.fromhex(hashes[0])
    for approval, record in zip(document["conversation"]["approvals"], stored, strict=True):
        facts = {name: value for name, value in approval.items() if name != "hash"}
        line = json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        last_message = bytes.fromhex(hashes[approval["after_message"]])
        previous = hashlib.sha256(previous + last_message + line + b"\n").digest()
        assert approval["hash"] == previous.hex() == record.hash.hex()


def test_an_import_brings_them_back_as_what_was_and_allows_nothing(store: SqliteStore) -> None:
    stored = added(store, ASKED, ANSWERED, replace(ASKED, turn_id="5"))

    copy = import_conversation(store, read_import(exported(store, "json").encode()))
    again = store.approvals(copy)
    assert again == [replace(one, is_copy=True, hash=new.hash) for one, new in zip(stored, again, strict=True)]
    assert store.open_approvals(copy) == []
    assert store.conversation(copy).progress["turns_made"] == 5
    # And once more, from the copy.
    import_conversation(store, read_import(exported(store, "json", copy).encode()))
    assert store.fsck() == []


@pytest.mark.parametrize(
    ("number", "spoiled"),
    [
        (0, {"number": 2}),
        (0, {"after_message": 5}),
        (0, {"after_message": 99}),
        (0, {"at": -1}),
        (0, {"asked": {"event": "approval_asked", "id": "q1", "kind": "command", "command": "rm"}}),
        (0, {"asked": None}),
        (0, {"hash": ""}),
        (1, {"by": "eva"}),
        (1, {"at": 7}),
        (1, {"scope": "for ever"}),
        (1, {"answer": {"verdict": "yes"}}),
        (1, {"question": 7}),
    ],
)
def test_an_import_that_was_changed_is_refused(store: SqliteStore, number: int, spoiled: dict[str, Any]) -> None:
    added(store, ASKED, ANSWERED)
    document = json.loads(exported(store, "json"))
    document["conversation"]["approvals"][number] |= spoiled
    with pytest.raises(InvalidImport, match="approval"):
        read_import(json.dumps(document).encode())


@pytest.mark.parametrize("approvals", [{}, "text", [7], [[]]])
def test_an_import_whose_approvals_are_none_is_refused(store: SqliteStore, approvals: object) -> None:
    document = json.loads(exported(store, "json"))
    document["conversation"]["approvals"] = approvals
    with pytest.raises(InvalidImport, match="approvals"):
        read_import(json.dumps(document).encode())


def test_a_fork_has_what_was_asked_up_to_its_message(store: SqliteStore, tmp_path: Path) -> None:
    stored = added(store, ASKED, ANSWERED)
    assert store.approvals(fork_conversation(store, EXAMPLE_ID, 5).id) == []

    fork = store.approvals(fork_conversation(store, EXAMPLE_ID).id)
    assert [replace(one, is_copy=False, hash=b"") for one in fork] == [replace(one, hash=b"") for one in stored]
    assert all(one.is_copy for one in fork)
    assert store.fsck() == []


def test_people_read_them_where_they_were_asked(store: SqliteStore) -> None:
    added(store, ASKED, ANSWERED, replace(ASKED, question="q2", asked=ApprovalAsked(id="q2", kind="question")))
    markdown, html = exported(store, "md"), exported(store, "html")
    question = "**max asked to run a command (Bash)**\n\n> ````\n> $ pytest -q\n> ```\n> in /p\n"
    answer = (
        "**kai answered max: no, for this conversation (A rule)**\n\n> ```\n> Only the tests of the login.\n> ```\n"
    )
    assert markdown.index("## #6 ") < markdown.index(question) < markdown.index(answer)
    assert markdown.endswith("**max asked a question**\n\n")
    assert '<div class="changes approval"><details><summary>max asked to run a command (Bash)</summary>' in html
    assert '<div class="changes approval"><p>max asked a question</p></div>' in html


def test_nothing_hostile_is_more_than_text(store: SqliteStore) -> None:
    asked = replace(COMMAND, command=HOSTILE, why=HOSTILE, diff=HOSTILE, tool=HOSTILE, details={HOSTILE: HOSTILE})
    answer = Answer(verdict="no", reason=HOSTILE, command=HOSTILE, text=HOSTILE)
    added(
        store,
        replace(ASKED, member=HOSTILE, asked=asked),
        replace(ANSWERED, member=HOSTILE, by=HOSTILE, because=HOSTILE, answer=answer),
    )
    for text in (exported(store, "md"), exported(store, "html")):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "\n## #9 Max" not in exported(store, "md")
    assert Page(exported(store, "html")).tags <= OUR_TAGS
