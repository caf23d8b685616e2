"""Checks: what commands said that ran after turns, in words, for every door."""

import signal
from collections.abc import Iterable, Sequence
from shlex import join
from typing import Literal

from bullpen.check_results import CheckResult
from bullpen.store.base import Store
from bullpen.text.clean import one_line
from bullpen.text.numbers import duration, size

Light = Literal["green", "red", "yellow", "grey"]
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


def checks_of_turns(store: Store, conversation_id: str, turn_ids: Sequence[str]) -> dict[str, list[CheckResult]]:
    """Return what checks said after each of these turns: of each check, the last run."""
    found: dict[str, dict[str, CheckResult]] = {}
    for result in store.checks(conversation_id, turn_ids=turn_ids):
        found.setdefault(result.turn_id, {})[result.name] = result
    return {turn_id: list(by_name.values()) for turn_id, by_name in found.items()}


def _ending(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"exit {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"
