"""A whole conversation of genuine CLIs in the browser's door, from the first message to the export."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from bullpen.conversation.member_agent import Extra
from bullpen.testing.models import ModelServer, ToolCall
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.settings import claude_settings, codex_settings
from bullpen.testing.site import site

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
WAIT_SECONDS = 120


@pytest.mark.needs("claude", "codex")
def test_claude_hands_over_to_codex_and_everything_can_be_seen(tmp_path: Path) -> None:
    # Not beside the homes of the CLIs, whose settings make programs run.
    project = tmp_path / "project"
    project.mkdir()
    (project / "team.toml").write_text(TEAM)

    async def story() -> None:
        async with ModelServer() as for_max, ModelServer() as for_sarah:
            tool = ToolCall(name="Write", arguments={"file_path": str(project / "made.txt"), "content": "made"})
            for_max.script(Scripted(tool_calls=(tool,)), Scripted(text="It is **built**. [NEXT: sarah]"))
            for_sarah.script(Scripted(text="It is good."))
            settings = {
                "max": claude_settings(for_max.base_url, tmp_path / "max"),
                "sarah": codex_settings(for_sarah.base_url, tmp_path / "sarah"),
            }
            extra = {name: Extra(env=one.env, arguments=one.arguments) for name, one in settings.items()}
            async with (
                site(tmp_path, project / "team.toml", extra=extra) as served,
                httpx.AsyncClient(
                    base_url=served.url, headers={"Origin": served.url}, follow_redirects=True, timeout=60
                ) as browser,
            ):
                await browser.post(served.new_url())
                here = (await browser.post("/c")).url.path
                opened = served.hub.get(here.removeprefix("/c/"))
                assert opened is not None
                await browser.post(f"{here}/messages", data={"text": "Please build it."})
                await asyncio.wait_for(opened.conversation.until_quiet(), WAIT_SECONDS)
                assert opened.view().undecided == ()
                page = (await browser.get(here)).text
                assert "It is <strong>built</strong>." in page
                assert "It is good." in page
                steps = (await browser.get(f"{here}/steps/1")).text
                assert "made.txt" in steps
                assert "Please build it." in (await browser.get(f"{here}/prompt/turn-1")).text
                assert (await browser.get(f"{here}/timeline")).text.count('class="turn done"') == 2
                exported = json.loads((await browser.get(f"{here}/export/json")).text)
                assert [message["speaker"]["roleId"] for message in exported["messages"]] == ["kim", "max", "sarah"]

    asyncio.run(story())
