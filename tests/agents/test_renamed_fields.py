"""A vendor renames a field: bullpen never takes what it can still read for the whole answer without a word.

Every recording of every CLI is played with one field renamed: in one record, or wherever it stands in records of its
kind. What the turn ends with is as before, or a failure, or it is said that the release is not understood.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.driver import Opening
from bullpen.agents.registry import agent_spec
from bullpen.agents.runner import _ending
from bullpen.agents.transcript import OtherSession, Transcript
from bullpen.approvals import Answer
from bullpen.turn_events import ApprovalAsked, Event, Failed, Finished

RECORDINGS = Path(__file__).parent / "recordings"
ONE_WAY = sorted([*RECORDINGS.glob("[cgq]*/*.jsonl"), *RECORDINGS.glob("others/*/*.jsonl")])
ASKING = sorted(RECORDINGS.glob("asking/*/*.jsonl"))
ANSWERS = {"no": Answer(verdict="no", reason="write to notes/ instead"), "stop": Answer(verdict="stop")}
RENAMED = "renamed"

Place = tuple[str | int, ...]


def records_of(recording: Path) -> list[Any]:
    lines = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [line.get("msg", line) for line in lines if line.get("from", "agent") != "client"]


def ending_of(recording: Path, records: list[Any]) -> Finished | Failed:
    """Return how a turn ends whose program wrote these records, and was answered as it was then."""
    is_asking = recording in ASKING
    spec = agent_spec(recording.parent.name).with_permissions("ask" if is_asking else "read-only")
    opening = Opening(prompt="hello", folder="/home/dev/project", permissions="ask")
    driver = spec.driver(opening) if is_asking and spec.driver else None
    events: list[Event] = []
    transcript = Transcript(spec, events.append, driver=driver)
    if driver is not None:
        answer = ANSWERS.get(recording.stem, Answer(verdict="yes"))

        def on_asked(asked: ApprovalAsked) -> None:
            driver.answer(asked.id, answer)

        transcript.on_asked = on_asked
    try:
        for record in records:
            if driver is None or transcript.verdict is None:
                transcript.feed(json.dumps(record).encode() + b"\n")
        transcript.finish()
    except OtherSession as error:
        return Failed(kind="session_lost", message=str(error))
    return _ending(spec, transcript, 0 if is_asking else exit_code(recording))


def exit_code(recording: Path) -> int:
    run = json.loads(recording.with_suffix(".run.json").read_text(encoding="utf-8"))
    return int(run["exit_code"])


def fields(value: Any, path: Place = ()) -> Iterator[Place]:
    match value:
        case dict():
            for key, inside in value.items():
                yield (*path, key)
                yield from fields(inside, (*path, key))
        case list():
            for number, inside in enumerate(value):
                yield from fields(inside, (*path, number))


def rename(record: Any, path: Place) -> None:
    *way, last = path
    for step in way:
        record = record[step]
    items = [(RENAMED if key == last else key, inside) for key, inside in record.items()]
    record.clear()
    record.update(items)


def shape(record: Any, path: Place) -> tuple[object, ...]:
    """Return what a field is called and in what: the same for all that a vendor would rename at once."""
    kinds: list[object] = []
    for step in path[:-1]:
        if isinstance(record, dict):
            kinds.append((record.get("type"), record.get("subtype"), record.get("role"), record.get("method")))
        kinds.append("*" if isinstance(step, int) else step)
        record = record[step]
    return (*kinds, path[-1])


def renames(records: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield what was renamed, and the records then: each field in each record, and all of its kind at once."""
    kinds: dict[tuple[object, ...], list[tuple[int, Place]]] = {}
    for number, record in enumerate(records):
        for path in fields(record):
            kinds.setdefault(shape(record, path), []).append((number, path))
    for places in kinds.values():
        wanted = [[place] for place in places] + ([places] if len(places) > 1 else [])
        for some in wanted:
            changed = list(records)
            for number in {number for number, _ in some}:
                changed[number] = deepcopy(records[number])
            for number, path in some:
                rename(changed[number], path)
            which = some[0] if len(some) == 1 else ("all", some[0][1])
            yield f"{which[0]} {'.'.join(map(str, which[1]))}", changed


@pytest.mark.parametrize("recording", [*ONE_WAY, *ASKING], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_renamed_field_changes_the_answer_in_silence(recording: Path) -> None:
    records = records_of(recording)
    before = words_of(ending_of(recording, records))
    after = {what: ending_of(recording, changed) for what, changed in renames(records)}

    silent = {what: words_of(one) for what, one in after.items() if isinstance(one, Finished) and not one.doubt}
    assert {what: words for what, words in silent.items() if words != before} == {}


def words_of(ending: Finished | Failed) -> list[str]:
    return ending.text.split() if isinstance(ending, Finished) else [ending.kind]


@pytest.mark.parametrize("recording", ONE_WAY, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_nothing_is_in_doubt_as_it_was_recorded(recording: Path) -> None:
    ending = ending_of(recording, records_of(recording))

    assert isinstance(ending, Failed) or not ending.doubt
