"""Two processes want one conversation: one owns it, the other one writes nothing, and each turn runs once."""

import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from msgspec import Struct
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import scratch
from proofs.torture.together import Tell, together

from bullpen.conversation.owner import is_alive, owned, this_process
from bullpen.errors import ConversationInUse, NotTheOwner, StoreConflict, StoreFull, UnknownConversation
from bullpen.store import conversation_rows, sqlite
from bullpen.store.base import IsAlive, Owner, StateChange, Store, Turn, TurnEnd
from bullpen.store.conversation_rows import Place
from bullpen.store.owner_locks import OwnerLocks
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, MAX, asked, begin, dead, said

RACES: dict[Size, int] = {"small": 12, "full": 500}
TAKEOVERS: dict[Size, int] = {"small": 8, "full": 1_000}
RELEASES: dict[Size, int] = {"small": 6, "full": 200}
ROUNDS_WITH_FAULT = 6
TURNS = 5
TURN_IDS = [f"m{number}-max" for number in range(TURNS)]
# Short, and long enough that a kill hits some turns.
WORK_SECONDS = 0.005
WORDS = 4
WAIT_SECONDS = 60
FINAL = {"done", "interrupted"}
FENCED = (
    "append",
    "update",
    "start_turn",
    "end_turn",
    "keep_output",
    "requeue",
    "reorder",
    "recover",
    "beat",
    "delete",
)
"""The methods of a store that only an owner may use."""


def run(size: Size, seed: int) -> Outcome:
    """Let two processes race for each conversation, and let one take each other conversation from a living owner."""
    chance, figures = random.Random(seed), Counter[str]()
    failures: list[str] = []
    with scratch() as folder:
        for number in range(RACES[size]):
            failures += [f"seed {seed}, race {number}: {broken}" for broken in race(folder, number, chance, figures)]
        for number in range(TAKEOVERS[size]):
            broken = takeover(folder, number, chance, figures)
            failures += [f"seed {seed}, takeover {number}: {sentence}" for sentence in broken]
        for number in range(RELEASES[size]):
            broken = release(folder, number, chance, figures)
            failures += [f"seed {seed}, release {number}: {sentence}" for sentence in broken]
    tried = RACES[size] + TAKEOVERS[size] + RELEASES[size]
    return Outcome(tried=tried, unit="rounds of two owners", failures=tuple(failures), figures=dict(figures))


# Races: both claim it at the same moment.


def race(folder: Path, number: int, chance: random.Random, figures: Counter[str]) -> list[str]:
    """Let two processes race for a conversation, often kill the first, and let two more race for what is left."""
    path, name = folder / "races.db", f"c{number}"
    prepare(path, name)
    kill_after = chance.uniform(0.0, 0.15) if chance.random() < 0.5 else None
    # One that waits for a killed one would wait for ever.
    finish = get_context("fork").Barrier(2, timeout=WAIT_SECONDS) if kill_after is None else None
    told = together([racer(path, name, f"{number}-{who}", finish) for who in "ab"], kill_after)
    if kill_after is not None:
        figures["processes killed"] += 1
        finish = get_context("fork").Barrier(2, timeout=WAIT_SECONDS)
        told += together([racer(path, name, f"{number}-{who}", finish) for who in "cd"])
    return list(checked(path, name, told, figures))


def prepare(path: Path, name: str) -> None:
    """Begin a conversation in which some turns wait."""
    with SqliteStore(path) as store:
        begin(store, name)
        for turn in range(TURNS):
            store.append(name, said(f"m{turn}"), turns=[asked(f"m{turn}")])


def racer(path: Path, name: str, who: str, finish: Barrier | None) -> Callable[[Tell], None]:
    """Return what one process does: claim, and then run what it can and speak, whether it may or not."""

    def race(tell: Tell) -> None:
        with SqliteStore(path) as store:
            try:
                take_part(store, tell)
            finally:
                # Whoever closes its store lets the other win, which would be no race.
                if finish:
                    finish.wait()

    def take_part(store: SqliteStore, tell: Tell) -> None:
        owner = this_process()
        won = store.claim(name, owner, is_alive=partial(is_alive, store=store))
        tell(("won" if won else "lost", who))
        if won:
            tell(("interrupted", [turn.id for turn in store.recover(name, at=1, owner=owner)]))
        # All of them, also those that somebody else has begun.
        for turn_id in TURN_IDS:
            with suppress(StoreConflict):
                store.start_turn(name, turn_id, owner=owner, given=GIVEN, at=1)
                tell(("started", turn_id))
                time.sleep(WORK_SECONDS)
                end = TurnEnd(turn_id=turn_id, state="done", at=2)
                store.append(name, said(f"{who}-{turn_id}", speaker=MAX), finishes=end, owner=owner)
                tell(("said", f"{who}-{turn_id}"))
        for word in range(WORDS):
            with suppress(StoreConflict):
                store.append(name, said(f"{who}-{word}"), owner=owner)
                tell(("said", f"{who}-{word}"))

    return race


