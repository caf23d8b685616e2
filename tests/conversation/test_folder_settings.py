"""An agent whose program would read its folder's settings answers only after a person has agreed to these."""

import asyncio
from pathlib import Path

from bullpen.agents.settings_choice import HINT
from bullpen.app import open_team
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.trust import Trust, settings_marks

TEAM = """\
[[member]]
name = "kim"
[[member]]
name = "max"
command = ["sh", "-c", "echo claude says hello"]
"""


async def answers(loaded: LoadedTeam, folder: Path) -> tuple[list[str], list[str]]:
    """Return what the agent said, and why it did not."""
    async with open_team(loaded, db=folder / "c.db") as conversation:
        await conversation.say("hello")
        await conversation.until_quiet()
        said = [one.message.content for one in await conversation.messages()]
        return said[1:], [ended.sentence for ended in conversation.undecided]


def test_an_agent_waits_for_an_agreement_and_for_another_one_after_a_change(tmp_path: Path) -> None:
    (tmp_path / "team.toml").write_text(TEAM)
    settings = tmp_path / ".mcp.json"
    settings.write_text("{}")
    loaded = load_team(tmp_path / "team.toml")
    Trust().remember(loaded.path, loaded.text)
    why = "bullpen does not know what this program reads"
    refused = f"sh was not started: it would read .mcp.json, to which nobody has agreed ({why}). {HINT}"

    said, failed = asyncio.run(answers(loaded, tmp_path))
    assert said == []
    assert [refused in one for one in failed] == [True]

    Trust().remember(loaded.path, loaded.text, settings_marks(loaded.team, loaded.root))
    assert asyncio.run(answers(loaded, tmp_path)) == (["claude says hello"], [])

    settings.write_text('{"mcpServers": {}}')
    assert asyncio.run(answers(loaded, tmp_path))[0] == []
