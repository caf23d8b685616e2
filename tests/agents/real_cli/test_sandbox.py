"""Where a person says yes to everything, the sandbox still holds every genuine CLI; and its session goes on in it."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.test_attacks import YES, Attacked, _calls, _edit, files_below
from tests.agents.real_cli.turn import Turn, run

from bullpen.agents import Permission, Reply
from bullpen.sandbox.mechanism import mechanism
from bullpen.sandbox.rules import SandboxRules
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.models import ToolCall
from bullpen.turn_events import Notice, ToolFinished

CLIS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot")
COMMANDS = (
    # First: when Codex is told of a refusal while it works, a scripted call after that is sometimes not made.
    "cat notes.json > good.txt",
    "cat notes.json > .qwen/settings.json",
    "uniq notes.json .gemini/settings.json",
    "cat notes.json > link/settings.local.json",
    "cat notes.json > linked.json",
    "mkdir -p .pi/extensions; cat notes.json > .pi/extensions/e.js",
    "cat notes.json >> team.toml",
    "cat notes.json > out/new.txt",
    "cat notes.json > OUT",
    "cat notes.json > ../outside.txt",
    "cat notes.json > ~/.bashrc",
)
EDITS = (".qwen/settings.json", "link/settings.local.json", "linked.json", "../outside.txt", "out/new.txt", "team.toml")
ON = SandboxRules(is_on=True)
pytestmark = pytest.mark.timeout(900)


class Held(Attacked):
    """One whose team file says `sandbox = true`."""

    async def run(self, *script: Any, **options: Any) -> Reply:
        return await super().run(*script, **{"sandbox": ON, **options})


@pytest.mark.parametrize("cli", CLIS)
def test_a_yes_to_everything_writes_no_settings_and_nothing_outside(
    cli: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mechanism().works, mechanism().why_not
    if cli == "codex":
        # Otherwise its own sandbox does not start, as the test below says.
        monkeypatch.delenv("TMPDIR")
        monkeypatch.setattr(tempfile, "tempdir", None)
    turn = Held(cli, tmp_path)
    (turn.cwd / "team.toml").write_text('[[member]]\nname = "kim"\n')
    held = [turn.cwd / name for name in (".claude", ".gemini", ".qwen", ".pi", "team.toml")]

    def state() -> dict[str, str]:
        below = {name: text for folder in held if folder.is_dir() for name, text in files_below(folder).items()}
        return {**below, "team": held[-1].read_text(), **files_below(tmp_path / "elsewhere")}

    before = state()

    run(turn.attack([*_calls(cli, COMMANDS), *(_edit(cli, turn.cwd / name) for name in EDITS)]))

    assert state() == before
    assert not (tmp_path / "outside.txt").exists()
    assert (turn.cwd / "good.txt").read_text() == (turn.cwd / "notes.json").read_text()
    assert any("The sandbox did not let it write" in notice.text for notice in turn.of(Notice)) or cli == "codex"
    assert not (turn.cwd / ".vibe").exists(), "what stood in for it is gone"


@pytest.mark.needs("codex")
@pytest.mark.parametrize("permissions", ["read-only", "edit", "ask"])
@pytest.mark.parametrize("is_set", [True, False])
def test_codex_own_sandbox_within_it_starts_only_without_tmpdir(
    permissions: Permission, is_set: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not work yet, written down: `bullpen check` and docs/sandbox.md say it."""
    if is_set:
        elsewhere = tmp_path / "temporary"
        elsewhere.mkdir()
        monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.setattr(tempfile, "tempdir", None)
    if not is_set:
        monkeypatch.delenv("TMPDIR")
    turn = Turn("codex", tmp_path)
    (turn.cwd / "notes.txt").write_text("alpha")
    calls = [
        ToolCall(name="exec_command", arguments={"cmd": "cat notes.txt"}),
        ToolCall(name="exec_command", arguments={"cmd": "echo made > made.txt"}),
        _edit("codex", turn.cwd / "patch.txt"),
    ]

    async def agree(_: object) -> Any:
        return YES

    script = [*(Scripted(tool_calls=(call,)) for call in calls), *[Scripted(text="done")] * 2]
    run(turn.run(*script, permissions=permissions, ask=agree, sandbox=ON, idle_timeout=240, total_timeout=300))

    written = {path.name for path in turn.cwd.iterdir()} - {"notes.txt"}
    was_read = any("alpha" in finished.output for finished in turn.of(ToolFinished))
    if is_set and permissions == "ask":
        # It may run what has failed once more without its own sandbox, and does not always.
        assert written <= {"made.txt", "patch.txt"}
    else:
        assert was_read == (not is_set)
        assert written == ({"made.txt", "patch.txt"} if permissions != "read-only" and not is_set else set())