def checked(path: Path, name: str, told: list[list[Any]], figures: Counter[str]) -> Iterator[str]:
    """Yield what is wrong after a race."""
    lines = [line for process in told for line in process]
    of = {kind: [value for key, value in lines if key == kind] for kind in ("started", "said", "crashed")}
    with SqliteStore(path) as store:
        stored = [one.message.id for one in store.messages(name)]
        sequences = [one.sequence for one in store.messages(name)]
        states = {turn.id: turn.state for turn in store.turns(name)}
        findings = store.fsck(name)
    figures.update({"turns started": len(of["started"]), "messages acknowledged": len(of["said"])})
    figures["turns interrupted"] += sum(state == "interrupted" for state in states.values())
    yield from (f"crashed: {crash}" for crash in of["crashed"])
    yield from (f"{finding}" for finding in findings)
    # Whoever races with one that is killed may rightly own it after him; those who come later may not both.
    race = told if len(told) == 2 else told[2:]
    winners = [who for process in race for kind, who in process if kind == "won"]
    if len(winners) != 1:
        yield f"{len(winners)} of two processes own it"
    for process in told:
        if not any(kind == "won" for kind, _ in process):
            yield from (f"the loser wrote: {kind} {what}" for kind, what in process if kind in ("said", "started"))
    yield from (f"turn {turn} was started {count} times" for turn, count in Counter(of["started"]).items() if count > 1)
    yield from (f"{message} is lost" for message in of["said"] if message not in stored)
    if len(set(stored)) != len(stored) or sequences != list(range(1, len(stored) + 1)):
        yield "a message is doubled or out of place"
    if not set(states.values()) <= FINAL:
        yield f"a turn has not ended: {states}"


# Takeovers: one takes it from a living owner that it cannot see, as on another machine.


class Signs(Struct):
    """What the two processes of a takeover wait for."""

    owned: Event
    taken: Event
    swept: Event
    runs: Event
    swept_again: Event


def takeover(folder: Path, number: int, chance: random.Random, figures: Counter[str]) -> list[str]:
    """Let one process write without pause, and another take the conversation from it; often it is stopped by then."""
    path, name = folder / "takeovers.db", f"c{number}"
    prepare(path, name)
    event = get_context("fork").Event
    signs = Signs(event(), event(), event(), event(), event())
    is_stopped = chance.random() < 0.5
    after = chance.uniform(0.0, 0.03)
    told = together([loser(path, name, number, signs), taker(path, name, signs, after, is_stopped=is_stopped)])
    figures["owners stopped meanwhile"] += is_stopped
    figures["writes before"] += sum(kind == "wrote" for kind, _ in told[0])
    figures["writes refused after"] += sum(kind == "refused" for kind, _ in told[0])
    return list(robbed(path, name, told))


def loser(path: Path, name: str, seed: int, signs: Signs) -> Callable[[Tell], None]:
    """Return what the first owner does: everything an owner can do, until long after it is none any more."""

    def lose(tell: Tell) -> None:
        try:
            write_on(tell)
        finally:
            for sign in (signs.owned, signs.swept, signs.swept_again):
                sign.set()

    def write_on(tell: Tell) -> None:
        chance, owner = random.Random(seed), this_process()
        with SqliteStore(path) as store:
            assert store.claim(name, owner, is_alive=dead)
            signs.owned.set()
            attempts = writes(store, name, owner)
            deadline = time.monotonic() + WAIT_SECONDS
            while not signs.taken.is_set() and time.monotonic() < deadline:
                attempt(tell, *chance.choice(list(attempts.items())))
            for is_sign, sign in ((signs.taken, signs.swept), (signs.runs, signs.swept_again)):
                assert is_sign.wait(WAIT_SECONDS)
                for kind, write in attempts.items():
                    attempt(tell, kind, write)
                # Not before, for then it may.
                attempt(tell, "delete", lambda: store.delete(name, at=1, owner=owner))
                sign.set()
            store.release(name, owner)

    return lose


