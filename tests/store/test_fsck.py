"""Whatever is changed behind our back is found, and named."""

import shutil
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullpen.errors import NotTheOwner, StoreDamaged, UnknownConversation
from bullpen.messages import ConversationMessage, Routing
from bullpen.store import search
from bullpen.store.base import Finding, FindingKind, StateChange, TurnEnd
from bullpen.store.chain import first_link, next_link
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, KAI, MAX, OWNER, alive, asked, begin, said


@pytest.fixture
def path(tmp_path: Path, original: Path) -> Path:
    """Give a file with two conversations, and a turn of every kind in the first."""
    return Path(shutil.copy2(original, tmp_path))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "bullpen.db"
    with pytest.MonkeyPatch.context() as patch, SqliteStore(path) as store:
        patch.setattr(search, "MOST_WAITING", 4)
        begin(store, "c")
        begin(store, "d")
        store.append("d", said("m1", "untouched"))
        store.claim("c", OWNER, is_alive=alive)
        routing = Routing(resolved_addressees=("Max",), parent_message_id="m0", intent="P1")
        for number in range(1, 6):
            content = "short" if number == 2 else f"Something longer, 你好, that gets compressed. {number}" * 4
            message = ConversationMessage(
                id=f"m{number}", content=content, speaker=KAI, timestamp=number, routing=routing if number > 2 else None
            )
            store.append("c", message, turns=[asked(f"m{number}")], owner=OWNER)
            if number > 1:
                store.start_turn("c", f"m{number}-max", owner=OWNER, given=GIVEN, at=10)
        store.append(
            "c", said("reply", speaker=MAX), finishes=TurnEnd(turn_id="m2-max", state="done", at=20), owner=OWNER
        )
        store.end_turn("c", TurnEnd(turn_id="m3-max", state="failed", at=20), owner=OWNER)
        store.update("c", at=30, turns=[asked("m5", "sarah")], owner=OWNER)
        store.update("c", at=30, drops=["m5-sarah"], owner=OWNER)
    return path


def tamper(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA ignore_check_constraints = ON")
    for statement in statements:
        db.execute(statement)
    db.close()


def findings(path: Path) -> list[Finding]:
    before = path.read_bytes()
    with SqliteStore(path) as store:
        found = store.fsck()
        about_c = [finding for finding in found if finding.conversation_id == "c"]
        assert store.fsck("c") == about_c
        assert store.fsck("d") == []
    assert path.read_bytes() == before
    return about_c


def kinds(path: Path) -> list[FindingKind]:
    return [finding.kind for finding in findings(path)]


def test_what_was_not_changed_is_sound(path: Path) -> None:
    assert findings(path) == []


@pytest.mark.parametrize(
    "change",
    [
        "content = 'Short'",
        "content = content || ' '",
        "content = ''",
        "id = 'm22'",
        "timestamp = timestamp + 1",
        "routing = '[[],[],[],null,null]'",
        "routing = 'nonsense'",
        "speaker = (SELECT number FROM speakers WHERE speaker LIKE '%Max%')",
        "content = 7",
        "content = CAST(content AS BLOB)",
        "content = CAST(x'73ff' AS TEXT)",
        "id = CAST(x'73ff' AS TEXT)",
    ],
)
def test_a_changed_message_is_found(path: Path, change: str) -> None:
    tamper(path, f"UPDATE messages SET {change} WHERE conversation = 1 AND sequence = 2")

    assert kinds(path) == ["changed"]


def test_a_finding_says_what_and_where(path: Path) -> None:
    tamper(path, "UPDATE messages SET content = 'Short' WHERE id = 'm2'")

    text = "message 'm2' has changed since it was stored: its hash does not match"
    assert findings(path) == [Finding(kind="changed", conversation_id="c", text=text)]


def test_damage_that_was_found_ends_all_writing(path: Path) -> None:
    tamper(path, "UPDATE messages SET content = 'Short' WHERE id = 'm2'")

    with SqliteStore(path) as store:
        store.fsck("d")
        store.append("d", said("m2"))
        store.fsck("c")
        with pytest.raises(StoreDamaged):
            store.append("d", said("m3"))


@pytest.mark.parametrize("change", ["team = 'Others'", "team_file = x'00'", "started_at = 1", "id = 'c '"])
def test_a_changed_beginning_is_found(path: Path, change: str) -> None:
    tamper(path, f"UPDATE conversations SET {change} WHERE id = 'c'")

    with SqliteStore(path) as store:
        assert [finding.kind for finding in store.fsck()] == ["changed"]


def test_a_changed_speaker_is_found_in_every_message(path: Path) -> None:
    tamper(path, "UPDATE speakers SET speaker = replace(speaker, 'Kai', 'Cai') WHERE conversation = 1")

    assert kinds(path) == ["changed"] * 5


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=st.sampled_from([1, 3, 4, 5]), place=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_any_changed_byte_of_a_message_is_found(path: Path, sequence: int, place: int, flip: int) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    key = (sequence,)
    ((content,),) = db.execute("SELECT content FROM messages WHERE conversation = 1 AND sequence = ?", key)
    changed = bytearray(content)
    changed[place % len(changed)] ^= flip
    update = "UPDATE messages SET content = ? WHERE conversation = 1 AND sequence = ?"
    db.execute(update, (bytes(changed), sequence))
    with SqliteStore(path) as store:
        found = [finding.kind for finding in store.fsck("c")]
        with pytest.raises(StoreDamaged):
            store.messages("c")
    db.execute(update, (content, sequence))
    db.close()

    assert found == ["changed"]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["DELETE FROM messages WHERE id = 'm3'"], ["missing"]),
        (["DELETE FROM messages WHERE id = 'reply'"], ["missing", "turn"]),
        (["DELETE FROM messages WHERE id = 'm1' AND conversation = 1"], ["missing"]),
        (["UPDATE states SET messages = 7 WHERE conversation = 1"], ["missing"]),
        (["UPDATE states SET head = x'00' WHERE conversation = 1"], ["missing"]),
        (["DELETE FROM states WHERE conversation = 1"], ["missing"]),
    ],
)
def test_what_is_missing_is_found(path: Path, statements: list[str], expected: list[FindingKind]) -> None:
    tamper(path, *statements)

    assert set(kinds(path)) <= set(expected)
    assert kinds(path)[0] == "missing"


