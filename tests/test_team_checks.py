"""What only the machine knows to be wrong with a team: real folders, files and programs."""

import os
import sys
from pathlib import Path

import pytest

from bullpen.team_checks import MAX_INSTRUCTION_BYTES, check_team
from bullpen.team_reading import read_team

HEAD = '[[member]]\nname = "kim"\n[[member]]\nname = "max"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program that is called claude."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    return tmp_path


def found(folder: Path, text: str, *, head: str = HEAD, **environ: str) -> list[str]:
    whole = head + text
    environ = {"PATH": str(folder / "bin"), **environ}
    problems = check_team(read_team(whole), folder, environ=environ, text=whole)
    return [f"{problem.severity}: {problem}".replace(str(folder), "ROOT") for problem in problems]


def test_a_team_that_can_work(folder: Path) -> None:
    assert found(folder, 'agent = "claude"\n') == []
    assert found(folder, f'command = ["{sys.executable}"]\n') == []


def test_an_agent_type_that_nobody_knows(folder: Path) -> None:
    [close] = found(folder, 'agent = "clade"\n')
    assert close.startswith(
        "error: line 5, member.2.agent: there is no agent type 'clade'. Did you mean claude or claude-code"
    )

    [far] = found(folder, 'agent = "zzz"\n')
    assert "Known are: claude, claude-code, codex" in far
    assert far.endswith('Any other program goes into command = ["program"]')


def test_programs_that_are_not_there(folder: Path) -> None:
    assert found(folder, 'agent = "codex"\n') == [
        (
            "error: line 5, member.2.agent: the program 'codex' was not found. "
            "Install it with: npm install -g @openai/codex"
        )
    ]
    assert found(folder, 'command = ["./agent"]\n') == [
        (
            "error: line 5, member.2.command: the program './agent' was not found. "
            "Check the command './agent' in your team file, and your PATH."
        )
    ]


def test_a_program_is_looked_for_in_the_folder_of_its_member(folder: Path) -> None:
    assert found(folder, 'command = ["./claude"]\ncwd = "bin"\n') == []


def test_folders_that_cannot_be_worked_in(folder: Path) -> None:
    (folder / "file").touch()

    assert found(folder, 'agent = "claude"\ncwd = "none"\n') == [
        "error: line 6, member.2.cwd: there is no folder ROOT/none"
    ]
    assert found(folder, 'agent = "claude"\ncwd = "file"\n') == ["error: line 6, member.2.cwd: ROOT/file is no folder"]
    assert found(folder, 'agent = "claude"\ncwd = "file/below"\n') == [
        "error: line 6, member.2.cwd: there is no folder ROOT/file/below"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(folder: Path) -> None:
    (folder / "shut").mkdir(mode=0o000)
    (folder / "SHUT.md").touch(mode=0o000)

    assert found(folder, 'agent = "claude"\ncwd = "shut"\ninstruction_file = "SHUT.md"\n') == [
        "error: line 6, member.2.cwd: ROOT/shut may not be read",
        "error: line 7, member.2.instruction_file: 'SHUT.md' may not be read",
    ]
    (folder / "shut").chmod(0o700)


def test_instruction_files(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "SECRET.md"
    outside.touch()
    (folder / "LINK.md").symlink_to(outside)
    (folder / "LOOP.md").symlink_to("LOOP.md")
    (folder / "BIG.md").write_bytes(b"x" * (MAX_INSTRUCTION_BYTES + 1))
    (folder / "GOOD.md").write_bytes(b"x" * MAX_INSTRUCTION_BYTES)
    agent = 'agent = "claude"\n'

    def reason(name: str, head: str = "") -> str:
        [problem] = found(folder, f'{agent}instruction_file = "{name}"\n', head=head + HEAD) or [": : fine"]
        return problem.split(": ", 2)[2]

    stays_inside = "lies outside the folder of the team file. Move it, or set outside_files = true"
    assert reason("GOOD.md") == "fine"
    assert reason("LINK.md") == f"'LINK.md' {stays_inside}"
    assert reason(str(outside)) == f"'{outside}' {stays_inside}"
    assert reason("LINK.md", "outside_files = true\n") == "fine"
    assert reason("NONE.md") == "there is no file 'NONE.md' in the folder of the team file"
    assert reason("LOOP.md") == "there is no file 'LOOP.md' in the folder of the team file"
    assert reason("bin") == "'bin' is no ordinary file"
    assert reason("BIG.md") == "'BIG.md' has 262,145 bytes, and at most 262,144 are read"
    assert found(folder, agent, head='instruction_file = "NONE.md"\n' + HEAD) == [
        "error: line 1, instruction_file: there is no file 'NONE.md' in the folder of the team file"
    ]
    assert found(folder, f"{agent}instruction_file = false\n") == []


def test_variables_that_are_not_set_are_a_warning(folder: Path) -> None:
    text = 'agent = "claude"\nenv = ["TOKEN", "OTHER"]\n'

    assert found(folder, text, TOKEN="x") == [
        "warning: line 6, member.2.env: OTHER is not set, so it cannot be passed on"
    ]


def test_what_permissions_mean(folder: Path) -> None:
    assert found(folder, 'agent = "claude"\npermissions = "full"\n') == [
        "remark: line 6, member.2.permissions: this agent may run any command and change any file without being asked"
    ]
    assert found(folder, f'command = ["{sys.executable}"]\npermissions = "full"\n') == [
        "warning: line 6, member.2.permissions: has no effect: what a command may do is its own affair"
    ]


def test_models(folder: Path) -> None:
    assert found(folder, 'agent = "claude"\nmodel = "--evil"\n') == [
        "error: line 6, member.2.model: '--evil' is no name of a model: it would be taken for an option"
    ]
    assert found(folder, f'command = ["{sys.executable}"]\nmodel = "opus"\n') == [
        "warning: line 6, member.2.model: has no effect: this program takes no model from us"
    ]
