"""The rules of a project reach the model of every genuine CLI once, whoever reads them: the CLI itself, or bullpen."""

import asyncio
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.agents.real_cli.scene import said
from tests.agents.real_cli.turn import clis

from bullpen.app import open_team
from bullpen.conversation.member_agent import Extra
from bullpen.rehearsal import SETUPS
from bullpen.testing.models import ModelServer, Reply

SPECS = {
    "claude": "claude-code",
    "codex": "openai-codex",
    "gemini": "google-gemini",
    "qwen": "qwen-code",
    "copilot": "github-copilot",
    "opencode": "opencode",
    "pi": "pi",
}
SETTINGS = {"claude": ".claude/settings.json", "gemini": ".gemini/settings.json", "qwen": ".qwen/settings.json"}
OWN = {"claude": "CLAUDE.md", "gemini": "GEMINI.md", "qwen": "QWEN.md"}
every_cli = clis("claude", "codex", "gemini", "qwen", "opencode", rarely=("copilot", "pi"))


def rules(cli: str, folder: Path, permissions: str) -> list[int]:
    """Return how often a model was given each of the rules that hold for a member."""
    project = folder / "project"
    (project / "part" / "deep").mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "AGENTS.md").write_text("RULE-TOP\n")
    (project / "part" / OWN.get(cli, "AGENTS.md")).write_text("RULE-PART\n\n@more.md\n")
    (project / "part" / "more.md").write_text("RULE-MORE\n" if cli not in ("copilot", "pi") else "RULE-LEFT\n")
    (project / "part" / "deep" / "AGENTS.md").write_text("RULE-BELOW\n")
    team = f'[[member]]\nname = "kim"\n[[member]]\nname = "a"\nagent = "{cli}"\ncwd = "part"\n'
    model = {"gemini": "gemini-2.5-flash", "qwen": "qwen3-coder-plus", "opencode": "scripted/m1"}.get(cli)
    team += f'permissions = "{permissions}"\n' + (f'model = "{model}"\n' if model else "")
    (project / "team.toml").write_text(team, encoding="utf-8")

    async def talk() -> str:
        async with ModelServer() as models:
            models.script(*[Reply(text="done")] * 3)
            settings = SETUPS[SPECS[cli]].settings(models.base_url, folder / "home")
            extra = {"a": Extra(env={**settings.env, "IS_SANDBOX": "1"}, arguments=settings.arguments)}
            async with open_team(project / "team.toml", db=folder / "c.db", extra=extra) as conversation:
                await said(conversation, "Hello")
            return json.dumps(models.requests[0].body)

    found = asyncio.run(talk())
    times = Counter({name: found.count(f"RULE-{name}") for name in ("TOP", "PART", "MORE", "BELOW")})
    return [times[name] for name in ("TOP", "PART", "MORE", "BELOW")]


@every_cli
@pytest.mark.parametrize("permissions", ["edit", "full"])
def test_each_rule_is_given_once(cli: str, permissions: str, tmp_path: Path) -> None:
    # These two follow no imports in what they read by themselves.
    follows = cli not in ("copilot", "pi")

    assert rules(cli, tmp_path, permissions) == [1, 1, int(follows), 0]


@clis("claude", "gemini", "qwen", rarely=())
@pytest.mark.parametrize("permissions", ["ask", "edit", "full"])
def test_each_rule_is_given_once_without_the_settings_of_the_folder(cli: str, permissions: str, tmp_path: Path) -> None:
    file = tmp_path / "project" / "part" / SETTINGS[cli]
    file.parent.mkdir(parents=True)
    file.write_text("{}")

    assert rules(cli, tmp_path, permissions) == [1, 1, 1, 0]
