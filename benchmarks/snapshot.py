"""Figure: saving and loading a conversation, against msgspec on plain structs."""

import gc
from statistics import median
from time import process_time

import msgspec
from msgspec import Struct

from benchmarks.corpus import drafts
from benchmarks.measure import Run, seconds
from benchmarks.report import Figure, duration, times
from bullpen.context import ContextManager, ContextSnapshot
from bullpen.messages import SpeakerType

GOAL = 1.5
LENGTH, QUICK_LENGTH = 100_000, 10_000
LOAD, PLAIN_LOAD = "from_json and import_snapshot", "decode"
SAVE, SAVE_AGAIN = "export_snapshot and to_json", "the same once more"
PLAIN_SAVE, PLAIN_SAVE_AGAIN = "encode", "encode once more"


# What a program would write that only wants its messages in a file. The JSON is the same as ours.


class PlainSpeaker(Struct, rename="camel", omit_defaults=True):
    role_id: str
    role_name: str
    type: SpeakerType
    role_title: str | None = None


class PlainRouting(Struct, rename="camel", omit_defaults=True):
    resolved_addressees: tuple[str, ...] = ()
    raw_next_markers: tuple[str, ...] = ()
    drop_targets: tuple[str, ...] = ()
    parent_message_id: str | None = None
    intent: str | None = None


class PlainMessage(Struct, rename="camel", omit_defaults=True):
    id: str
    content: str
    speaker: PlainSpeaker
    timestamp: int = 0
    routing: PlainRouting | None = None


class PlainSnapshot(Struct, rename="camel"):
    messages: list[PlainMessage]
    team_task: str | None = None
    timestamp: int = 0
    version: int = 1


def measure(*, quick: bool) -> Figure:
    """Compare loading and saving with what msgspec needs for the same bytes."""
    length = QUICK_LENGTH if quick else LENGTH
    data = _saved(length)
    assert msgspec.json.encode(msgspec.json.decode(data, type=PlainSnapshot)) == data, "the files are not the same"
    taken = _medians(data, rounds=6 if quick else 12)
    rows = [
        _row(taken, SAVE, PLAIN_SAVE),
        _row(taken, SAVE_AGAIN, PLAIN_SAVE_AGAIN),
        _row(taken, LOAD, PLAIN_LOAD),
    ]
    ratios = [taken[SAVE] / taken[PLAIN_SAVE], taken[LOAD] / taken[PLAIN_LOAD]]
    return Figure(
        title=f"Saving and loading {length:,} messages",
        goal=f"at most {GOAL:g} times msgspec on plain structs",
        met=max(ratios) <= GOAL,
        columns=("what", "bullpen", "msgspec", "ratio"),
        rows=rows,
        meaning=f"The file has {len(data) / 1e6:.1f} MB. Both sides save what they have just loaded. That matters: "
        "msgspec keeps the UTF-8 of every non-ASCII str it has written once inside that str, which makes its second "
        "time faster and doubles the memory; the goal is about the first. bullpen checks every message and reads older "
        "formats too.",
    )


def _saved(length: int) -> bytes:
    manager = ContextManager()
    for draft in drafts(length):
        manager.add_message(draft)
    return manager.export_snapshot().to_json()


def _medians(data: bytes, rounds: int) -> dict[str, float]:
    names = (LOAD, SAVE, SAVE_AGAIN, PLAIN_LOAD, PLAIN_SAVE, PLAIN_SAVE_AGAIN)
    times_of: dict[str, list[float]] = {name: [] for name in names}
    turns = [_bullpen_round, _plain_round]
    for _ in range(rounds):
        # The one that comes second finds memory that the first has just given back, so they change places.
        turns.reverse()
        for turn in turns:
            for name, taken in turn(data).items():
                times_of[name].append(taken)
    return {name: median(taken) for name, taken in times_of.items()}


def _bullpen_round(data: bytes) -> dict[str, float]:
    manager = ContextManager()

    def load() -> None:
        manager.import_snapshot(ContextSnapshot.from_json(data))

    def save() -> bytes:
        return manager.export_snapshot().to_json()

    return {LOAD: _seconds(load), SAVE: _seconds(save), SAVE_AGAIN: _seconds(save)}


def _plain_round(data: bytes) -> dict[str, float]:
    loaded: list[PlainSnapshot] = []

    def load() -> None:
        loaded.append(msgspec.json.decode(data, type=PlainSnapshot))

    def save() -> bytes:
        return msgspec.json.encode(loaded[0])

    return {PLAIN_LOAD: _seconds(load), PLAIN_SAVE: _seconds(save), PLAIN_SAVE_AGAIN: _seconds(save)}


def _seconds(run: Run) -> float:
    gc.collect()
    return seconds(run, clock=process_time)


def _row(taken: dict[str, float], ours: str, plain: str) -> tuple[str, ...]:
    return f"{ours} ÷ {plain}", duration(taken[ours]), duration(taken[plain]), times(taken[ours] / taken[plain])
