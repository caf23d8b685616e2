"""A scripted agent that plays inside our process behaves as one in a process of its own."""

import asyncio
import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from bullpen.agents import AgentSpec, agent_spec, command_agent, run_turn
from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.process import Child
from bullpen.context import AssemblerOutput
from bullpen.errors import AgentFailed
from bullpen.testing.played import PlayedChild, played, started
from bullpen.testing.stage import AGENT
from bullpen.turn_events import Event, TextDelta

PROMPT = "What do you see?\nA cat 猫, and a dog."
EVERY_AGENT = ("claude", "codex", "gemini", "text")

Step = dict[str, Any]
SCRIPTS: dict[str, list[Step]] = {
    "nothing": [],
    "an answer": [{"answer": True}],
    "words in pieces": [{"say": "a cat and 猫", "chunk": 2, "delay": 0.001}, {"say": " and more"}],
    "the prompt": [{"echo": True}, {"say_prompt_length": True}],
    "thoughts and tools": [
        {"think": "Hm."},
        {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "hi", "seconds": 0.001}},
        {"todo": [{"text": "build", "completed": True}]},
        {"say": "Done."},
        {"usage": {"input": 7, "output": 2}, "cost": 0.5},
    ],
    "a file": [{"write_file": {"path": "made.txt", "text": "hi"}}, {"wait_for": "made.txt"}, {"say": "Made."}],
    "retries": [{"retry": 429, "message": "slow down", "of": 3}, {"say": "At last."}],
    "a quota": [{"say": "half"}, {"error": 429, "message": "too much"}],
    "too many turns": [{"max_turns": True}],
    "a failure": [{"say": "half of it"}, {"stderr": "no such luck\n"}, {"exit": 3}],
    "no result": [{"say": "half of it"}, {"no_result": True}],
    "damage": [{"raw": "not JSON\n"}, {"raw_base64": "/w=="}, {"half_line": '{"type'}, {"slow_write": 5}],
    "an unknown event": [{"unknown_event": {"type": "new"}}, {"say": "Yes."}],
    "the prompt unread": [{"read": False}, {"say": "I did not read it."}],
    "an early end": [{"say": "Done."}, {"finish": True}, {"stderr": "bye\n"}],
    "no such step": [{"no_such_step": True}],
}


def scripted(agent: str, script: list[Step]) -> AgentSpec:
    spec = command_agent(["text"]) if agent == "text" else agent_spec(agent)
    return replace(
        spec, command=(*AGENT, "--as", agent, "--script", json.dumps(script), *spec.command[1:]), name="agent"
    )


async def outcome(spec: AgentSpec, folder: Path, *, inside: bool, cancel: bool = False, **limits: Any) -> Any:
    """Return all that came of a turn, in a process or inside this one, without what differs from turn to turn."""
    folder.mkdir(parents=True)
    events: list[Event] = []
    begun = asyncio.Event()

    def emit(event: Event) -> None:
        events.append(event)
        if isinstance(event, TextDelta):
            begun.set()

    output = AssemblerOutput(prompt=PROMPT, system_flag=None)
    with played() if inside else nullcontext():
        turn = asyncio.ensure_future(run_turn(spec, output, emit=emit, cwd=folder, **limits))
        if cancel:
            await begun.wait()
            turn.cancel()
        (ended,) = await asyncio.gather(turn, return_exceptions=True)
    match ended:
        case AgentFailed() | asyncio.CancelledError():
            result: Any = (type(ended).__name__, str(ended))
        case BaseException():
            raise ended
        case _:
            result = (ended.text, to_builtins(ended.usage))
    files = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    return _without_ids([_joined(events), result, files], folder)


def _joined(events: list[Event]) -> list[Any]:
    """Return the events with all words next to each other in one: a pipe may join them."""
    joined: list[Any] = []
    for event in events:
        if isinstance(event, TextDelta) and joined and isinstance(joined[-1], TextDelta):
            joined[-1] = TextDelta(joined[-1].text + event.text)
        else:
            joined.append(event)
    return [to_builtins(event) for event in joined]


def _without_ids(value: Any, folder: Path) -> Any:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True).replace(str(folder), "FOLDER")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?:toolu|msg)_[0-9a-f]+|__\w+_\d{13}_\d+", "ID", text)
    return json.loads(re.sub(r'("[a-z_]*(?:ms|seconds|since)": )[0-9.]+', r"\1 0", text))


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("agent", EVERY_AGENT)
async def test_the_same_script_has_the_same_outcome(agent: str, tmp_path: Path) -> None:
    for name, script in SCRIPTS.items():
        spec = scripted(agent, script)
        in_process, inside = [
            await outcome(spec, tmp_path / name / str(inside), inside=inside) for inside in (False, True)
        ]
        assert inside == in_process, name


@pytest.mark.parametrize("agent", EVERY_AGENT)
async def test_a_turn_is_cancelled_in_the_same_way(agent: str, tmp_path: Path) -> None:
    spec = scripted(agent, [{"say": "half of it"}, {"hang": True}])
    in_process, inside = [
        await outcome(spec, tmp_path / str(inside), inside=inside, cancel=True) for inside in (False, True)
    ]
    assert inside == in_process


async def test_a_turn_times_out_in_the_same_way(tmp_path: Path) -> None:
    spec = scripted("text", [{"hang": True}])
    in_process, inside = [
        await outcome(spec, tmp_path / str(inside), inside=inside, idle_timeout=0.01) for inside in (False, True)
    ]
    assert inside == in_process


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--script", '[{"say": "hi"}]'], PlayedChild),
        (["--script", '[{"say": "hi"}]', "--process"], Child),
        (["--script", '[{"say": "hi"}, {"kill_self": "SIGKILL"}]'], Child),
        (["--script", '[{"tool": {"runs": "true"}}]'], Child),
    ],
)
async def test_what_needs_a_process_gets_one(arguments: list[str], kind: type[Any], tmp_path: Path) -> None:
    shell = tmp_path / "claude"
    shell.write_text(f'#!/bin/sh\nexec {" ".join(AGENT)} --as text "$@"\n', encoding="utf-8")
    shell.chmod(0o755)
    for command in ([*AGENT, "--as", "text"], [str(shell)]):
        child = started(
            [*command, *arguments],
            cwd=tmp_path,
            env={},
            stdin=b"",
            on_stdout=lambda _: None,
            on_stderr=lambda _: None,
            crash_records=CrashRecords(),
        )
        try:
            assert isinstance(child, kind)
        finally:
            await child.stop()


async def test_another_program_runs_in_a_process(tmp_path: Path) -> None:
    spec = command_agent([sys.executable, "-c", "print('hello')"])
    assert (await outcome(spec, tmp_path / "a", inside=True))[1][0] == "hello"
