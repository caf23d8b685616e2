"""What two recordings of the same cases differ in: kinds of records, their fields, how the CLI ended, and its flags."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from proofs.newest.recording import FLAGS

NAME = re.compile(r"[A-Za-z_]\w*")


def changes(before: Path, after: Path) -> list[str]:
    """Return how the recordings of one folder differ from those of the same CLIs in another, each in a line."""
    clis = sorted(file.parent.name for file in before.glob(f"*/{FLAGS}") if (after / file.parent.name).exists())
    return [f"{cli}: {text}" for cli in clis for text in _of_cli(before / cli, after / cli)]


def _of_cli(before: Path, after: Path) -> Iterator[str]:
    old_flags, new_flags = _flags(before), _flags(after)
    yield from _told("new flags: ", new_flags - old_flags)
    yield from _told("flags that are gone: ", old_flags - new_flags)
    fields: defaultdict[str, set[str]] = defaultdict(set)
    for file in sorted(before.glob("*.jsonl")):
        if (after / file.name).exists():
            yield from (f"{file.stem}: {text}" for text in _of_case(file, after / file.name, fields))
        else:
            yield f"{file.stem}: was not recorded"
    for where, names in sorted(fields.items()):
        yield from _told(where, {name for name in names if not _is_below(name, names)})


def _of_case(before: Path, after: Path, fields: defaultdict[str, set[str]]) -> Iterator[str]:
    """Yield what differs in one case; which fields do is put with those of other cases."""
    codes = [json.loads(file.with_suffix(".run.json").read_bytes())["exit_code"] for file in (before, after)]
    if codes[0] != codes[1]:
        yield f"exit code {codes[1]}, was {codes[0]}"
    old, new = _fields(before), _fields(after)
    yield from _told("new records: ", new.keys() - old.keys())
    yield from _told("records that are gone: ", old.keys() - new.keys())
    for kind in old.keys() & new.keys():
        whole = kind.partition(" > ")[0]
        fields[f"new fields in {whole}: "] |= new[kind] - old[kind]
        fields[f"fields that are gone from {whole}: "] |= old[kind] - new[kind]


def _told(what: str, names: Iterable[str]) -> Iterator[str]:
    listed = ", ".join(sorted(names))
    if listed:
        yield what + listed


def _is_below(name: str, names: set[str]) -> bool:
    """Return whether a field is in another one of these fields."""
    return any(name.startswith((f"{other}.", f"{other}[")) for other in names)


def _flags(folder: Path) -> set[str]:
    file = folder / FLAGS
    return {*file.read_text(encoding="utf-8").split()} if file.exists() else set()


def _fields(file: Path) -> dict[str, set[str]]:
    """Return the fields of each kind of record in a stream."""
    found: dict[str, set[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line) if line.startswith("{") else {"type": "a line that is not JSON"}
        found.setdefault(_kind(record), set()).update(_paths(record))
    return found


def _kind(record: dict[str, Any]) -> str:
    """Return what a record is: its type and subtype, and those of what is in it."""
    own = "/".join(str(record[name]) for name in ("type", "subtype", "role") if isinstance(record.get(name), str))
    inner = [value for value in record.values() if isinstance(value, dict) and "type" in value]
    blocks = [block for value in record.values() if isinstance(value, list) for block in value]
    inner += [block for block in blocks if isinstance(block, dict) and "type" in block]
    return " > ".join([own, *dict.fromkeys(_kind(value) for value in inner)])


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every field; what is named after a model or the like counts as one field."""
    match value:
        case dict():
            for name, inner in value.items():
                below = f"{path}.{name if NAME.fullmatch(name) else '*'}".removeprefix(".")
                yield below
                yield from _paths(inner, below)
        case list():
            for inner in value:
                yield from _paths(inner, f"{path}[]")
