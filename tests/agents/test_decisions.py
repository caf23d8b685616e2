"""One test for each decision on running agents in docs/decisions.md, named after it."""

import asyncio
import inspect
import logging
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from bullpen.agents import Permission, agent_spec, known_agents, run_turn
from bullpen.cli.logs import SafeFormatter
from bullpen.context import AssemblerInput
from bullpen.errors import AgentCrashed
from bullpen.turn_events import Event, Finished

SECRET = "the prompt and the system text are nobody else's business"


def test_decision_22_prompt_on_stdin_system_text_by_file(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "seen = {'arguments': sys.argv, 'system': open(sys.argv[-1]).read(), 'prompt': sys.stdin.readline()}\n"
        "json.dump(seen, open('seen.json', 'w'))\n"
        "print(json.dumps({'type': 'result', 'subtype': 'success', 'is_error': False, 'result': 'ok'}), flush=True)\n"
    )
    program.chmod(0o755)
    spec = replace(agent_spec("claude"), command=(str(program),))
    output = spec.assembler().assemble(AssemblerInput(current_message=SECRET, system_instruction=SECRET))

    reply = asyncio.run(run_turn(spec, output, emit=lambda _: None, cwd=tmp_path))

    seen = (tmp_path / "seen.json").read_text()
    assert seen.count(SECRET) == 2
    assert SECRET not in " ".join(reply.command)


def test_decision_23_success_is_a_good_final_event_and_exit_code_0(tmp_path: Path) -> None:
    spec = agent_spec("codex")
    command = (sys.executable, "-m", "bullpen.testing.agent", "--as", "codex", "--script")
    script = '[{"say": "all done [NEXT: sarah]"}, {"finish": true}, {"exit": 3}]'
    spec = replace(spec, command=(*command, script))
    output = spec.assembler().assemble(AssemblerInput(current_message="x"))
    events: list[Event] = []

    with pytest.raises(AgentCrashed) as raised:
        asyncio.run(run_turn(spec, output, emit=events.append, cwd=tmp_path))

    assert raised.value.event.partial_text == "all done [NEXT: sarah]"
    assert not any(isinstance(event, Finished) for event in events)


@pytest.mark.parametrize("permission", ["read-only", "edit"])
def test_decision_24_permissions_are_explicit_and_safe_by_default(permission: Permission) -> None:
    for spec in known_agents().values():
        words = " ".join([*spec.arguments(permission, None), *spec.settings])
        assert not any(bypass in words for bypass in ("dangerously", "danger-full", "yolo", "trust", "bypass"))
    assert inspect.signature(run_turn).parameters["permissions"].default == "read-only"


def test_decision_33_what_geminis_reply_is() -> None:
    def reply(*records: dict[str, str]) -> str:
        parser = agent_spec("gemini").parser()
        events = [event for record in records for event in parser.parse(record)]
        assert isinstance(events[-1], Finished)
        return events[-1].text

    look = {"type": "message", "role": "assistant", "content": "Let me look."}
    tool = {"type": "tool_use", "tool_id": "1", "tool_name": "read_file"}
    done = {"type": "message", "role": "assistant", "content": "It is fine."}
    end = {"type": "result", "status": "success"}

    assert reply(look, tool, done, end) == "It is fine."
    assert reply(look, tool, end) == "Let me look."


def test_decision_34_what_debug_shows() -> None:
    key = "-".join(("sk", "ant", "api03", "0123456789abcdefghijklmnopqrstuvwxyz"))
    output = agent_spec("codex").assembler().assemble(AssemblerInput(current_message=f"use {key} \x1b[31m"))
    record = logging.LogRecord("bullpen", logging.DEBUG, "", 0, "[Debug][Send]\n%s", (output.prompt,), None)

    shown = SafeFormatter().format(record)

    assert shown.startswith("[Debug][Send]\n[MESSAGE]\nuse ")
    assert key not in shown
    assert "\x1b" not in shown
