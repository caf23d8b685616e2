"""bullpen check: everything at once, for people and for programs."""

import json
import sys
from pathlib import Path

import pytest

from bullpen.cli import main
from bullpen.config import standing_answers_file, trust_file

GOOD = f"""\
[[member]]
name = "kim"
[[member]]
name = "max"
command = ["{sys.executable}"]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_that_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(GOOD)

    assert main(["check"]) == 0
    assert capsys.readouterr().out == "team.toml is fine. Next: bullpen chat team.toml\n"


@pytest.mark.parametrize(
    ("template", "then"),
    [
        ("second-opinion", "bullpen hook install 'our team.toml'"),
        ("triage", """bullpen run 'our team.toml' "Why did this fail?" --attach ci.log"""),
        ("debate", "bullpen chat 'our team.toml'"),
    ],
)
def test_what_comes_next_is_what_init_said(template: str, then: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "our team.toml", "--scripted", "--template", template]) == 0
    assert capsys.readouterr().out.endswith(f"  {then}\n")

    assert main(["check", "our team.toml"]) == 0
    assert capsys.readouterr().out.endswith(f"our team.toml is fine. Next: {then}\n")


def test_it_does_not_promise_that_agents_are_signed_in(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "codex").write_text("#!/bin/sh\n")
    (folder / "codex").chmod(0o755)
    Path("team.toml").write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "codex"\n')

    assert main(["check"]) == 0
    assert capsys.readouterr().out == (
        "team.toml is fine. Next: bullpen doctor (are its agents signed in?), then bullpen chat team.toml\n"
    )


def test_a_member_in_a_pool_is_said_to_need_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(GOOD + 'pool = "gpu-box"\n')

    assert main(["check"]) == 0
    said = capsys.readouterr().out
    assert "its turns run on workers of 'gpu-box', which needs `bullpen serve --cluster`" in said
    assert said.endswith("team.toml is fine. Next: bullpen serve team.toml --cluster ADDRESS\n")


def test_a_member_further_down_on_a_worker_is_said_to_get_the_rule_files_at_the_top(
    capsys: pytest.CaptureFixture[str],
) -> None:
    member = '[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\npool = "gpu-box"\n'
    for cwd, is_said in (("app/backend", True), ("app", False)):
        Path("team.toml").write_text(f'{member}cwd = "{cwd}"\n')
        assert main(["check"]) == 0
        assert ("at the top of the worker's folder only" in capsys.readouterr().out) is is_said


def test_warnings_are_said_and_are_not_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my team.toml").write_text(GOOD + 'env = ["TOKEN"]\n')

    assert main(["check", "my team.toml"]) == 0
    assert capsys.readouterr().out == (
        "my team.toml:6: warning: member.2.env: TOKEN is not set, so it cannot be passed on\n"
        "my team.toml is fine. Next: bullpen chat 'my team.toml'\n"
    )


def test_what_the_file_and_what_the_machine_says_comes_at_once(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    Path("team.toml").write_text('naem = "x"\n' + GOOD + 'window = "5"\ncwd = "none"\n')

    assert main(["check"]) == 1
    assert capsys.readouterr().out == (
        "team.toml:1: error: naem: there is no such key. Did you mean name?\n"
        "team.toml:7: error: member.2.window: must be a whole number of at least 0, not '5'\n"
        f"team.toml:8: error: member.2.cwd: there is no folder {folder}/none\n"
        "team.toml cannot be used: 3 errors.\n"
    )


def test_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(GOOD + 'modle = "x"\n')

    assert main(["check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "file": "team.toml",
        "ok": False,
        "problems": [
            {
                "severity": "error",
                "line": 6,
                "key": "member.2.modle",
                "text": "there is no such key. Did you mean model or role?",
            }
        ],
        "hand_overs": {},
    }


BOSS = f'[[member]]\nname = "boss"\ncommand = ["{sys.executable}"]\npermissions = "full"\n'


def test_who_can_hand_over_to_whom(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(GOOD + BOSS)

    assert main(["check"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "max (a command: not restricted) can hand over to boss (full) only with a person's yes.",
        "boss (full) can hand over to max.",
        "team.toml is fine. Next: bullpen chat team.toml",
    ]
    assert main(["check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hand_overs"] == {
        "max": {"freely": [], "if_allowed": ["boss"]},
        "boss": {"freely": ["max"], "if_allowed": []},
    }


def test_nothing_is_said_about_hand_overs_in_a_file_that_cannot_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(GOOD + 'modle = "x"\n' + BOSS)

    assert main(["check"]) == 1
    assert "hand over to max" not in capsys.readouterr().out


def test_a_team_that_other_commands_run_is_not_said_to_be_unusable(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(GOOD + 'permissions = "edit"\n[[member]]\nname = "sarah"\ncommand = ["nowhere"]\n')

    assert main(["check"]) == 1
    said = capsys.readouterr().out
    assert "error: member.3.command: the program 'nowhere' was not found." in said
    assert said.endswith("team.toml can be used, but not all of it works: 1 error.\n")
    assert main(["check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["hand_overs"] == {}


def test_json_about_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == [
        {"severity": "error", "line": None, "key": "", "text": "There is no file team.toml. `bullpen init` writes one."}
    ]


def test_a_file_that_is_not_there_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 1
    assert capsys.readouterr().err == "bullpen: There is no file team.toml. `bullpen init` writes one.\n"


def test_text_that_is_no_toml(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(GOOD + "[[member]\n")

    assert main(["check"]) == 1
    assert capsys.readouterr().out.startswith("team.toml:6: error: this is not valid TOML: ")


def test_nothing_in_a_file_reaches_the_terminal_but_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(GOOD + '"\\u001b[31m\\nkey" = 1\ncwd = "\\u001b[2J\\nx is fine"\n')

    assert main(["check"]) == 1

    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert len(printed.splitlines()) == 3


def test_a_member_that_is_half_written_is_looked_at_as_far_as_possible(capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text('[[member]]\nname = "kim"\n[[member]]\ntype = "ai"\ncwd = "none"\nagent = 3\n')

    assert main(["check"]) == 1

    printed = capsys.readouterr().out
    assert "has no name" in printed
    assert "must be a string, not 3" in printed
    assert "there is no folder" in printed


def test_a_member_that_edits_on_a_node_beside_others_in_pools_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    in_pool = '[[member]]\nname = "lea"\nagent = "claude"\npool = "gpu-box"\npermissions = "edit"\n'
    local = '[[member]]\nname = "max"\nagent = "claude"\npermissions = "edit"\n'
    Path("team.toml").write_text(f'name = "shop"\n[[member]]\nname = "kim"\n{local}{in_pool}')

    main(["check"])
    said = capsys.readouterr().out
    assert "team.toml:7: warning: member.2.permissions: max is in no pool, so it runs on the node" in said
    assert "lea is in no pool" not in said
    assert "edit the same files" not in said

    Path("team.toml").write_text(f'name = "shop"\n[[member]]\nname = "kim"\n{local}')
    main(["check"])
    assert "in no pool" not in capsys.readouterr().out


def test_who_can_stand_in_is_said(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for name in ("claude", "codex"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    team = '[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\nstand_in = ["codex", "gemini"]\n'
    Path("team.toml").write_text(team)

    assert main(["check"]) == 0
    said = capsys.readouterr().out
    assert "codex can stand in for max, if signed in.\n" in said
    assert "warning: member.2.stand_in: gemini is not ready: the program 'gemini' was not found." in said


def test_a_command_has_stand_ins_as_others_have(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    first = f'name = "max"\ncommand = ["{sys.executable}"]\nstand_in = ["eva"]\n'
    Path("team.toml").write_text(
        f'[[member]]\nname = "kim"\n[[member]]\n{first}[[member]]\nname = "eva"\ncommand = ["{sys.executable}"]\n'
    )
    assert main(["check"]) == 0
    said = capsys.readouterr().out
    assert "warning" not in said
    assert "eva can stand in for max.\n" in said, "a command has no login"


def test_rules_and_answers_that_allow_less_than_before(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "claude").write_text("#!/bin/sh\n")
    (folder / "claude").chmod(0o755)
    Path("team.toml").write_text(
        'name = "shop"\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\npermissions = "ask"\n'
        'allow = ["git diff*", "ruff check"]\nsystem_instruction = "x"\n',
        encoding="utf-8",
    )
    wide = {"event": "approval_asked", "id": "", "kind": "edit", "tool": "Edit", "paths": ["a.py"], "folder": "/x"}
    exact = {**wide, "diff": "+x", "folder": "", "kind": "command", "command": "make", "paths": []}
    kept = standing_answers_file()
    kept.parent.mkdir(parents=True, exist_ok=True)
    team = str(Path("team.toml").absolute())
    kept.write_text(json.dumps({team: {"max": [wide, exact]}}), encoding="utf-8")

    def said() -> list[str]:
        assert main(["check"]) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("max: ")]

    wider = "max: your earlier “always” was wider than what you were shown, so you are asked again: a.py"
    assert said() == [wider], "nobody has used this file while its rules allowed more"

    trust_file().write_text(json.dumps({team: "0" * 64}), encoding="utf-8")
    assert said() == [
        (
            "max: allow 'git diff*' allowed any command that begins with 'git diff', also within a word, with any "
            "options; now it allows 'git diff' as whole words, without options or subcommands that "
            "run or write something."
        ),
        wider,
    ]
