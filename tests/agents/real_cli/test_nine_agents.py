"""Nine genuine agents in one conversation: three hand over by a call, one looks something up, an editor follows it."""

import asyncio
import json
import os
import re
import shlex
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.test_tools import called
from tests.cli.editor.sdk import Watching, acp, followed

from bullpen.agents.registry import agent_spec
from bullpen.store.base import Turn
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import ModelServer, Reply
from bullpen.testing.settings import SETTINGS

NINE = ("claude", "codex", "gemini", "qwen", "copilot", "opencode", "vibe", "pi", "acp")
MODELS = {"claude": "claude-sonnet-5", "codex": "gpt-5.5", "gemini": "gemini-2.5-flash", "qwen": "qwen3-coder-plus"}
BY_CALL = ("claude", "copilot", "opencode")
SEARCHES = "codex"
PROGRAMS = {"acp": "opencode"}
"""Which of them is one of many that speak a protocol."""
# Each of them takes up to half a minute on a busy machine.
pytestmark = [pytest.mark.timeout(600), pytest.mark.needs(*(one for one in NINE if one not in ("vibe", "acp")))]


def write_team(folder: Path, agents: list[str]) -> None:
    lines = ['name = "nine"', f'lead = "{agents[0]}"', '[[member]]\nname = "kim"']
    for agent in agents:
        command = [str(folder / "bin" / agent), *(["acp"] if agent == "acp" else [])]
        lines.append(f'[[member]]\nname = "{agent}"\nagent = "{agent}"\ncommand = {json.dumps(command)}')
        lines.append('tools = true\nmemory = "shared"')
        lines += [f'model = "{MODELS[agent]}"'] if agent in MODELS else []
        lines += ["window = 0"] if agent == SEARCHES else []
    (folder / "team.toml").write_text("\n".join(lines), encoding="utf-8")


def write_program(folder: Path, agent: str, base_url: str) -> None:
    """Write a program that is the genuine one, with a scripted model of its own."""
    own = SETTINGS[PROGRAMS.get(agent, agent)](base_url, folder / agent)
    genuine = shutil.which(PROGRAMS.get(agent) or agent_spec(agent).program)
    assert genuine
    variables = [f"{name}={value}" for name, value in {**own.env, "IS_SANDBOX": "1"}.items()]
    run = f'exec {shlex.join(["env", *variables, genuine])} "$@" {shlex.join(own.arguments)}\n'
    program = folder / "bin" / agent
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{run}", encoding="utf-8")
    program.chmod(0o755)


def script_of(agent: str, following: str | None) -> list[Reply]:
    """Return what an agent's model says: it hands over to the next one, if there is one."""
    looked_up = [called(agent, "search", query="plum")] if agent == SEARCHES else []
    if following is None:
        return [*looked_up, Reply(text=f"{agent} is here.")]
    if agent in BY_CALL:
        return [*looked_up, called(agent, "hand_over", to=[following]), Reply(text=f"{agent} is here.")]
    return [*looked_up, Reply(text=f"{agent} is here. [NEXT: {following}]")]


async def talked(folder: Path, agents: list[str]) -> tuple[Watching, dict[str, str]]:
    """Return the editor that followed them, and what each agent's model was asked last."""
    write_team(folder, agents)
    async with AsyncExitStack() as stack:
        models = {agent: await stack.enter_async_context(ModelServer()) for agent in agents}
        for agent, following in zip(agents, [*agents[1:], None], strict=True):
            models[agent].script(*script_of(agent, following))
            write_program(folder, agent, models[agent].base_url)

        async def story(connection: Any, _: Watching) -> None:
            session = (await connection.new_session(cwd=str(folder), mcp_servers=[])).session_id
            task = "The word is plum. Please say that you are here, each of you."
            answer = await connection.prompt(session_id=session, prompt=[acp.text_block(task)])
            assert answer.stop_reason == "end_turn"

        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG")}
        mine = {name: str(folder / "mine") for name in ("HOME", "BULLPEN_HOME", "XDG_STATE_HOME")}
        editor = await followed(folder, {**kept, **mine}, story)
    return editor, {agent: "\n".join(models[agent].requests[-1].texts) for agent in agents}


def stored(folder: Path) -> tuple[list[tuple[str, str]], list[Turn]]:
    """Return who said what in the only conversation, and its turns."""
    with SqliteStore(folder / "mine" / "conversations.db") as store:
        (conversation,) = store.conversations()
        messages = [one.message for one in store.messages(conversation.id, limit=99)]
        return [(one.speaker.role_name, one.content) for one in messages], store.turns(conversation.id)


def test_nine_agents_take_part_in_one_conversation_and_an_editor_follows_it(tmp_path: Path) -> None:
    agents = [one for one in NINE if one == "acp" or shutil.which(agent_spec(one).program)]
    missing = sorted({*NINE} - {*agents})

    editor, asked = asyncio.run(talked(tmp_path, agents))

    said, turns = stored(tmp_path)
    assert [sender for sender, _ in said] == ["kim", *agents]
    for agent, (_, content) in zip(agents, said[1:], strict=True):
        assert content.startswith(f"{agent} is here.")
    uses = {turn.member: [use.words for use in turn.uses] for turn in turns}
    assert [agent for agent in agents if any("handed over" in words for words in uses[agent])] == list(BY_CALL)
    assert uses[SEARCHES] == ["searched for “plum”: 1 message"]
    assert "The word is plum" in asked[SEARCHES]
    shown = re.findall(r"\*\*(\w+):\*\*\n\n(\w+) is here\.", editor.written)
    assert shown == [(agent, agent) for agent in agents]
    calls = [update.title.partition(": ") for update in editor.of("tool_call")]
    does = dict.fromkeys(BY_CALL, "hand_over") | {SEARCHES: "search"}
    assert [(who, does[who] in what) for who, _, what in calls] == [(one, True) for one in agents if one in does]
    if missing:
        pytest.skip(f"{', '.join(missing).upper()} IS NOT INSTALLED, SO ONLY {len(agents)} AGENTS TOOK PART")
