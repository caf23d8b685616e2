"""Figure: saving and loading a conversation, against msgspec on plain structs."""

import gc
from statistics import median
from time import process_time

import msgspec
from msgspec import Struct

from benchmarks.corpus import drafts
from benchmarks.measure import Run, seconds
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.context import ContextManager, ContextSnapshot
from bullpen.messages import SpeakerType

GOAL = 1.5
LENGTHS, QUICK_LENGTHS = (1_000, 10_000, 100_000), (1_000, 4_000)
LOAD, PLAIN_LOAD = "from_json and import_snapshot", "decode"
SAVE, SAVE_AGAIN = "export_snapshot and to_json", "the same once more"
PLAIN_SAVE, PLAIN_SAVE_AGAIN = "encode", "encode once more"


# What a program without bullpen would write. The JSON is the same as ours.


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
    team_task: str | None
    timestamp: int
    version: int
    messages: list[PlainMessage]


def measure(*, quick: bool) -> Figure:
    """Compare loading and saving with msgspec's time for the same bytes."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    files = {length: _saved(length) for length in lengths}
    for data in files.values():
        assert msgspec.json.encode(msgspec.json.decode(data, type=PlainSnapshot)) == data, "the files are not the same"
    by_length = {length: _medians(data, rounds=6 if quick else 12) for length, data in files.items()}
    taken = by_length[lengths[-1]]
    save, load = taken[SAVE] / taken[PLAIN_SAVE], taken[LOAD] / taken[PLAIN_LOAD]
    return Figure(
        title=f"Saving and loading {lengths[-1]:,} messages",
        goal=f"at most {GOAL:g} times msgspec on plain structs",
        met=max(save, load) <= GOAL,
        measured=f"saving {times(save)} times, loading {times(load)} times",
        reason="loading checks every message, shares repeated values and packs non-ASCII text, message by message in "
        "Python; msgspec creates its structs in C.",
        columns=("what", "messages", "bullpen", "msgspec", "ratio"),
        rows=[
            _row(length, by_length[length], ours, plain)
            for ours, plain in ((SAVE, PLAIN_SAVE), (SAVE_AGAIN, PLAIN_SAVE_AGAIN), (LOAD, PLAIN_LOAD))
            for length in lengths
        ],
        meaning=f"The longest file has {len(files[lengths[-1]]) / 1e6:.1f} MB. Both sides save what they have just "
        "loaded. That matters: "
        "msgspec keeps the UTF-8 of every non-ASCII str it has written once inside that str, which makes its second "
        "time faster and doubles the memory; the goal is about the first. bullpen checks every message and reads older "
        "formats too.",
        plots=(_plot(by_length),),
    )


def _plot(by_length: dict[int, dict[str, float]]) -> Plot:
    names = {
        "bullpen saves": SAVE,
        "bullpen loads": LOAD,
        "msgspec alone encodes": PLAIN_SAVE,
        "msgspec alone decodes": PLAIN_LOAD,
    }
    return Plot(
        name="snapshot",
        title="Saving and loading a conversation",
        across="messages",
        up="processor time, lower is better",
        unit="seconds",
        series={shown: [(length, taken[name]) for length, taken in by_length.items()] for shown, name in names.items()},
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
        # The second one reuses memory that the first has just freed, so they alternate.
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


def _row(length: int, taken: dict[str, float], ours: str, plain: str) -> tuple[str, ...]:
    ratio = times(taken[ours] / taken[plain])
    return f"{ours} ÷ {plain}", f"{length:,}", duration(taken[ours]), duration(taken[plain]), ratio