def attempt(tell: Tell, kind: str, write: Callable[[], object]) -> None:
    """Write something, and tell when that began, if it was done."""
    began = time.monotonic()
    try:
        result = write()
    except NotTheOwner:
        tell(("refused", kind))
    except (StoreConflict, LookupError):
        # There is no such turn now.
        pass
    else:
        tell(("wrote", (kind, began)))
        if kind == "start" and isinstance(result, Turn):
            tell(("started", result.id))


def writes(store: Store, name: str, owner: Owner) -> dict[str, Callable[[], object]]:
    """Return everything that an owner can do, so that it would have an effect if nothing stopped it."""
    count = iter(range(10**9))

    def running() -> str:
        return store.running(name)[0].id

    def start() -> object:
        return store.start_turn(name, store.queued(name)[0].id, owner=owner, given=GIVEN, at=1)

    def reply() -> object:
        end = TurnEnd(turn_id=running(), state="done", at=2)
        return store.append(name, said(f"reply {next(count)}", speaker=MAX), finishes=end, owner=owner)

    def retry() -> object:
        ended = {turn.id for turn in store.turns(name) if turn.state in ("failed", "interrupted")}
        left = ended - {turn.retry_of for turn in store.turns(name)}
        return store.requeue(
            name, min(left, default=""), asked("m0", turn_id=f"again {next(count)}"), at=1, owner=owner
        )

    def ask() -> object:
        number = next(count)
        return store.append(name, said(f"ask {number}"), turns=[asked(f"ask {number}")], owner=owner)

    def change() -> None:
        store.update(name, at=1, change=StateChange(paused=f"change {next(count)}"), owner=owner)

    return {
        "ask": ask,
        "start": start,
        "reply": reply,
        "change": change,
        "fail": lambda: store.end_turn(name, TurnEnd(turn_id=running(), state="failed", at=2), owner=owner),
        "retry": retry,
        "reorder": lambda: store.reorder(name, [turn.id for turn in store.queued(name)][-1:], owner=owner),
        "output": lambda: store.keep_output(name, running(), b"more", owner=owner),
        "recover": lambda: store.recover(name, at=3, owner=owner),
        "beat": lambda: store.beat(name, owner, at=next(count)),
    }


def taker(path: Path, name: str, signs: Signs, after: float, *, is_stopped: bool) -> Callable[[Tell], None]:
    """Return what the second owner does: take it, and look whether anything changes that it did not do."""

    def take(tell: Tell) -> None:
        try:
            take_and_look(tell)
        finally:
            for sign in (signs.taken, signs.runs):
                sign.set()

    def take_and_look(tell: Tell) -> None:
        assert signs.owned.wait(WAIT_SECONDS)
        time.sleep(after)
        owner = this_process()
        with SqliteStore(path) as store:
            first = store.conversation(name).owner
            assert first is not None
            with stopped(path, first.pid) if is_stopped else nullcontext():
                # Whoever is seen between our look and our claim is alive, so it takes some tries.
                while not store.claim(name, owner, is_alive=dead):
                    pass
                tell(("owns", time.monotonic()))
                before = picture(store, name)
            signs.taken.set()
            assert signs.swept.wait(WAIT_SECONDS)
            tell(("changed", difference(before, picture(store, name))))
            store.recover(name, at=5, owner=owner)
            store.append(name, said("new"), turns=[asked("new"), asked("new", "sarah")], owner=owner)
            for turn in store.queued(name)[:-1]:
                store.start_turn(name, turn.id, owner=owner, given=GIVEN, at=6)
                tell(("started", turn.id))
            before = picture(store, name)
            signs.runs.set()
            assert signs.swept_again.wait(WAIT_SECONDS)
            time.sleep(0.001)
            tell(("changed", difference(before, picture(store, name))))
            store.append(name, said("still ours"), owner=owner)

    return take


