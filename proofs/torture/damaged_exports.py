"""Damaged exports, snapshots and session files: refused in a sentence, or read as they were."""

import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import scratch

from bullpen.context.manager import ContextManager
from bullpen.context.snapshot import ContextSnapshot
from bullpen.errors import BullpenError
from bullpen.exchange import importing
from bullpen.exchange.files import write_export
from bullpen.exchange.importing import import_conversation, read_import
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, write_example

SIZES: dict[Size, int] = {"small": 300, "full": 10_000}
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e999,
    10**400,
    "",
    "x",
    [],
    {},
    [[]],
    "\ud83d",
    {"a": {}},
    "2025-11-27T10:30:00.000Z",
)


def run(size: Size, seed: int) -> Outcome:
    """Damage an export of ours, a snapshot and a session of agent-chatter, and import each."""
    failures: list[str] = []
    figures = dict.fromkeys(FIGURES, 0)
    chance = random.Random(seed)
    with scratch() as folder, SqliteStore(folder / "bullpen.db") as store:
        originals = originals_of(store)
        for number in range(SIZES[size]):
            name = chance.choice(list(originals))
            original = originals[name]
            way = chance.choice(WAYS)
            damaged = way(original, chance)
            result = examined(store, damaged, original, has_hashes=name == "export")
            if result in figures:
                figures[result] += 1
            else:
                failures.append(f"seed {seed}, file {number} ({name}, {way.__name__}): {result}")
        failures += [f"fsck after all imports: {finding}" for finding in store.fsck()]
    return Outcome(tried=SIZES[size], unit="damaged files", failures=tuple(failures), figures=figures)


def run_with_fault(seed: int) -> Outcome:
    """Do it with an import that does not look at the hashes of an export."""
    with no_hashes():
        return run("small", seed)


@contextmanager
def no_hashes() -> Iterator[None]:
    def unchecked(document: dict[str, Any]) -> None:
        """Check nothing."""

    real, importing._check_hashes = importing._check_hashes, unchecked
    try:
        yield
    finally:
        importing._check_hashes = real


def originals_of(store: SqliteStore) -> dict[str, bytes]:
    """Return the same conversation in each form."""
    write_example(store)
    file = io.StringIO()
    write_export(store, EXAMPLE_ID, file, "json")
    manager = ContextManager()
    messages = [stored.message for stored in store.messages(EXAMPLE_ID)]
    manager.import_snapshot(ContextSnapshot(messages=messages, team_task="Build the login.", timestamp=1))
    snapshot = manager.export_snapshot().to_json()
    session = {"schemaVersion": "1.0", "teamId": "builders", "createdAt": "2025-11-27T10:30:00.000Z"}
    return {
        "export": file.getvalue().encode(),
        "snapshot": snapshot,
        "session": json.dumps({**session, "context": json.loads(snapshot)}).encode(),
    }


FIGURES = (
    "refused in a sentence, and nothing left behind",
    "read, and no message is different",
    "read with a message that is different, from a format without checksums",
)


def examined(store: SqliteStore, damaged: bytes, original: bytes, *, has_hashes: bool) -> str:
    """Return what became of a damaged file: one of the figures, or the promise that was broken."""
    before = len(store.conversations())
    try:
        imported = read_import(damaged)
        conversation_id = import_conversation(store, imported, team="imported")
    except BullpenError as error:
        left = len(store.conversations()) - before
        return FIGURES[0] if not left and str(error) else f"{left} conversations were left behind by {error!r}"
    except Exception as error:
        return f"crashed with {type(error).__name__}: {error}"
    messages = [stored.message for stored in store.messages(conversation_id)]
    if messages != list(imported.messages):
        return "what was stored is not what was read"
    if len(store.conversations()) > 50:
        store.delete(conversation_id, at=1)
    if messages == list(read_import(original).messages):
        return FIGURES[1]
    return "a message is different, and was imported" if has_hashes else FIGURES[2]


def some_bytes(data: bytes, chance: random.Random) -> bytes:
    content = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        content[chance.randrange(len(content))] ^= chance.randint(1, 255)
    return bytes(content)


def other_letters(data: bytes, chance: random.Random) -> bytes:
    content = bytearray(data)
    letters = [place for place, byte in enumerate(content) if chr(byte).isalnum()]
    for _ in range(chance.choice((1, 1, 3))):
        content[chance.choice(letters)] = ord(chance.choice("abcxyzABC0159"))
    return bytes(content)


def a_part_missing(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice((1, 2, 10, 200)) :]


def a_part_twice(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    end = start + chance.choice((1, 2, 10, 200))
    return data[:end] + data[start:]


def cut_off(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def noise_inside(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    noise = (b"[" * 5000, b"\0" * 9, chance.randbytes(20), b"\\ud83d", b'{"a":' * 3000, b"9" * 5000, b"\xef\xbb\xbf")
    return data[:start] + chance.choice(noise) + data[start:]


def another_value(data: bytes, chance: random.Random) -> bytes:
    """Put something odd, or a value from elsewhere in the file, into one place of the document."""
    document = json.loads(data)
    places = list(places_in(document))
    holder, key = chance.choice(places)
    other, other_key = chance.choice(places)
    holder[key] = chance.choice(ODD) if chance.random() < 0.7 else other[other_key]
    try:
        return json.dumps(document, ensure_ascii=True).encode()
    except (ValueError, RecursionError):
        # A value inside itself.
        return data[:-2]


def a_field_gone(data: bytes, chance: random.Random) -> bytes:
    document = json.loads(data)
    holder, key = chance.choice(list(places_in(document)))
    del holder[key]
    return json.dumps(document).encode()


def messages_in_another_order(data: bytes, chance: random.Random) -> bytes:
    document = json.loads(data)
    chance.shuffle(document.get("messages") or document["context"]["messages"])
    return json.dumps(document).encode()


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a JSON document: what holds it, and its key."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places_in(value[key])


WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    some_bytes,
    other_letters,
    other_letters,
    a_part_missing,
    a_part_twice,
    cut_off,
    noise_inside,
    another_value,
    another_value,
    a_field_gone,
    messages_in_another_order,
)


TORTURE = Torture(
    name="damaged exports",
    does=(
        "An export of ours, a snapshot and a session file of agent-chatter are damaged and imported: changed "
        "bytes and letters, parts missing, doubled or out of order, noise, odd values of every type in every place."
    ),
    promise=(
        "a file is refused in a sentence and nothing of it is left, or it is stored as read, and `fsck` finds nothing; "
        "an export in which a message is different is always refused. Snapshots and session files have no checksums, "
        "so a changed letter in them cannot be told from what was said."
    ),
    run=run,
    fault="the import does not look at the hashes in an export.",
    seen_as="a message is different, and was imported",
    run_with_fault=run_with_fault,
    order=21,
)
