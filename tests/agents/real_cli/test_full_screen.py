"""A whole conversation of genuine CLIs on the full screen, from the first message to the export."""

import asyncio
from pathlib import Path

import pytest
from tests.tui.stage import Scene
from textual.pilot import Pilot

from bullpen.app import open_team
from bullpen.conversation.member_agent import Extra
from bullpen.testing.models import ModelServer, ToolCall
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.settings import claude_settings, codex_settings
from bullpen.tui.app import BullpenApp

TEAM = """
[[member]]
name = "kim"
[[member]]
name = "max"
agent = "claude"
permissions = "edit"
[[member]]
name = "sarah"
agent = "codex"
"""


@pytest.mark.needs("claude", "codex")
def test_claude_hands_over_to_codex_and_it_is_exported(tmp_path: Path) -> None:
    # Not beside the homes of the CLIs, whose settings make programs run.
    project = tmp_path / "project"
    project.mkdir()
    (project / "team.toml").write_text(TEAM)
    tool = ToolCall(name="Write", arguments={"file_path": str(project / "made.txt"), "content": "made"})

    async def story() -> None:
        async with ModelServer() as for_max, ModelServer() as for_sarah:
            for_max.script(Scripted(tool_calls=(tool,)), Scripted(text="It is **built**. [NEXT: sarah]"))
            for_sarah.script(Scripted(text="It is good."))
            settings = {
                "max": claude_settings(for_max.base_url, tmp_path / "max"),
                "sarah": codex_settings(for_sarah.base_url, tmp_path / "sarah"),
            }
            extra = {name: Extra(env=one.env, arguments=one.arguments) for name, one in settings.items()}
            async with open_team(project / "team.toml", db=tmp_path / "c.db", extra=extra) as conversation:
                app = BullpenApp(conversation)
                async with app.run_test(size=(120, 40)) as pilot:
                    await play(Scene(app, pilot, conversation), pilot)

    async def play(scene: Scene, pilot: Pilot[None]) -> None:
        await scene.settled()
        await scene.say("Please build it.")
        await scene.quiet()
        await scene.sees("Please build it.", "It is built.", "1 tool", "It is good.", "◆ kim person")
        await scene.say(f"/export {tmp_path}/talk.md")
        await scene.until(lambda: (tmp_path / "talk.md").exists())

    asyncio.run(story())

    assert (project / "made.txt").read_text() == "made"
    exported = (tmp_path / "talk.md").read_text()
    assert exported.index("Please build it.") < exported.index("It is **built**.") < exported.index("It is good.")
