"""Checks: what commands said that ran after turns, in words, for every door."""

import signal
from collections.abc import Iterable, Sequence
from shlex import join

from msgspec import Struct

from bullpen.check_results import CheckResult
from bullpen.conversation.checks_in_prompts import last_runs
from bullpen.errors import BullpenError
from bullpen.store.base import Store
from bullpen.text.clean import one_line
from bullpen.text.numbers import duration, size
from bullpen.view.activity import Light
from bullpen.view.turn_lookup import find_turn

MOST_RESULTS = 1_000

SIGNS: dict[Light, str] = {"green": "✓", "red": "✗", "yellow": "…", "grey": "–"}
"""Yellow: it runs. Grey: it says nothing about the files."""


def check_line(result: CheckResult) -> str:
    """Return one run in a line: "pytest: green, 2.1 s", "pytest: red (exit 1), 2.1 s"."""
    return f"{one_line(result.name)}: {check_words(result)}"


def check_lines(results: Iterable[CheckResult]) -> list[str]:
    """Return each run in a line."""
    return [check_line(result) for result in results]


def check_words(result: CheckResult) -> str:
    """Return how a run ended."""
    took = duration(result.seconds)
    match result.state:
        case "running":
            return "running"
        case "green":
            return f"green, {took}"
        case "red":
            return f"red ({_ending(result.exit_code)}), {took}"
        case "timed_out":
            return f"timed out after {took}"
        case "not_started":
            return f"could not start. {one_line(result.note)}"
        case "cancelled":
            return f"cancelled after {took}"
        case "interrupted":
            return "interrupted: bullpen stopped meanwhile"


def check_light(result: CheckResult) -> Light:
    """Return the colour that says the same."""
    if result.state == "running":
        return "yellow"
    if result.is_broken:
        return "red"
    return "green" if result.state == "green" else "grey"


def check_output(result: CheckResult) -> str:
    """Return what unfolds: the command, where it ran, and what it wrote."""
    left_out = f"(Of its output, {size(result.left_out)} in the middle are not kept.)" if result.left_out else ""
    written = result.output.rstrip("\n") or ("" if result.state == "running" else "(It wrote nothing.)")
    return "\n".join(
        filter(None, [f"$ {join(result.command)}", f"in {result.workspace}", result.note, left_out, written])
    )


class CheckLine(Struct, frozen=True, kw_only=True):
    """One run, as a line below the message of its turn that opens into what it wrote."""

    check: int
    """Its number."""
    name: str
    turn: str
    after: int
    """The number of the message that its turn ended with, or after which it ended."""
    light: Light
    sign: str
    """One character that says the same, where there are no colours."""
    words: str
    """As in check_line."""
    output: str
    """What unfolds."""


def check_shown(result: CheckResult) -> CheckLine:
    """Return one run as a line."""
    light = check_light(result)
    return CheckLine(
        check=result.number,
        name=result.name,
        turn=result.turn_id,
        after=result.after_message,
        light=light,
        sign=SIGNS[light],
        words=check_line(result),
        output=check_output(result),
    )


def checks_of_turns(store: Store, conversation_id: str, turn_ids: Sequence[str]) -> dict[str, list[CheckResult]]:
    """Return what checks said after each of these turns: of each check, the last run."""
    found: dict[str, dict[str, CheckResult]] = {}
    for result in store.checks(conversation_id, turn_ids=turn_ids):
        found.setdefault(result.turn_id, {})[result.name] = result
    return {turn_id: list(by_name.values()) for turn_id, by_name in found.items()}


def checks_after(store: Store, conversation_id: str, *, first: int = 0) -> dict[int, list[CheckResult]]:
    """Return what checks said from a message on, by the number of the message that their turn ended with."""
    found: dict[int, list[CheckResult]] = {}
    for result in store.checks(conversation_id, first=first):
        found.setdefault(result.after_message, []).append(result)
    return found


def find_checks(store: Store, conversation_id: str, reference: str = "") -> list[CheckResult]:
    """Return what checks said after the turn that a person means; without one, after the last that was checked.

    If there is nothing, BullpenError is raised.
    """
    turn_id = find_turn(store, conversation_id, reference).id if reference else ""
    results = last_runs(store, conversation_id, turn_id)
    if not results:
        after = f"after turn {turn_id}" if turn_id else "in this conversation"
        raise BullpenError(f"No check has run {after}. They run after turns that change files, if the team has any.")
    return results


def check_page(
    store: Store, conversation_id: str, *, turn_id: str = "", after: int = 0, limit: int = MOST_RESULTS
) -> list[CheckResult]:
    """Return the runs with higher numbers than one, in the order of their numbers: all, or those after a turn."""
    turns = [store.turn(conversation_id, turn_id).id] if turn_id else None
    results = [one for one in store.checks(conversation_id, turn_ids=turns) if one.number > after]
    return sorted(results, key=lambda one: one.number)[: min(limit, MOST_RESULTS)]


def checks_text(results: Iterable[CheckResult]) -> str:
    """Return runs one below the other, with all that they wrote."""
    return "\n\n".join(f"{check_line(one)}\n{check_output(one)}" for one in results)


def _ending(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"exit {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"