@contextmanager
def stopped(path: Path, pid: int) -> Iterator[None]:
    """Stop a process, but not while it writes: then nobody else can."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db, suppress(sqlite3.OperationalError):
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
            break
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.0005)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def picture(store: Store, name: str) -> dict[str, object]:
    """Return all that a store says about a conversation."""
    turns = store.turns(name)
    outputs = [store.record(name, turn.id) for turn in turns]
    queue = [turn.id for turn in store.queued(name)]
    about = store.conversation(name)
    return {"state": about, "messages": store.messages(name), "turns": turns, "queue": queue, "outputs": outputs}


def difference(before: dict[str, object], after: dict[str, object]) -> list[str]:
    """Return which parts of two pictures differ."""
    return [part for part in before if before[part] != after[part]]


def robbed(path: Path, name: str, told: list[list[Any]]) -> Iterator[str]:
    """Yield what is wrong after a takeover."""
    lines = [line for process in told for line in process]
    yield from (f"crashed: {what}" for kind, what in lines if kind == "crashed")
    owns = [at for kind, at in told[1] if kind == "owns"]
    for kind, (what, began) in (line for line in told[0] if line[0] == "wrote"):
        if owns and began > owns[0]:
            yield f"the loser {kind}: {what}"
    yield from (f"changed behind the owner's back: {what}" for kind, what in lines if kind == "changed" and what)
    starts = Counter(turn for kind, turn in lines if kind == "started")
    yield from (f"turn {turn} was started {count} times" for turn, count in starts.items() if count > 1)
    with SqliteStore(path) as store:
        try:
            yield from map(str, store.fsck(name))
        except UnknownConversation:
            yield "the loser deleted what is not its own"
            return
        owner = store.conversation(name).owner
        if owner is None:
            yield "the loser released what is not its own"


# Releases: an owner lets go while its disk is full, and its process lives on.


def release(folder: Path, number: int, chance: random.Random, figures: Counter[str]) -> list[str]:
    """Let a process that cannot write that it has let go live on, and another one continue or delete what it had."""
    path, name = folder / "releases.db", f"c{number}"
    prepare(path, name)
    event = get_context("fork").Event
    let_go, done = event(), event()
    deletes = chance.random() < 0.5
    told = together([one_that_lets_go(path, name, let_go, done), next_one(path, name, let_go, done, deletes=deletes)])
    figures["releases on a full disk"] += 1
    figures["deleted afterwards"] += deletes
    lines = [line for process in told for line in process]
    broken = [f"crashed: {what}" for kind, what in lines if kind == "crashed"]
    broken += [f"whoever comes after it is kept out: {what}" for kind, what in lines if kind == "kept out"]
    broken += [f"the loser wrote: {what[0]}" for kind, what in lines if kind == "wrote"]
    left = [file.name for file in folder.glob("releases.db-owner-*")]
    return [*broken, *(f"{file} is left" for file in left)]


def one_that_lets_go(path: Path, name: str, let_go: Event, done: Event) -> Callable[[Tell], None]:
    """Return what the first owner does: it works, cannot store that it has let go, and does not end."""

    def work(tell: Tell) -> None:
        owner = this_process()
        with SqliteStore(path) as store:
            try:
                assert store.claim(name, owner, is_alive=dead)
                store.append(name, said("mine"), owner=owner)
                with full_disk(store), suppress(StoreFull):
                    store.release(name, owner)
            finally:
                let_go.set()
            assert done.wait(WAIT_SECONDS)
            for kind, write in writes(store, name, owner).items():
                attempt(tell, kind, write)

    return work


def next_one(path: Path, name: str, let_go: Event, done: Event, *, deletes: bool) -> Callable[[Tell], None]:
    """Return what another process does then: it continues the conversation, or deletes it."""

    def take(tell: Tell) -> None:
        try:
            assert let_go.wait(WAIT_SECONDS)
            with SqliteStore(path) as store, owned(store, name) as owner:
                store.append(name, said("ours"), owner=owner)
                if deletes:
                    store.delete(name, at=1, owner=owner)
                done.set()
        except ConversationInUse as error:
            tell(("kept out", str(error)))
        finally:
            done.set()

    return take


@contextmanager
def full_disk(store: SqliteStore) -> Iterator[None]:
    """Let nothing be written."""

    def full() -> None:
        raise StoreFull(store.path)

    with replaced(store._database, "writing_without_sync", full):
        yield


# Faults: one line each.


def run_with_fault(seed: int) -> Outcome:
    """Leave out one fence after the other. Each must be found, else nothing counts as found."""
    found = {name: failures_with(fault, seed) for name, fault in faults().items()}
    missed = [name for name, failures in found.items() if not failures]
    if missed:
        print(f"Not found: {', '.join(missed)}", file=sys.stderr)
    every = () if missed else tuple(f"{name}: {failures[0]}" for name, failures in found.items())
    return Outcome(tried=len(found), unit="planted faults", failures=every)


def faults() -> dict[str, Callable[[], AbstractContextManager[None]]]:
    """Return the mistakes, by what they are."""
    left_out = {f"no fence in {method}": partial(no_fence_in, method) for method in FENCED}
    others = {
        "the fence is looked at before the transaction": fence_before_the_transaction,
        "anybody releases": anybody_releases,
        "everybody is taken for dead": everybody_is_dead,
        "an owner whose process lives is taken for alive": free_locks_say_nothing,
        "who lets go leaves its lock": nobody_lets_go,
    }
    return {**left_out, **others}


def failures_with(fault: Callable[[], AbstractContextManager[None]], seed: int) -> list[str]:
    """Return what a few rounds find; a fault that is about chance gets several of them."""
    chance, figures = random.Random(seed), Counter[str]()
    with scratch() as folder, fault():
        for number in range(ROUNDS_WITH_FAULT):
            for round_of in (release, takeover, race):
                if failures := round_of(folder, number, chance, figures):
                    return failures
    return []


@contextmanager
def no_fence_in(method: str) -> Iterator[None]:
    """Let one method of the store forget who owns the conversation."""

    def place_for(db: Connection, conversation_id: str, owner: Owner | None) -> Place:
        if sys._getframe(1).f_code.co_name == method:
            return conversation_rows.place_of(db, conversation_id)
        return conversation_rows.place_for(db, conversation_id, owner)

    with replaced(sqlite, "place_for", place_for):
        yield


@contextmanager
def fence_before_the_transaction() -> Iterator[None]:
    """Look who owns the conversation, and store a message a moment later."""
    append = SqliteStore.append

    def late(self: SqliteStore, conversation_id: str, *args: Any, **kwargs: Any) -> object:
        with self._database.reading() as db:
            conversation_rows.place_for(db, conversation_id, kwargs.get("owner"))
        time.sleep(WORK_SECONDS)
        owner = self.conversation(conversation_id).owner
        return append(self, conversation_id, *args, **{**kwargs, "owner": owner})

    with replaced(SqliteStore, "append", late):
        yield


@contextmanager
def anybody_releases() -> Iterator[None]:
    """Release a conversation, whoever owns it."""
    release = SqliteStore.release

    def careless(self: SqliteStore, conversation_id: str, owner: Owner) -> None:
        release(self, conversation_id, self.conversation(conversation_id).owner or owner)

    with replaced(SqliteStore, "release", careless):
        yield


@contextmanager
def everybody_is_dead() -> Iterator[None]:
    """Give a conversation to everybody who wants it."""
    claim = SqliteStore.claim

    def careless(self: SqliteStore, conversation_id: str, owner: Owner, *, is_alive: IsAlive) -> bool:
        return claim(self, conversation_id, owner, is_alive=dead)

    with replaced(SqliteStore, "claim", careless):
        yield


@contextmanager
def free_locks_say_nothing() -> Iterator[None]:
    """Ask only whether a process lives, not whether it still holds its lock."""
    is_locked = SqliteStore.is_locked

    def careless(self: SqliteStore, owner: Owner) -> bool | None:
        return is_locked(self, owner) or None

    with replaced(SqliteStore, "is_locked", careless):
        yield


@contextmanager
def nobody_lets_go() -> Iterator[None]:
    """Keep the lock until it is written that nobody owns the conversation."""
    with replaced(OwnerLocks, "let_go", lambda self, token: None):
        yield


@contextmanager
def replaced(where: object, name: str, replacement: object) -> Iterator[None]:
    """Put something else in the place of a function."""
    real = getattr(where, name)
    setattr(where, name, replacement)
    try:
        yield
    finally:
        setattr(where, name, real)


TORTURE = Torture(
    name="two processes on one conversation",
    does=(
        "Two processes begin at the same moment, claim one conversation, try to run each of its turns and speak in it; "
        "in half of these races one is killed, and two others race for what it left. In the other rounds an owner "
        "writes without pause everything that an owner can write, and another process, which cannot see that it is "
        "alive, takes the conversation from it; in half of them the owner is stopped (SIGSTOP) meanwhile. And an owner "
        "closes a conversation while its disk is full and lives on, and another process continues or deletes it."
    ),
    promise=(
        "one of them becomes the owner, the loser writes nothing from then on, no turn is started twice, nothing "
        "acknowledged is lost or doubled, what the killed one ran is interrupted once, every turn has ended, and "
        "`fsck` finds nothing. The loser deletes nothing, and who has closed a conversation keeps nobody out."
    ),
    run=run,
    fault=(
        "the fence is left out of one statement, one after the other, or looked at before the transaction; anybody "
        "releases a conversation; everybody is taken for dead; an owner is taken for alive as long as its process "
        "lives, or does not let go of its lock. Each of these must be found."
    ),
    seen_as="the loser wrote",
    run_with_fault=run_with_fault,
    order=12,
)
