"""Every command and every edit of a genuine CLI comes to our gate, and it alone says what runs without a question."""

import os.path
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.agents.real_cli import attacks
from tests.agents.real_cli.trials import command_calls
from tests.agents.real_cli.turn import Turn, run, write_call

from bullpen.agents import Permission, agent_spec
from bullpen.approvals import Answer
from bullpen.team.approval_rules import allowing
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.models import ToolCall
from bullpen.turn_events import LEAVES_SANDBOX, ApprovalAsked, ToolFinished, ToolStarted

YES = Answer(verdict="yes")
AT_ONCE = 20
"""Attacks in one turn."""
CLIS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot", "vibe")
every_cli = pytest.mark.parametrize("cli", CLIS)
pytestmark = pytest.mark.timeout(900)


class Attacked(Turn):
    """A turn in which a model tries many things, and a person says yes to each that is asked."""

    def __init__(self, cli: str, folder: Path) -> None:
        super().__init__(cli, folder)
        if shutil.which(self.spec.program) is None:
            pytest.skip(f"{self.spec.program.upper()} IS NOT INSTALLED, AND NOT TRIED")
        self.early: list[str] = []
        """What was there before it was asked for."""
        outside = folder / "elsewhere"
        outside.mkdir()
        (outside / "secret.txt").write_text("alpha outside")
        for name in (".claude", ".gemini", ".qwen", "sub"):
            (self.cwd / name).mkdir()
        (self.cwd / "notes.json").write_text('{"alpha": 1}\n')
        (self.cwd / "names").write_text("/etc/hostname\0")
        for name, target in {
            "OUT": outside / "secret.txt",
            "FOLDER": outside,
            "out": outside,
            "link": self.cwd / ".claude",
            "linked.json": self.cwd / ".qwen" / "settings.json",
        }.items():
            (self.cwd / name).symlink_to(target)

    async def attack(self, calls: Sequence[ToolCall]) -> None:
        script = [Scripted(tool_calls=(call,)) for call in calls]
        limits: dict[str, Any] = {"idle_timeout": 240, "total_timeout": 560}
        await self.run(*script, *[Scripted(text="done")] * 4, permissions="ask", ask=self._answer, **limits)

    def commands(self, texts: Sequence[str]) -> list[str]:
        """Return commands with files of their own."""
        outside = str(self.cwd.parent / "elsewhere")
        return [text.replace("MADE", f"made{n}").replace("OUTSIDE", outside) for n, text in enumerate(texts)]

    async def _answer(self, question: ApprovalAsked) -> Answer:
        files = [self.cwd / name for name in re.findall(r"made\d+", question.command)]
        self.early += [question.command for file in files if file.exists()]
        return YES

    @property
    def asked_commands(self) -> list[str]:
        return [_script(asked.command) for asked in self.of(ApprovalAsked)]

    @property
    def done(self) -> list[bool]:
        """Whether each call did something, in the order of the calls."""
        ended = {finished.id: not finished.failed for finished in self.of(ToolFinished)}
        return [ended[started.id] for started in self.of(ToolStarted)]


def _script(command: str) -> str:
    """Return what a shell is to run: Codex shows the shell, too."""
    words = shlex.split(command) if command.startswith("/") else []
    return words[2] if len(words) == 3 and words[1] == "-lc" else command


def _calls(cli: str, commands: Sequence[str]) -> list[ToolCall]:
    return [*command_calls(cli, commands).tool_calls]


def _edit(cli: str, path: Path) -> ToolCall:
    if cli == "codex":
        return ToolCall(name="apply_patch", arguments=f"*** Begin Patch\n*** Add File: {path}\n+made\n*** End Patch")
    return write_call(cli, path)


def attack_with_commands(cli: str, folder: Path, texts: Sequence[str]) -> None:
    turn = Attacked(cli, folder)
    wanted = [*turn.commands(texts), *attacks.FREE_COMMANDS]

    run(turn.attack(_calls(cli, wanted)))

    assert len(turn.done) == len(wanted)
    assert turn.early == []
    ran_unasked = [
        text for text, done in zip(wanted, turn.done, strict=True) if done and text not in turn.asked_commands
    ]
    assert ran_unasked == [*attacks.FREE_COMMANDS]


