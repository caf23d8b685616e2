"""A whole conversation of the genuine CLIs, each with a scripted model of its own: hand-overs, prompts, rehearsals."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from bullpen.app import open_team
from bullpen.cli import main
from bullpen.conversation.events import Said, TurnEnded
from bullpen.conversation.member_agent import Extra
from bullpen.rehearsal import SETUPS
from bullpen.team.file import load_team
from bullpen.testing.models import ModelServer, Reply

TEAM = """
name = "real"
lead = "claude"

[[member]]
name = "kim"

[[member]]
name = "claude"
agent = "claude"
system_instruction = "You build. {x} %s 你好"

[[member]]
name = "codex"
agent = "codex"

[[member]]
name = "gemini"
agent = "gemini"
model = "gemini-2.5-flash"

[[member]]
name = "qwen"
agent = "qwen"
model = "qwen3-coder-plus"
"""
SPECS = {"claude": "claude-code", "codex": "openai-codex", "gemini": "google-gemini", "qwen": "qwen-code"}


@pytest.mark.needs(*SPECS)
def test_four_genuine_clis_hand_one_message_on(tmp_path: Path) -> None:
    (tmp_path / "team.toml").write_text(TEAM, encoding="utf-8")
    (tmp_path / "CLAUDE.md").write_text("The instruction file of this project.", encoding="utf-8")

    async def converse() -> tuple[list[Said], list[TurnEnded], dict[str, str]]:
        async with ModelServer() as claude, ModelServer() as codex, ModelServer() as gemini, ModelServer() as qwen:
            models = {"claude": claude, "codex": codex, "gemini": gemini, "qwen": qwen}
            for index, (name, server) in enumerate(models.items()):
                follower = [*models, "kim"][index + 1]
                server.script(Reply(text=f"{name} was here.\n\n[NEXT: {follower}]", output_tokens=7))
            extra = {}
            for name, server in models.items():
                settings = SETUPS[SPECS[name]].settings(server.base_url, tmp_path / f"home-{name}")
                extra[name] = Extra(env=settings.env, arguments=settings.arguments)
            async with open_team(tmp_path / "team.toml", db=tmp_path / "c.db", extra=extra) as conversation:
                with conversation.viewing() as viewer:
                    await conversation.say("Let us begin. 开始吧 😀")
                    await conversation.until_quiet()
                    assert conversation.waits_for == "kim"
            news = [numbered.event async for numbered in viewer]
            asked = {name: "\n".join(server.requests[-1].texts) for name, server in models.items()}
        said = [item for item in news if isinstance(item, Said)]
        return said, [item for item in news if isinstance(item, TurnEnded)], asked

    said, ended, asked = asyncio.run(converse())

    assert [item.message.speaker.role_id for item in said] == ["kim", "claude", "codex", "gemini", "qwen"]
    assert [item.message.routing.resolved_addressees for item in said if item.message.routing] == [
        ("claude",),
        ("codex",),
        ("gemini",),
        ("qwen",),
        ("kim",),
    ]
    assert [(item.member, item.state, item.usage is not None) for item in ended] == [
        (name, "done", True) for name in ("claude", "codex", "gemini", "qwen")
    ]
    assert "You build. {x} %s 你好" in asked["claude"]
    assert "The instruction file of this project." in asked["claude"]
    assert "[MESSAGE]\nkim -> claude: Let us begin. 开始吧 😀" in asked["claude"]
    assert "[CONTEXT]\n- kim -> claude: Let us begin. 开始吧 😀" in asked["codex"]
    assert "[MESSAGE]\nclaude -> codex: claude was here." in asked["codex"]
    assert "Your task:\ngemini: gemini was here." in asked["qwen"]
    assert "[NEXT: codex]" not in asked["codex"].rpartition("[CONTEXT]")[2]


@pytest.mark.needs(*SPECS)
def test_a_rehearsal_tries_every_cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    team = TEAM.replace('agent = "qwen"', 'agent = "qwen"\npermissions = "edit"')
    (tmp_path / "team.toml").write_text(team + '\n[[member]]\nname = "cat"\ncommand = ["cat"]\n', encoding="utf-8")

    code = main(["rehearse", str(tmp_path / "team.toml"), "--trust", "--json"])

    rehearsed = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["member"], one["passed"], len(one["checks"])) for one in rehearsed] == [
        ("claude", True, 3),
        ("codex", True, 3),
        ("gemini", True, 3),
        ("qwen", True, 3),
        ("cat", True, 0),
    ]
    assert code == 0
    assert rehearsed[0]["checks"][2]["text"] == "it could not write a file, and its permissions are read-only"
    assert rehearsed[3]["checks"][2]["text"] == "it wrote a file, and its permissions are edit"
    assert list(tmp_path.glob("bullpen-rehearsal-*")) == []


@pytest.mark.needs(*SPECS)
def test_a_rehearsal_asks_before_a_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    team = re.sub(r'(agent = "\w+")', r'\1\npermissions = "ask"', TEAM)
    (tmp_path / "team.toml").write_text(team, encoding="utf-8")

    code = main(["rehearse", str(tmp_path / "team.toml"), "--trust", "--json"])

    rehearsed = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    texts = [one["checks"][-1]["text"] for one in rehearsed]
    assert texts == ["it asked before it ran a command, and ran it after the yes"] * 4
    assert code == 0


@pytest.mark.needs("claude", "codex")
def test_a_rehearsal_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    team = """
    [[member]]
    name = "kim"
    [[member]]
    name = "claude"
    agent = "claude"
    arguments = ["--no-such-option"]
    [[member]]
    name = "codex"
    agent = "codex"
    cwd = "nowhere"
    """
    (tmp_path / "team.toml").write_text(team, encoding="utf-8")

    assert main(["rehearse", str(tmp_path / "team.toml"), "--trust"]) == 1

    printed = capsys.readouterr().out
    assert "✗ claude" in printed
    assert "no-such-option" in printed
    assert f"NO  The folder {tmp_path / 'nowhere'} does not exist." in printed


def test_a_rehearsal_needs_trust(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "team.toml").write_text(TEAM, encoding="utf-8")

    assert main(["rehearse", str(tmp_path / "team.toml")]) == 1

    assert "--trust" in capsys.readouterr().err


@pytest.mark.needs("claude")
def test_no_key_of_ours_reaches_a_rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "sk-ours")
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    (tmp_path / "team.toml").write_text('[[member]]\nname="kim"\n[[member]]\nname="a"\nagent="claude"\n')
    loaded = load_team(tmp_path / "team.toml")

    from bullpen.rehearsal import rehearse

    async def passed() -> list[bool]:
        return [one.passed async for one in rehearse(loaded)]

    assert asyncio.run(passed()) == [True]