def test_messages_that_changed_places_are_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE messages SET sequence = 100 WHERE conversation = 1 AND sequence = 3",
        "UPDATE messages SET sequence = 3 WHERE conversation = 1 AND sequence = 4",
        "UPDATE messages SET sequence = 4 WHERE conversation = 1 AND sequence = 100",
    )

    assert kinds(path) == ["changed", "changed", "changed", "out_of_order"]


@pytest.mark.parametrize(
    "change",
    [
        "state = 'finished'",
        "state = 'queued'",
        "state = 'done'",
        "state = 'dropped'",
        "started_at = NULL",
        "ended_at = NULL",
        "owner = NULL",
        "reply = 3",
        "asked_by = 0",
        "asked_by = 99",
    ],
)
def test_a_turn_in_an_impossible_state_is_found(path: Path, change: str) -> None:
    tamper(path, f"UPDATE turns SET {change} WHERE id = 'm3-max'")

    assert kinds(path) == ["turn"]


@pytest.mark.parametrize("reply", [0, 1, 2, 99])
def test_a_reply_that_does_not_come_after_what_asked_for_it_is_found(path: Path, reply: int) -> None:
    tamper(path, f"UPDATE turns SET reply = {reply} WHERE id = 'm2-max'")

    assert kinds(path) == ["turn"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE prompts SET prompt = CAST(substr(prompt, 1, 5) || x'00' || substr(prompt, 7) AS BLOB)",
        "UPDATE prompts SET prompt = CAST(prompt AS TEXT)",
        "UPDATE prompts SET system = x''",
        "UPDATE prompts SET report = 'text'",
        "UPDATE streams SET command = substr(command, 2)",
        "UPDATE streams SET stream = x'00000000'",
    ],
)
def test_a_record_that_cannot_be_read_is_found(path: Path, statement: str) -> None:
    tamper(path, f"{statement} WHERE turn = (SELECT number FROM turns WHERE id = 'm3-max')")

    assert kinds(path) == ["record"]
    with SqliteStore(path) as store, pytest.raises(StoreDamaged):
        store.record("c", "m3-max")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE states SET owner = replace(owner, 'boot_id', 'root_id') WHERE conversation = 1",
        "UPDATE states SET owner = CAST(x'7bff7d' AS TEXT) WHERE conversation = 1",
        "UPDATE states SET progress = '{' WHERE conversation = 1",
        "UPDATE states SET last_at = 'today' WHERE conversation = 1",
        "UPDATE turns SET intent = 'high' WHERE id = 'm3-max'",
        "UPDATE turns SET member = CAST(x'ff' AS TEXT) WHERE id = 'm3-max'",
    ],
)
def test_a_state_that_cannot_be_read_is_found(path: Path, statement: str) -> None:
    tamper(path, statement)

    with SqliteStore(path) as store:
        assert {finding.kind for finding in store.fsck("c")} <= {"record", "file"}
        assert store.fsck("c") != []
        with pytest.raises(StoreDamaged):
            (store.conversations(), store.turns("c"))


def test_a_damaged_index_is_found(path: Path) -> None:
    tamper(path, "UPDATE said_data SET block = zeroblob(100) WHERE id > 1000")

    with SqliteStore(path) as store:
        assert [finding.kind for finding in store.fsck()] == ["index"]


