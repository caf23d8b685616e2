"""A scripted life of a store: everything that a conversation does to it, always the same for a seed."""

import hashlib
import random
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bullpen.context.prompt import AssemblerOutput
from bullpen.store.base import StateChange, Store, TurnEnd
from bullpen.store.packing import StreamPacker
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, KAI, MAX, OWNER, asked, dead, said
from bullpen.turn_events import Usage

DATABASE = "new/folder/bullpen.db"
FEW_PAGES = 8


class Session:
    """A store at work. Each step is one call that is acknowledged or not."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.chance = random.Random(seed)
        self.store: Store | None = None
        self.made = 0
        self.conversations: list[str] = []

    def next_step(self) -> Callable[[], object]:
        """Return what to do next. Nothing is done yet, and doing it again after it failed is the same."""
        if self.store is None:
            return self._open
        self.made += 1
        if not self.conversations or (self.made % 40 == 0 and len(self.conversations) < 3):
            return self._create(f"c{self.made}")
        roll = self.chance.random()
        if roll < 0.02 and len(self.conversations) > 1:
            return self._delete()
        if roll < 0.05:
            return self._close
        return self._talk(self.chance.choice(self.conversations))

    @property
    def open_store(self) -> Store:
        assert self.store is not None
        return self.store

    def _open(self) -> None:
        self.store = SqliteStore(self.path)

    def _close(self) -> None:
        self.open_store.close()
        self.store = None

    def _create(self, name: str) -> Callable[[], object]:
        def create() -> None:
            self.open_store.create(name, team="Builders", team_file="lead = 'max'\n" * 9, started_at=self.made)
            self.conversations.append(name)

        return create

    def _delete(self) -> Callable[[], object]:
        name, at = self.conversations[0], self.made

        def delete() -> None:
            self.open_store.delete(name, at=at, owner=self.open_store.conversation(name).owner)
            self.conversations.remove(name)

        return delete

    def _talk(self, conversation: str) -> Callable[[], object]:
        store, chance, at = self.open_store, self.chance, self.made
        if store.conversation(conversation).owner is None:
            return lambda: store.claim(conversation, OWNER, is_alive=dead)
        if chance.random() < 0.15:
            return lambda: store.release(conversation, OWNER)
        running, queued = store.running(conversation), store.queued(conversation)
        roll = chance.random()
        text = self._text()
        if running and roll < 0.7:
            turn_id = running[0].id
            stream = StreamPacker()
            stream.feed(text.encode())
            if roll < 0.1:
                failed = TurnEnd(turn_id=turn_id, state="failed", at=at, stream=stream.finish())
                return lambda: store.end_turn(conversation, failed, owner=OWNER)
            done = TurnEnd(
                turn_id=turn_id,
                state="done",
                at=at,
                usage=Usage(input_tokens=1),
                stream=stream.finish(),
                command=("a",),
            )
            reply = said(f"m{at}", text, speaker=MAX, at=at)
            turns = [asked(reply.id, "sarah")] if roll < 0.4 else []
            return lambda: store.append(conversation, reply, finishes=done, turns=turns, owner=OWNER)
        if queued and roll < 0.8:
            given = AssemblerOutput(prompt=text, system_flag=None, report=GIVEN.report)
            return lambda: store.start_turn(conversation, queued[0].id, owner=OWNER, given=given, at=at)
        if queued and roll < 0.85:
            return lambda: store.update(conversation, at=at, drops=[queued[-1].id], owner=OWNER)
        if roll < 0.9:
            change = StateChange(paused=text[:50], progress={"turns": at}, waits_for="kai")
            return lambda: store.update(conversation, at=at, change=change, owner=OWNER)
        message = said(f"m{at}", text, speaker=KAI, at=at)
        turns = [asked(message.id, member) for member in ("max", "sarah")[: chance.randint(0, 2)]]
        return lambda: store.append(conversation, message, turns=turns, owner=OWNER)

    def _text(self) -> str:
        size = self.chance.choice((20, 20, 200, 3000, 3000, 20_000))
        return self.chance.randbytes(size // 2).hex()


def picture_of(path: Path) -> str:
    """Return a hash over all that a store says about its conversations, or 'missing'."""
    if not path.exists():
        return "missing"
    with SqliteStore(path) as store:
        return state_of(store)


def state_of(store: Store) -> str:
    """Return a hash over all that an open store says."""
    parts = []
    for conversation in sorted(store.conversations(), key=lambda one: one.id):
        # Who owns it means nothing after a power cut, so that alone is not waited for.
        shown = replace(conversation, owner=None)
        parts.append(msgspec.json.encode((shown, store.messages(shown.id), store.turns(shown.id))))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def record(root: Path, log: Path, seed: int, steps: int, plant: str) -> None:
    """Live through a session behind the shim, and write an acknowledgement after each step between its own writes."""
    from proofs.torture.shim import Shim

    planted(plant)
    if seed % 2:
        begin_the_log_anew_often()
    shim = Shim()
    shim.watch(root)
    shim.record(log)
    session = Session(root / DATABASE, seed)
    with (root / "acknowledged").open("ab", buffering=0) as acknowledged:
        for _ in range(steps):
            session.next_step()()
            state = "closed" if session.store is None else state_of(session.store)
            acknowledged.write(f"{state}\n".encode())
    # Killed, not closed: a recording may end in the middle of everything.


def begin_the_log_anew_often() -> None:
    """Let SQLite put the log into the file every few pages, since what comes after that is dangerous."""
    from bullpen.store import database

    database.SETTINGS += f"PRAGMA wal_autocheckpoint = {FEW_PAGES};"
    database.FULL_SYNC = database.FULL_SYNC.replace("1000", str(FEW_PAGES))


def planted(fault: str) -> None:
    """Break the store in this process, to see whether the torture notices."""
    from bullpen.store import database, files

    match fault:
        case "commit before sync":
            database.SETTINGS = database.SETTINGS.replace("synchronous = FULL", "synchronous = OFF")
            database.FULL_SYNC = database.FULL_SYNC.replace("synchronous = FULL", "synchronous = OFF")
        case "log begun anew without sync":
            database.NORMAL_SYNC = database.NORMAL_SYNC.replace("synchronous = NORMAL", "synchronous = OFF")
        case "folder not synced":
            files.sync = _not_synced
        case "":
            return
        case _:
            raise ValueError(fault)


def _not_synced(path: Path) -> None:
    """Do not sync."""


if __name__ == "__main__":
    root_, log_, seed_, steps_, plant_ = sys.argv[1:]
    record(Path(root_), Path(log_), int(seed_), int(steps_), plant_)
