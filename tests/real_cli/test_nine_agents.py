"""Nine genuine agents in one conversation, one after the other: three hand over by a call, one looks something up."""

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.real_cli.test_tools import called

from bullpen.agents.registry import agent_spec
from bullpen.app import open_team
from bullpen.conversation.member_agent import Extra
from bullpen.store.base import Turn
from bullpen.testing.models import ModelServer, Reply
from bullpen.testing.settings import SETTINGS

NINE = ("claude", "codex", "gemini", "qwen", "copilot", "opencode", "vibe", "pi", "acp")
MODELS = {"claude": "claude-sonnet-5", "codex": "gpt-5.5", "gemini": "gemini-2.5-flash", "qwen": "qwen3-coder-plus"}
BY_CALL = ("claude", "copilot", "opencode")
SEARCHES = "codex"
PROGRAMS = {"acp": "opencode"}
"""Which of them is one of many that speak a protocol."""
# Each of them takes up to half a minute on a busy machine.
pytestmark = pytest.mark.timeout(600)


def team_of(agents: list[str]) -> str:
    lines = ['name = "nine"', f'lead = "{agents[0]}"', '[[member]]\nname = "kim"']
    for agent in agents:
        lines.append(f'[[member]]\nname = "{agent}"\nagent = "{agent}"\ntools = true\nmemory = "shared"')
        lines += [f'model = "{MODELS[agent]}"'] if agent in MODELS else []
        lines += ['command = ["opencode", "acp"]'] if agent == "acp" else []
        lines += ["window = 0"] if agent == SEARCHES else []
    return "\n".join(lines)


def script_of(agent: str, following: str | None) -> list[Reply]:
    """Return what an agent's model says: it hands over to the next one, if there is one."""
    looked_up = [called(agent, "search", query="plum")] if agent == SEARCHES else []
    if following is None:
        return [*looked_up, Reply(text=f"{agent} is here.")]
    if agent in BY_CALL:
        return [*looked_up, called(agent, "hand_over", to=[following]), Reply(text=f"{agent} is here.")]
    return [*looked_up, Reply(text=f"{agent} is here. [NEXT: {following}]")]


async def talked(folder: Path, agents: list[str]) -> tuple[list[tuple[str, str]], list[Turn], dict[str, str]]:
    """Return who said what, the turns, and what each agent's model was asked last."""
    (folder / "team.toml").write_text(team_of(agents), encoding="utf-8")
    async with AsyncExitStack() as stack:
        models = {agent: await stack.enter_async_context(ModelServer()) for agent in agents}
        extra = {}
        for agent, following in zip(agents, [*agents[1:], None], strict=True):
            models[agent].script(*script_of(agent, following))
            own = SETTINGS[PROGRAMS.get(agent, agent)](models[agent].base_url, folder / agent)
            extra[agent] = Extra(env={**own.env, "IS_SANDBOX": "1"}, arguments=own.arguments)
        opened = open_team(folder / "team.toml", db=folder / "c.db", extra=extra)
        conversation = await stack.enter_async_context(opened)
        await conversation.say("The word is plum. Please say that you are here, each of you.")
        await conversation.until_quiet()
        assert not conversation.undecided, [ended.sentence for ended in conversation.undecided]
        said = [(one.message.speaker.role_name, one.message.content) for one in await conversation.messages()]
        turns = await conversation.read(lambda store, conversation_id: store.turns(conversation_id))
    return said, turns, {agent: "\n".join(models[agent].requests[-1].texts) for agent in agents}


def test_nine_agents_take_part_in_one_conversation(tmp_path: Path) -> None:
    agents = [one for one in NINE if one == "acp" or shutil.which(agent_spec(one).program)]
    missing = sorted({*NINE} - {*agents})

    said, turns, asked = asyncio.run(talked(tmp_path, agents))

    assert [sender for sender, _ in said] == ["kim", *agents]
    for agent, (_, content) in zip(agents, said[1:], strict=True):
        assert content.startswith(f"{agent} is here.")
    uses = {turn.member: [use.words for use in turn.uses] for turn in turns}
    assert [agent for agent in agents if any("handed over" in words for words in uses[agent])] == list(BY_CALL)
    assert uses[SEARCHES] == ["searched for “plum”: 1 message"]
    assert "The word is plum" in asked[SEARCHES]
    if missing:
        pytest.skip(f"{', '.join(missing).upper()} IS NOT INSTALLED, SO ONLY {len(agents)} AGENTS TOOK PART")
