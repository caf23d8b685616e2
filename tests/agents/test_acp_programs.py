"""Agents that bullpen knows only by their protocol: what they said when nobody was signed in, recorded."""

import json
import tomllib
from pathlib import Path

import pytest

from bullpen.agents.acp_programs import ACP_PROGRAMS
from bullpen.agents.driver import Opening
from bullpen.agents.registry import spec_for
from bullpen.turn_events import Event, Failed, Finished, Notice, Started

RECORDINGS = Path(__file__).parent / "recordings" / "handshakes"


def played(name: str, command: tuple[str, ...]) -> tuple[list[Event], list[str]]:
    """Return what a recording becomes, and the methods that were called."""
    make = spec_for("acp", command).driver
    assert make is not None
    driver = make(Opening(prompt="hello", folder="/home/dev/project", permissions="ask"))
    events: list[Event] = []
    methods: list[str] = []
    numbers: dict[object, object] = {}
    for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        for sent in driver.outgoing:
            methods.append(sent["method"])
            numbers[sent["method"]] = sent["id"]
        driver.outgoing.clear()
        if "session/set_mode" in numbers and "session/prompt" not in numbers:
            # It was recorded without a mode being set.
            events += driver.parse({"id": numbers["session/set_mode"], "result": {}})
            numbers |= {sent["method"]: sent["id"] for sent in driver.outgoing}
        if record.get("id") == 3:
            record["id"] = numbers["session/prompt"]
        events += driver.parse(record)
    return events, methods


@pytest.mark.parametrize(
    ("name", "program"),
    [("auggie", "auggie"), ("cline", "cline"), ("openhands", "openhands"), ("qoder", "qodercli")],
)
def test_who_wants_an_account_says_so_before_anything_is_asked(name: str, program: str) -> None:
    events, methods = played(name, (program, "--acp"))

    assert methods == ["initialize", "session/new"]
    (ending,) = events
    assert isinstance(ending, Failed)
    assert ending.kind == "not_signed_in"
    assert "Authentication" in ending.message


def test_droid_begins_a_session_without_an_account_and_is_told_to_ask() -> None:
    events, methods = played("droid", ("droid", "exec", "--output-format", "acp"))

    assert methods[:3] == ["initialize", "session/new", "session/set_mode"]
    started = events[0]
    assert isinstance(started, Started)
    assert started.cli_version == "0.215.0"


def test_fast_agent_answers_and_has_no_mode_in_which_it_asks() -> None:
    events, _ = played("fast-agent", ("fast-agent-acp",))

    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.text.endswith("it offers agent")
    assert events[-1] == Finished("ANSWER-HELLO")


def test_the_lines_for_a_team_file() -> None:
    for program in ACP_PROGRAMS:
        assert tomllib.loads(program.toml) == {"agent": "acp", "command": list(program.command)}
        assert spec_for("acp", program.command).program == program.command[0]