def test_an_index_that_would_leave_messages_out_is_found(path: Path) -> None:
    tamper(path, "UPDATE indexed SET number = 1000")

    with SqliteStore(path) as store:
        assert [finding.kind for finding in store.fsck()] == ["index"]


def test_an_unknown_conversation_is_not_sound(path: Path) -> None:
    with SqliteStore(path) as store, pytest.raises(UnknownConversation):
        store.fsck("nowhere")


def steps() -> Iterator[bytes]:
    """Yield the chain of two messages, computed as chain.py says that any program can."""
    link = sha256(b'["c","Builders",5]\nlead = "max"\n').digest()
    yield link
    link = sha256(link + '[1,"m1",100,["kai","Kai","human",null],null]\nhello 你好\n'.encode()).digest()
    yield link
    line = '[2,"m2",101,["max","Max","ai","Architect"],[["Ana \\"A\\""],["a\\n"],[],"m1",null]]\nyes'
    yield sha256(link + line.encode()).digest()


def test_the_chain_is_what_it_says_it_is() -> None:
    routing = Routing(resolved_addressees=('Ana "A"',), raw_next_markers=("a\n",), parent_message_id="m1")
    first = first_link("c", "Builders", 'lead = "max"\n', 5)
    second = next_link(first, 1, said("m1", "hello 你好\n"))
    reply = ConversationMessage(id="m2", content="yes", speaker=MAX, timestamp=101, routing=routing)

    assert [first, second, next_link(second, 2, reply)] == list(steps())


STUCK = {
    "turns_made": ("1", "its next turn would get a number that is taken, for there are turns up to 12"),
    "message_number": ("3", "its next message would get an id that is taken, for there is msg-7"),
    "undecided": ('["m3-max", "12", "m4-max", "gone"]', "turn '12' waits for a decision, but there is nothing to"),
}


@pytest.mark.parametrize("field", STUCK)
def test_a_conversation_that_is_stuck_is_found_and_mended(path: Path, field: str) -> None:
    """Two owners of an earlier bullpen left it: one of them wrote what it remembered over what the other did."""
    value, problem = STUCK[field]
    with SqliteStore(path) as store:
        store.append("c", said("msg-7"), turns=[asked("msg-7", turn_id="12")], owner=OWNER)
        store.update("c", at=40, change=StateChange(progress={"turns_made": 12, "message_number": 7}), owner=OWNER)
        assert store.fsck() == []
    change = f"json_set(progress, '$.{field}', json('{value}'), '$.since', 4)"
    tamper(path, f"UPDATE states SET progress = {change} WHERE conversation = 1")

    with SqliteStore(path) as store:
        found = store.fsck()
        before = store.messages("c"), store.turns("c")
        assert {finding.kind for finding in found} == {"stuck"}
        assert found[0].text.startswith(problem)
        assert len(found) == (2 if field == "undecided" else 1)
        with pytest.raises(NotTheOwner):
            store.repair("c")
        assert store.fsck() == found
        assert store.repair("c", owner=OWNER) == found
        assert store.fsck() == store.repair("c", owner=OWNER) == []
        expected = {"turns_made": 12, "message_number": 7, "since": 4}
        # What can be decided still waits: m3 failed, and m4 runs.
        decisions = {"undecided": ["m3-max", "m4-max"]} if field == "undecided" else {}
        assert store.conversation("c").progress == expected | decisions
        assert (store.messages("c"), store.turns("c")) == before


def test_what_is_damaged_is_not_mended(path: Path) -> None:
    tamper(
        path,
        'UPDATE states SET progress = \'{"message_number": 3, "turns_made": 1, "undecided": ["gone"]}\'',
        "UPDATE messages SET content = 'x' WHERE sequence = 2",
    )
    with SqliteStore(path) as store:
        assert {finding.kind for finding in store.fsck("c")} == {"changed"}
        assert store.repair("c", owner=OWNER) == []


def test_what_is_remembered_and_cannot_be_read_is_found(path: Path) -> None:
    tamper(path, 'UPDATE states SET progress = \'{"turns_made": "many"}\' WHERE conversation = 1')
    with SqliteStore(path) as store:
        assert [finding.kind for finding in store.fsck("c")] == ["record"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM messages WHERE conversation = 1 AND sequence = 2",
        "UPDATE messages SET hash = 'text' WHERE conversation = 1 AND sequence = 2",
    ],
)
def test_a_message_whose_predecessor_is_missing_is_not_read(path: Path, statement: str) -> None:
    tamper(path, "PRAGMA foreign_keys = OFF", statement)
    with SqliteStore(path) as store, pytest.raises(StoreDamaged, match="the message before message 3 is missing"):
        store.messages("c", after=2, limit=1)
