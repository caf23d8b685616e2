"""Damaged databases: bytes and pages changed behind our back; whatever is different in a message must be found."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection

from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.session import state_of
from proofs.torture.shim import scratch

from bullpen.errors import BullpenError
from bullpen.messages import ConversationMessage
from bullpen.store import fsck, message_rows, search
from bullpen.store.base import StateChange, StoredMessage, TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, MAX, OWNER, alive, asked, begin, said

SIZES: dict[Size, int] = {"small": 200, "full": 10_000}
WITH_FAULT = 1_000
"""Of so many copies, about three are such that only a hash tells."""
PAGE = 4096
UNIT = "damaged databases"

Files = dict[str, bytes]
Messages = dict[str, list[ConversationMessage]]


def run(size: Size, seed: int) -> Outcome:
    """Damage copies of two databases: one that was closed, and one whose process was killed, with its log."""
    return _damaged(SIZES[size], seed)


def _damaged(copies: int, seed: int) -> Outcome:
    failures: list[str] = []
    figures = {"refused when opened": 0, "found by fsck": 0, "no message is different, and nothing found": 0}
    figures |= {"of these, something else than a message is different": 0}
    with scratch() as folder:
        originals = [closed(folder / "a"), killed(folder / "b")]
        chance = random.Random(seed)
        for number in range(copies):
            original = chance.choices(originals, (3, 1))[0]
            how, damaged = damage(original.files, chance)
            result = examined(folder / "copy", damaged, original, read_first=chance.random() < 0.5)
            if result in figures:
                figures[result] += 1
            elif result == "something else":
                figures["no message is different, and nothing found"] += 1
                figures["of these, something else than a message is different"] += 1
            else:
                failures.append(f"seed {seed}, copy {number} ({how}): {result}")
    return Outcome(tried=copies, unit=UNIT, failures=tuple(failures), figures=figures)


def run_with_fault(seed: int) -> Outcome:
    """Do it with a store that does not compare hashes."""
    with no_hashes():
        return _damaged(WITH_FAULT, seed)


@contextmanager
def no_hashes() -> Iterator[None]:
    """Let every hash fit."""

    def no_problem(row: message_rows.Row, previous: object) -> str:
        return ""

    def unchecked(db: Connection, conversation: int, rows: Iterable[message_rows.Row]) -> Iterator[StoredMessage]:
        return map(message_rows.stored_message, rows)

    real = fsck._problem, message_rows.checked
    fsck._problem, message_rows.checked = no_problem, unchecked
    try:
        yield
    finally:
        fsck._problem, message_rows.checked = real


class Original:
    """A database as it was, and what it says."""

    def __init__(self, path: Path, files: Files) -> None:
        self.files = files
        with SqliteStore(path) as store:
            self.messages = messages_of(store)
            self.state = state_of(store)


def closed(folder: Path) -> Original:
    """Make a database that was closed, so that all is in one file."""
    path = folder / "bullpen.db"
    with SqliteStore(path) as store:
        fill(store, 60)
    return Original(path, {path.name: path.read_bytes()})


def killed(folder: Path) -> Original:
    """Make a database whose process was killed, so that its last messages are in the log."""
    path = folder / "bullpen.db"
    with SqliteStore(path) as store:
        fill(store, 20)
    with SqliteStore(path) as store:
        for number in range(100, 120):
            store.append("c0", said(f"m{number}", f"in the log {number} " * 9))
        files = {file.name: file.read_bytes() for file in folder.iterdir()}
    return Original(path, files)


def fill(store: SqliteStore, messages: int) -> None:
    """Write conversations with short and long messages, and a few turns."""
    most_waiting, search.MOST_WAITING = search.MOST_WAITING, 8
    for number in range(3):
        name = f"c{number}"
        begin(store, name)
        store.claim(name, OWNER, is_alive=alive)
        for count in range(messages):
            text = f"short {count}" if count % 3 else f"Something longer, 你好, number {count}. " * (count % 7 + 2)
            store.append(
                name, said(f"m{count}", text), turns=[asked(f"m{count}")] if count % 10 == 0 else [], owner=OWNER
            )
            if count % 10 == 0:
                store.start_turn(name, f"m{count}-max", owner=OWNER, given=GIVEN, at=1)
                end = TurnEnd(turn_id=f"m{count}-max", state="done", at=2)
                store.append(name, said(f"r{count}", "because", speaker=MAX), finishes=end, owner=OWNER)
        store.update(name, at=3, change=StateChange(team_task="Build it.", waits_for="kai"), owner=OWNER)
        store.release(name, OWNER)
    search.MOST_WAITING = most_waiting


def messages_of(store: SqliteStore) -> Messages:
    return {
        conversation.id: [stored.message for stored in store.messages(conversation.id)]
        for conversation in store.conversations()
    }


def damage(files: Files, chance: random.Random) -> tuple[str, Files]:
    """Return how files were damaged, and the damaged files. The index of a log is no data, and left alone."""
    name = chance.choice([name for name in files if not name.endswith("-shm")])
    content = bytearray(files[name])
    way = chance.choice(WAYS)
    way(content, chance)
    return f"{name} {way.__name__}", {**files, name: bytes(content)}


def some_bytes(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        content[chance.randrange(len(content))] ^= chance.randint(1, 255)


def one_bit(content: bytearray, chance: random.Random) -> None:
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def a_block(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    size = min(chance.choice((4, 16, 64, 512)), len(content) - start)
    content[start : start + size] = chance.choice((bytes(size), chance.randbytes(size), b"\xff" * size))


def a_zeroed_page(content: bytearray, chance: random.Random) -> None:
    start = _page(content, chance)
    content[start : start + PAGE] = bytes(len(content[start : start + PAGE]))


def a_page_twice(content: bytearray, chance: random.Random) -> None:
    to, source = _page(content, chance), _page(content, chance)
    size = min(len(content) - to, len(content) - source, PAGE)
    content[to : to + size] = content[source : source + size]


def swapped_pages(content: bytearray, chance: random.Random) -> None:
    one, other = _page(content, chance), _page(content, chance)
    size = min(len(content) - one, len(content) - other, PAGE)
    pages = content[one : one + size], content[other : other + size]
    content[other : other + size], content[one : one + size] = pages


def cut_off(content: bytearray, chance: random.Random) -> None:
    size = chance.randrange(len(content))
    del content[chance.choice((0, size, size, size // PAGE * PAGE)) :]


def longer(content: bytearray, chance: random.Random) -> None:
    content += chance.choice((bytes(PAGE), chance.randbytes(chance.randint(1, 2 * PAGE))))


def _page(content: bytearray, chance: random.Random) -> int:
    return chance.randrange(len(content)) // PAGE * PAGE


WAYS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    some_bytes,
    some_bytes,
    one_bit,
    one_bit,
    a_block,
    a_zeroed_page,
    a_page_twice,
    swapped_pages,
    cut_off,
    longer,
)


def examined(folder: Path, files: Files, original: Original, *, read_first: bool) -> str:
    """Return what became of a damaged copy: one of the figures, or the promise that was broken."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        result = looked_at(folder / "bullpen.db", original, read_first=read_first)
    except Exception as error:
        return f"crashed with {type(error).__name__}: {error}"
    # Closing a sound file puts its log into it; nothing else may change it, and a damaged one is left alone.
    may_write = len(files) > 1 and result in ("no message is different, and nothing found", "something else")
    for name, content in files.items():
        path = folder / name
        if not name.endswith("-shm") and not may_write and (not path.exists() or path.read_bytes() != content):
            return f"{name} was changed by looking at it ({result})"
    return result


