"""Recordings of the CLIs' streams, cut short anywhere."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from benchmarks.agents_stage import own_folder, played_by
from msgspec import Struct

from bullpen.agents import agent_spec, guardian, run_turn
from bullpen.agents.failures import classified
from bullpen.agents.runner import _ending
from bullpen.agents.transcript import Transcript
from bullpen.context import AssemblerInput
from bullpen.errors import AgentFailed
from bullpen.turn_events import Event, Failed, Finished, Notice

RECORDINGS = Path(__file__).parents[2] / "tests" / "agents" / "recordings"
TURNS = (path for path in RECORDINGS.glob("*/*.jsonl") if path.parent.name != "handshakes")
CASES = sorted(path.relative_to(RECORDINGS).with_suffix("").as_posix() for path in TURNS)


class Cut(Struct, frozen=True):
    """The first bytes of a recording."""

    case: str
    length: int

    @property
    def cli(self) -> str:
        """Whose stream it is."""
        return self.case.partition("/")[0]

    @property
    def file(self) -> Path:
        """Where all of it is."""
        return RECORDINGS / f"{self.case}.jsonl"


def every_cut(step: int) -> Iterator[Cut]:
    """Yield the cuts of all recordings, one in so many bytes, and each recording whole."""
    for case in CASES:
        size = (RECORDINGS / f"{case}.jsonl").stat().st_size
        yield from (Cut(case, length) for length in (*range(0, size, step), size))


def wrong_with(cut: Cut, *, believes_all: bool = False) -> Iterator[str]:
    """Yield what a reader of the cut stream gets wrong. One that believes all is here to be caught."""
    *whole, answer = _read(Cut(cut.case, cut.file.stat().st_size))
    try:
        *events, ending = _read(cut)
    except Exception as error:
        yield repr(error)
        return
    if believes_all:
        ending = Finished("".join(str(event) for event in events))
    said = [event for event in events if not isinstance(event, Notice)]
    if said != [event for event in whole if not isinstance(event, Notice)][: len(said)]:
        yield "says what the whole does not"
    if isinstance(ending, Finished) and ending != answer:
        yield f"half an answer: {ending!r} of {answer!r}"


@cache
def _bytes_of(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _stderr_of(file: Path) -> bytes:
    run = json.loads(file.with_suffix(".run.json").read_text(encoding="utf-8"))
    return str(run["stderr_tail"]).encode()


def _read(cut: Cut) -> list[Event]:
    """Return every event of a program that wrote this and ended well, the last one included."""
    spec = agent_spec(cut.cli)
    events: list[Event] = []
    transcript = Transcript(spec, events.append)
    transcript.feed(_bytes_of(cut.file)[: cut.length])
    transcript.feed_errors(_stderr_of(cut.file))
    transcript.finish()
    ending = _ending(spec, transcript, 0)
    return [*events, classified(spec, ending) if isinstance(ending, Failed) else ending]


async def played_as_a_process(cut: Cut, folder: Path) -> list[str]:
    """Return what is wrong after a real turn whose program writes the cut stream."""
    spec = played_by(cut.cli, "head", "-c", str(cut.length), str(cut.file))
    output = spec.assembler().assemble(AssemblerInput(current_message="hello", system_instruction="You are Max."))
    events: list[Event] = []
    before = _descriptors()
    with own_folder() as state:
        try:
            await run_turn(spec, output, emit=events.append, cwd=folder, idle_timeout=20, total_timeout=20)
        except AgentFailed as failure:
            if failure.event.kind == "timed_out":
                return ["hangs"]
        records = list(state.rglob("*.json"))
    endings = [event for event in events if isinstance(event, Finished | Failed)]
    problems = []
    if len(endings) != 1 or events[-1] is not endings[0]:
        problems.append(f"{len(endings)} endings")
    if records:
        problems.append(f"records left: {records}")
    if _descriptors() > before:
        problems.append("descriptors left")
    return problems


def _descriptors() -> int:
    """Return how many files are open, without those to guardians that wait for the next turn."""
    return len(list(Path("/dev/fd").iterdir())) - len(guardian.idle)
