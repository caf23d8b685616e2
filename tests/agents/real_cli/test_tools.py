"""The genuine CLIs call the tools of their turn: they look up what they were not shown, and hand over."""

import asyncio
from pathlib import Path

import pytest

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.rehearsal import SETUPS
from bullpen.store.base import Turn
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import ModelServer, Reply, ToolCall

FIRST_FOUR = {"claude": "claude-code", "codex": "openai-codex", "gemini": "google-gemini", "qwen": "qwen-code"}
SPECS = {**FIRST_FOUR, "copilot": "github-copilot", "opencode": "opencode"}
MODELS = {
    "claude": "claude-sonnet-5",
    "codex": "gpt-5.5",
    "gemini": "gemini-2.5-flash",
    "qwen": "qwen3-coder-plus",
    "copilot": "m1",
    "opencode": "scripted/m1",
}
SECRET = "The word is plum 😀 密."


def called(cli: str, tool: str, **arguments: object) -> Reply:
    """Return a reply with which the model of a CLI calls a tool."""
    match cli:
        case "codex":
            call = ToolCall(name=tool, namespace="mcp__bullpen", arguments=arguments)
        case "gemini":
            call = ToolCall(name=f"mcp_bullpen_{tool}", arguments=arguments)
        case "copilot":
            call = ToolCall(name=f"bullpen-{tool}", arguments=arguments)
        case "opencode":
            call = ToolCall(name=f"bullpen_{tool}", arguments=arguments)
        case _:
            call = ToolCall(name=f"mcp__bullpen__{tool}", arguments=arguments)
    return Reply(tool_calls=(call,))


def write_team(folder: Path, cli: str, permissions: str) -> Path:
    # Not beside the home of the CLI, whose settings make programs run.
    team = folder / "project" / "team.toml"
    team.parent.mkdir(exist_ok=True)
    team.write_text(
        'name = "tools"\nlead = "agent"\n[[member]]\nname = "kim"\n'
        f'[[member]]\nname = "agent"\nagent = "{cli}"\nmodel = "{MODELS[cli]}"\npermissions = "{permissions}"\n'
        'window = 0\nmemory = "shared"\ntools = true\n'
        '[[member]]\nname = "ann"\ncommand = ["echo", "Ann agrees."]\n'
        '[[member]]\nname = "bob"\ncommand = ["echo", "Bob disagrees."]\n',
        encoding="utf-8",
    )
    return team


async def talked(folder: Path, cli: str, permissions: str, *replies: Reply) -> tuple[list[str], list[Turn], str]:
    """Return what was said after a question, the turns, and what the model was asked last."""
    async with ModelServer() as models:
        models.script(*replies)
        settings = SETUPS[SPECS[cli]].settings(models.base_url, folder / "home")
        extra = {"agent": Extra(env={**settings.env, "IS_SANDBOX": "1"}, arguments=settings.arguments)}
        team = write_team(folder, cli, permissions)
        async with open_team(team, db=folder / "c.db", extra=extra) as conversation:
            await said(conversation, f"@ann {SECRET}")
            before = len(await conversation.messages())
            await said(conversation, "@agent Which word was it?")
            messages = [one.message.content for one in (await conversation.messages())[before + 1 :]]
            conversation_id = conversation.id
        asked = "\n".join(models.requests[-1].texts)
    with SqliteStore(folder / "c.db") as store:
        return messages, store.turns(conversation_id), asked


async def said(conversation: Conversation, text: str) -> None:
    await conversation.say(text)
    await conversation.until_quiet()
    assert not conversation.undecided, [ended.sentence for ended in conversation.undecided]


@pytest.mark.parametrize(
    ("cli", "permissions"),
    [
        *((cli, "read-only") for cli in ("claude", "codex", "qwen")),
        # Copilot and OpenCode call tools under read-only in test_nine_agents, too.
        *(pytest.param(cli, "read-only", marks=pytest.mark.torture) for cli in ("copilot", "opencode")),
        # Gemini CLI takes servers for one run only where people are asked.
        *((cli, "ask") for cli in SPECS),
    ],
)
def test_a_model_looks_up_what_it_was_not_shown_and_hands_over(cli: str, permissions: str, tmp_path: Path) -> None:
    replies = [
        called(cli, "search", query="plum"),
        called(cli, "hand_over", to=["bob"], note="Is that so?"),
        Reply(text="It was plum."),
    ]

    messages, turns, asked = asyncio.run(talked(tmp_path, cli, permissions, *replies))

    assert "The word is plum" in asked
    assert messages == ["It was plum.\n\nTo bob: Is that so?", "Bob disagrees."]
    (turn,) = [turn for turn in turns if turn.member == "agent"]
    assert [use.words for use in turn.uses] == ["searched for “plum”: 1 message", "handed over to bob"]
