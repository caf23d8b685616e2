"""What docs/cookbook.md says of Claude Code's permissions is true of the genuine one."""

import asyncio
from pathlib import Path

import pytest
from tests.test_cookbook import COOKBOOK
from tests.test_docs import blocks

from bullpen.app import open_team
from bullpen.conversation.events import TurnEvent
from bullpen.conversation.member_agent import Extra
from bullpen.testing.models import ModelServer, Reply, ToolCall
from bullpen.testing.settings import claude_settings
from bullpen.turn_events import ToolFinished

TEAM = next(code for language, code in blocks(COOKBOOK) if language == "toml")
OTHER_PROGRAM = "python3 -c 'print(1)'"


TESTS = "pytest --version"


@pytest.mark.needs("claude")
@pytest.mark.parametrize(
    ("team", "commands"),
    [
        pytest.param(
            TEAM, {TESTS: True, OTHER_PROGRAM: False, f"{TESTS}; {OTHER_PROGRAM}": False}, id="with the recipe"
        ),
        pytest.param(TEAM.replace("allow", "# allow"), {TESTS: False}, id="without the recipe"),
    ],
)
def test_claude_runs_the_tests_and_no_other_program(team: str, commands: dict[str, bool], tmp_path: Path) -> None:
    (tmp_path / "team.toml").write_text(team, encoding="utf-8")
    calls = [ToolCall(name="Bash", arguments={"command": command, "description": "x"}) for command in commands]

    async def converse() -> list[ToolFinished]:
        async with ModelServer() as models:
            models.script(*(Reply(tool_calls=(call,)) for call in calls), Reply(text="done"))
            settings = claude_settings(models.base_url, tmp_path / "home")
            extra = {"max": Extra(env=settings.env, arguments=settings.arguments)}
            async with open_team(tmp_path / "team.toml", db=tmp_path / "c.db", extra=extra) as conversation:
                with conversation.viewing() as viewer:
                    await conversation.say("Please run the tests.")
                    await conversation.until_quiet()
            events = [numbered.event async for numbered in viewer]
        turn = [event.event for event in events if isinstance(event, TurnEvent)]
        return [event for event in turn if isinstance(event, ToolFinished)]

    finished = asyncio.run(converse())

    assert {command: not one.failed for command, one in zip(commands, finished, strict=True)} == commands, finished