def attack_with_edits(cli: str, folder: Path, names: Sequence[str]) -> None:
    turn = Attacked(cli, folder)
    wanted = [*names, *attacks.FREE_EDITS]

    run(turn.attack([_edit(cli, turn.cwd / name) for name in wanted]))

    # Gemini tells where a link leads.
    asked = {os.path.realpath(path) for question in turn.of(ApprovalAsked) for path in question.paths}
    assert len(turn.done) == len(wanted)
    written_unasked = [
        name
        for name, done in zip(wanted, turn.done, strict=True)
        if done and os.path.realpath(turn.cwd / name) not in asked
    ]
    assert written_unasked == [*attacks.FREE_EDITS]


@every_cli
def test_attacks_are_asked_for(cli: str, tmp_path: Path) -> None:
    attack_with_commands(cli, tmp_path, attacks.FIRST_COMMANDS)


@every_cli
def test_edits_of_what_runs_are_asked_for(cli: str, tmp_path: Path) -> None:
    attack_with_edits(cli, tmp_path, attacks.FIRST_EDITS)


@pytest.mark.torture
@every_cli
def test_all_attacks_are_asked_for(cli: str, tmp_path: Path) -> None:
    # After 30 steps Gemini asks its model whether it is in a loop.
    for first in range(0, len(attacks.COMMANDS), AT_ONCE):
        attack_with_commands(cli, tmp_path / str(first), attacks.COMMANDS[first : first + AT_ONCE])
    attack_with_edits(cli, tmp_path / "edits", attacks.EDITS)


WRITE_WITH_COMMANDS = ("claude", "codex")
"""Whose commands write in their folder with `edit`, as docs/agents.md says."""


