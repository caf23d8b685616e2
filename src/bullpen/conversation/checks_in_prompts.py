"""What an agent is told of checks: the results that a [CHECKS] asks for, and that its own last turn broke some."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from bullpen.check_results import CheckResult
from bullpen.conversation.returned_checks import how
from bullpen.files.own_paths import is_candidates
from bullpen.store.base import Store
from bullpen.text.clean import byte_length

CHECKS_SHARE = 4
"""The results of checks take at most this part of the bytes that a prompt may have: 1/4."""
LOOK_BACK = 1_000
"""How many messages are searched for checks."""
MOST_NAMES = 10
_FENCE = re.compile(r"`{3,}")
_STATES = {
    "running": "is running",
    "green": "is green",
    "not_started": "could not start",
    "cancelled": "was cancelled",
    "interrupted": "was interrupted",
}


def wanted_checks(
    store: Store, conversation_id: str, turn_id: str, max_bytes: int, hidden: Collection[str] = ()
) -> str:
    """Return what the checks after a turn said, for a prompt; without an id, the last ones.

    Those after hidden turns are not shown: of others who do the same task.
    """
    if turn_id in hidden:
        return (
            f"(What checks said after turn {turn_id} was asked for, but nobody who does the same task may see it yet.)"
        )
    results = (
        last_runs(store, conversation_id, turn_id) if turn_id else _last_that_count(store, conversation_id, hidden)
    )
    if not results:
        after = f"turn {turn_id}" if turn_id else "a turn yet"
        return f"(The results of checks were asked for, but none ran after {after}.)"
    heading = f"What checks said after turn {results[0].turn_id} of {results[0].member}:"
    return "\n\n".join([heading, *shown_runs(results, max_bytes // CHECKS_SHARE)])


def shown_runs(results: Iterable[CheckResult], room: int) -> list[str]:
    """Return each run for a prompt, with as much of what they wrote as there is room for."""
    # What is wrong comes first, where there is room.
    parts: list[str] = []
    for result in sorted(results, key=lambda one: not one.is_broken):
        parts.append(_shown(result, max(room, 0)))
        room -= byte_length(parts[-1])
    return parts


def last_runs(store: Store, conversation_id: str, turn_id: str) -> list[CheckResult]:
    """Return the last run of each check after a turn; without an id, after the last turn that was checked."""
    if turn_id:
        return _last_of_each(store.checks(conversation_id, turn_ids=[turn_id]))
    return _of_last_turn(_latest(store, conversation_id))


def _last_that_count(store: Store, conversation_id: str, hidden: Collection[str]) -> list[CheckResult]:
    """Return the last runs after a turn that is not hidden, and not one of several results that was not picked."""
    results = _latest(store, conversation_id)
    if not any(one.turn_id in hidden or _is_candidates(one) for one in results):
        return _of_last_turn(results)
    records = store.changes(conversation_id, turn_ids=list({one.turn_id for one in results}), patches=False)
    merged = {record.turn_id for record in records if record.kind == "merge"}
    return _of_last_turn(
        one for one in results if one.turn_id not in hidden and (one.turn_id in merged or not _is_candidates(one))
    )


def _latest(store: Store, conversation_id: str) -> list[CheckResult]:
    messages = store.message_count(conversation_id)
    return store.checks(conversation_id, first=max(messages - LOOK_BACK, 0))


def _of_last_turn(found: Iterable[CheckResult]) -> list[CheckResult]:
    results = list(found)
    last = max(results, key=lambda one: one.number, default=None)
    return _last_of_each(one for one in results if last is not None and one.turn_id == last.turn_id)


def _last_of_each(results: Iterable[CheckResult]) -> list[CheckResult]:
    return list({result.name: result for result in results}.values())


def _is_candidates(result: CheckResult) -> bool:
    place = Path(result.workspace)
    return any(is_candidates(str(folder)) for folder in (place, *place.parents))


def checks_note(store: Store, conversation_id: str, member: str, last_reply: int) -> str:
    """Return what an agent should know of the checks after its last turn, in a line; nothing if none is broken."""
    results = store.checks(conversation_id, first=last_reply, last=last_reply)
    mine = {result.name: result for result in results if result.member == member}.values()
    broken = [f"the check {one.name} {how(one)}" for one in mine if one.is_broken]
    if not broken:
        return ""
    return f"After your last turn, {' and '.join(broken[:MOST_NAMES])}."


def _shown(result: CheckResult, room: int) -> str:
    said = _STATES.get(result.state) or how(result)
    line = f"The check {result.name!r} {said}: {' '.join(map(repr, result.command))}."
    line = f"{line} {result.note}" if result.note else line
    output = _cut(result.output.rstrip("\n"), room - byte_length(line)) if result.state != "green" else ""
    if not output:
        return line
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(output))])
    return f"{line}\n{fence}\n{output}\n{fence}"


def _cut(text: str, room: int) -> str:
    """Return the end of a text that fits, in whole lines: there programs say what is wrong."""
    if byte_length(text) <= room:
        return text
    kept: list[str] = []
    for line in reversed(text.split("\n")):
        room -= byte_length(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(["[…]", *reversed(kept)]) if kept else ""
