"""Figure: how fast the stream of a CLI is turned into events."""

from functools import partial
from time import process_time

from msgspec.json import Decoder

from benchmarks.agents_recordings import streams
from benchmarks.measure import Run, medians
from benchmarks.report import Figure, times
from bullpen.agents import agent_spec
from bullpen.agents.transcript import Transcript
from bullpen.turn_events import Event

GOAL = 80
CHUNK_BYTES = 64 * 1024
SIZE, QUICK_SIZE = 8_000_000, 3_000_000


def measure(*, quick: bool) -> Figure:
    """Compare reading a stream with only decoding its JSON."""
    sources = streams(QUICK_SIZE if quick else SIZE)
    parsing: dict[tuple[str, str], Run] = {
        (name, "events"): partial(_events, cli, data) for name, (cli, data) in sources.items()
    }
    decoding: dict[tuple[str, str], Run] = {
        (name, "json"): partial(_decode, data) for name, (_, data) in sources.items()
    }
    taken = medians(parsing | decoding, rounds=5 if quick else 15, clock=process_time)
    speed = {name: len(data) / taken[name, "events"] / 1e6 for name, (_, data) in sources.items()}
    limit = {name: len(data) / taken[name, "json"] / 1e6 for name, (_, data) in sources.items()}
    return Figure(
        title="Events from a stream",
        goal=f"at least {GOAL} MB in a second of CPU time",
        met=min(speed.values()) >= GOAL,
        reason="the smallest pieces of text come in lines of about 300 bytes, and each is decoded, matched, checked "
        "for escapes and emitted in Python. Every other stream is well above the goal.",
        measured=f"{min(speed.values()):.0f} to {max(speed.values()):.0f} MB",
        columns=("stream", "bytes in a line", "events in a second", "MB/s", "JSON alone, MB/s", "ratio"),
        rows=[
            (
                name,
                f"{len(data) / len(data.splitlines()):,.0f}",
                f"{_events(cli, data) / taken[name, 'events']:,.0f}",
                f"{speed[name]:.0f}",
                f"{limit[name]:.0f}",
                times(limit[name] / speed[name]),
            )
            for name, (cli, data) in sources.items()
        ],
        meaning=f"The streams are the recordings of `tests/agents/recordings` with texts of `benchmarks/corpus.py` in "
        f"them, read in chunks of {CHUNK_BYTES // 1024} KiB, each as one turn. JSON alone is msgspec decoding every "
        f"line into dicts: the limit for any reader of whole lines.",
    )


def _events(cli: str, data: bytes) -> int:
    """Return the number of events in a stream."""
    events = 0

    def emit(_: Event) -> None:
        nonlocal events
        events += 1

    transcript = Transcript(agent_spec(cli), emit)
    for start in range(0, len(data), CHUNK_BYTES):
        transcript.feed(data[start : start + CHUNK_BYTES])
    transcript.finish()
    return events


def _decode(data: bytes) -> None:
    decode = Decoder().decode
    for line in data.splitlines():
        decode(line)
