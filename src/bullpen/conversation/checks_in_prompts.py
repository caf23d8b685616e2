"""What an agent is told of checks: the results that a [CHECKS] asks for, and that its own last turn broke some."""

import re

from bullpen.check_results import CheckResult
from bullpen.conversation.returned_checks import how
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


def wanted_checks(store: Store, conversation_id: str, turn_id: str, max_bytes: int) -> str:
    """Return what the checks after a turn said, for a prompt; without an id, the last ones."""
    results = last_runs(store, conversation_id, turn_id)
    if not results:
        after = f"turn {turn_id}" if turn_id else "a turn yet"
        return f"(The results of checks were asked for, but none ran after {after}.)"
    room = max_bytes // CHECKS_SHARE
    heading = f"What checks said after turn {results[0].turn_id} of {results[0].member}:"
    # What is wrong comes first, where there is room.
    parts: list[str] = []
    for result in sorted(results, key=lambda one: not one.is_broken):
        parts.append(_shown(result, max(room, 0)))
        room -= byte_length(parts[-1])
    return "\n\n".join([heading, *parts])


def last_runs(store: Store, conversation_id: str, turn_id: str) -> list[CheckResult]:
    """Return the last run of each check after a turn; without an id, after the last turn that was checked."""
    if turn_id:
        results = store.checks(conversation_id, turn_ids=[turn_id])
    else:
        messages = store.conversation(conversation_id).messages
        results = store.checks(conversation_id, first=max(messages - LOOK_BACK, 0))
        last = max(results, key=lambda one: one.number, default=None)
        results = [one for one in results if last is not None and one.turn_id == last.turn_id]
    return list({result.name: result for result in results}.values())


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