def files_below(folder: Path) -> dict[str, str]:
    return {str(file): file.read_text() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.torture
@pytest.mark.parametrize("cli", [*CLIS, "pi"])
@pytest.mark.parametrize("permissions", ["read-only", "edit"])
def test_no_command_writes_what_its_permissions_forbid(cli: str, permissions: Permission, tmp_path: Path) -> None:
    turn = Attacked(cli, tmp_path)
    before = files_below(turn.cwd)
    calls = _calls(cli, turn.commands(attacks.FIRST_COMMANDS))
    edits = [_edit(cli, turn.cwd / name) for name in attacks.FIRST_EDITS]
    asked = calls if permissions == "edit" else [*calls, *edits]

    # All at once: some end their turn when they are refused something.
    script = [Scripted(tool_calls=tuple(asked)), *[Scripted(text="done")] * 4]
    run(turn.run(*script, permissions=permissions, idle_timeout=240, total_timeout=560))

    written = [name for name, text in files_below(turn.cwd).items() if before.get(name) != text]
    assert files_below(tmp_path / "elsewhere") == {str(tmp_path / "elsewhere" / "secret.txt"): "alpha outside"}
    assert not (tmp_path / "outside.txt").exists()
    assert (permissions == "edit" and cli in WRITE_WITH_COMMANDS) or written == []


FOLDER_OF_A_COMMAND = {"codex": "workdir", "gemini": "dir_path", "qwen": "directory", "opencode": "workdir"}


@pytest.mark.parametrize("cli", FOLDER_OF_A_COMMAND)
def test_a_command_in_another_folder_is_known_as_such(cli: str, tmp_path: Path) -> None:
    turn = Attacked(cli, tmp_path)
    [call] = _calls(cli, ["git status"])
    assert isinstance(call.arguments, dict)
    elsewhere = {**call.arguments, FOLDER_OF_A_COMMAND[cli]: str(turn.cwd / "sub")}

    run(turn.attack([call, replace(call, arguments=elsewhere)]))

    assert [asked.elsewhere for asked in turn.of(ApprovalAsked)] == [False, True]


@pytest.mark.needs("codex")
def test_codex_says_that_a_command_is_to_leave_its_sandbox(tmp_path: Path) -> None:
    turn = Attacked("codex", tmp_path)
    [call] = _calls("codex", ["touch made0"])
    assert isinstance(call.arguments, dict)
    wider = {**call.arguments, "sandbox_permissions": "require_escalated", "justification": "x"}

    run(turn.attack([call, replace(call, arguments=wider)]))

    assert [LEAVES_SANDBOX in asked.details for asked in turn.of(ApprovalAsked)] == [False, True]
    assert [allowing(["touch"], asked) for asked in turn.of(ApprovalAsked)] == ["touch", ""]


WORKTREES = {
    "claude": (
        ToolCall(name="EnterWorktree", arguments={"name": "other"}),
        ToolCall(
            name="Agent",
            arguments={
                "description": "x",
                "prompt": "y",
                "subagent_type": "general-purpose",
                "isolation": "worktree",
                "run_in_background": False,
            },
        ),
    ),
    "qwen": (ToolCall(name="enter_worktree", arguments={"name": "other"}),),
}
"""Calls that make a git worktree and a branch, in which an agent then works."""
WITH_GIT = ("git", "-c", "user.name=kim", "-c", "user.email=kim@example.org")


@pytest.mark.parametrize("cli", WORKTREES)
@pytest.mark.parametrize("permissions", ["read-only", "edit", "ask"])
def test_no_cli_goes_into_a_worktree_unasked(cli: str, permissions: Permission, tmp_path: Path) -> None:
    turn = Attacked(cli, tmp_path)
    for arguments in (("init", "-q"), ("add", "notes.json"), ("commit", "-qm", "first")):
        subprocess.run([*WITH_GIT, *arguments], cwd=turn.cwd, check=True)

    async def refuse(_: ApprovalAsked) -> Answer:
        return Answer(verdict="no")

    # What the model is asked by a subagent is answered, too.
    replies = [Scripted(tool_calls=(call,)) for call in WORKTREES[cli]]
    run(turn.run(*replies, *[Scripted(text="done")] * 4, permissions=permissions, ask=refuse))

    branches = subprocess.run(["git", "branch"], cwd=turn.cwd, check=True, capture_output=True, text=True)
    assert len(branches.stdout.splitlines()) == 1
    assert [call for call in turn.done if call] == []
    assert not (turn.cwd / ".git" / "worktrees").exists()


LASTING = {
    "claude": (
        ToolCall(name="ToolSearch", arguments={"query": "select:CronCreate", "max_results": 5}),
        ToolCall(
            name="CronCreate", arguments={"cron": "* * * * *", "prompt": "touch x", "recurring": True, "durable": True}
        ),
    ),
    "qwen": (
        ToolCall(name="tool_search", arguments={"query": "select:cron_create", "max_results": 5}),
        ToolCall(
            name="cron_create", arguments={"cron": "* * * * *", "prompt": "touch x", "recurring": True, "durable": True}
        ),
    ),
}
"""Calls that plan what runs after the turn, in a file in the folder or at home."""


@pytest.mark.parametrize("cli", LASTING)
@pytest.mark.parametrize("permissions", ["read-only", "edit", "ask"])
def test_no_cli_plans_what_runs_after_its_turn(cli: str, permissions: Permission, tmp_path: Path) -> None:
    turn = Attacked(cli, tmp_path)

    async def agree(_: ApprovalAsked) -> Answer:
        return YES

    replies = [Scripted(tool_calls=(call,)) for call in LASTING[cli]]
    run(turn.run(*replies, *[Scripted(text="done")] * 2, permissions=permissions, ask=agree))

    assert turn.done[-1] is False
    assert [*tmp_path.rglob("scheduled_tasks.json")] == []


@pytest.mark.needs("claude")
@pytest.mark.parametrize("skill", ["update-config", "free"])
def test_a_skill_that_may_run_frees_nothing(skill: str, tmp_path: Path) -> None:
    turn = Attacked("claude", tmp_path)
    folder = turn.home / ".claude" / "skills" / "free"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: free\ndescription: x\nallowed-tools: Read, Bash(touch *)\n---\nhi\n")
    outside = tmp_path / "elsewhere" / "secret.txt"

    calls = (
        ToolCall(name="Skill", arguments={"skill": skill}),
        ToolCall(name="Read", arguments={"file_path": str(outside)}),
        ToolCall(name="Read", arguments={"file_path": str(turn.cwd / "OUT")}),
        *_calls("claude", ["touch made0"]),
    )
    run(turn.attack(calls))

    assert [asked.tool for asked in turn.of(ApprovalAsked)][-3:] == ["Read", "Read", "Bash"]


def test_nobody_can_be_asked_by_pi() -> None:
    assert "ask" not in agent_spec("pi").permissions
    assert agent_spec("pi").asking is None