def looked_at(path: Path, original: Original, *, read_first: bool) -> str:
    try:
        store = SqliteStore(path)
    except BullpenError:
        return "refused when opened"
    with store:
        if read_first and (lie := read_everything(store, original)):
            return lie
        try:
            findings = store.fsck()
        except BullpenError:
            return "found by fsck"
        if lie := read_everything(store, original):
            return lie
        if findings:
            return "found by fsck"
        if messages_of(store) != original.messages:
            return "messages are different, and fsck found nothing"
        return "no message is different, and nothing found" if state_of(store) == original.state else "something else"


def read_everything(store: SqliteStore, original: Original) -> str:
    """Return which message was given out as if it were whole and is not, if any. What cannot be read may be refused."""
    for name, messages in original.messages.items():
        try:
            read = [stored.message for stored in store.messages(name)]
        except BullpenError:
            continue
        if read != messages:
            return f"{name} was read without an error, and its messages are others"
    for look in LOOKS:
        try:
            look(store)
        except BullpenError:
            continue
    return ""


LOOKS: tuple[Callable[[SqliteStore], object], ...] = (
    lambda store: store.conversations(),
    lambda store: store.turns("c1"),
    lambda store: store.queued("c1"),
    lambda store: store.record("c1", "m0-max"),
    lambda store: store.message("c1", "m7"),
    lambda store: store.search("longer number"),
)


TORTURE = Torture(
    name="damaged databases",
    does=(
        "Copies of a closed database, and of one whose process was killed with its log, are damaged: flipped bits and "
        "bytes, blocks of zeros or noise, pages zeroed, doubled or swapped, files longer or cut off, also to nothing. "
        "Each is opened, read in every way and checked."
    ),
    promise=(
        "whenever a message is different, missing or doubled, opening or `fsck` says so; no changed message is ever "
        "given out as whole; nothing but a sentence for people is raised; and the damaged file and its log are not "
        "changed by a byte."
    ),
    run=run,
    fault="the store no longer compares the hashes of messages.",
    seen_as="was read without an error, and its messages are others",
    run_with_fault=run_with_fault,
    order=20,
)
