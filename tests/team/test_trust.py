"""Trust: who is known, how that is kept, and what a team would run."""

import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.errors import BullpenError, InvalidTeam, UnknownAgent
from bullpen.team.reader import read_team
from bullpen.team.trust import MOST_TEXTS, Runs, Trust, settings_sentences, what_it_runs

TEAM = Path("/project/team.toml")

PERSON = '[[member]]\nname = "kim"\n'


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_known_by_its_place_and_its_text(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted.json")
    assert not trust.knows(TEAM, "a")

    trust.remember(TEAM, "a")

    assert trust.knows(TEAM, "a")
    assert not trust.knows(TEAM, "a ")
    assert not trust.knows(Path("/elsewhere/team.toml"), "a")

    trust.remember(TEAM, "b")
    assert Trust(tmp_path / "trusted.json").knows(TEAM, "b")


def test_a_text_that_was_trusted_needs_no_second_yes(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted.json")
    trust.remember(TEAM, "a", {"1 .mcp.json"})
    trust.remember(TEAM, "b", {"2 .mcp.json"})

    assert (trust.knows(TEAM, "a"), trust.knows(TEAM, "b"), trust.knows(TEAM, "ab")) == (True, True, False)
    assert trust.agreed(TEAM) == {"1 .mcp.json", "2 .mcp.json"}


def test_only_the_latest_texts_are_known(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted.json")
    for text in ("first", "again", *map(str, range(MOST_TEXTS - 1)), "again"):
        trust.remember(TEAM, text)

    assert (trust.knows(TEAM, "first"), trust.knows(TEAM, "again"), trust.knows(TEAM, "0")) == (False, True, True)


def test_all_settings_are_remembered_however_many_they_are(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted.json")
    marks = {f"{number} .claude/skills/{number}/SKILL.md" for number in range(MOST_TEXTS + 50)}
    trust.remember(TEAM, "a", {"1 .env"})
    trust.remember(TEAM, "a", marks)

    assert trust.agreed(TEAM) == marks


def test_the_name_of_a_file_is_no_agreement_to_another(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted.json")
    trust.remember(TEAM, "a", {f"1 .claude/agents/a{end}2 .mcp.json" for end in "\n\r\x0b\x85\u2028"})

    assert len(trust.agreed(TEAM)) == 5
    assert "2 .mcp.json" not in trust.agreed(TEAM)


def test_a_record_of_an_earlier_version_is_known(tmp_path: Path) -> None:
    file = tmp_path / "trusted.json"
    file.write_text(json.dumps({str(TEAM): hashlib.sha256(b"a").hexdigest(), f"settings {TEAM}": "1 .env\n2 .env"}))

    assert Trust(file).knows(TEAM, "a")
    assert Trust(file).agreed(TEAM) == {"1 .env", "2 .env"}


def test_who_agreed_to_a_file_in_an_earlier_version_agreed_to_wider_rules(tmp_path: Path) -> None:
    file = tmp_path / "trusted.json"
    assert not Trust(file).has_agreed_to_wider_rules(TEAM), "a new file"

    file.write_text(json.dumps({str(TEAM): hashlib.sha256(b"a").hexdigest()}))
    assert Trust(file).has_agreed_to_wider_rules(TEAM)

    Trust(file).remember(TEAM, "b")
    assert not Trust(file).has_agreed_to_wider_rules(TEAM)


def test_only_its_owner_may_read_the_record(tmp_path: Path) -> None:
    file = tmp_path / "home" / "bullpen" / "trusted.json"
    before = os.umask(0o000)
    try:
        Trust(file).remember(TEAM, "a")
    finally:
        os.umask(before)

    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert sorted(path.name for path in file.parent.iterdir()) == ["trusted.json", "trusted.json.lock"]


def test_the_usual_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path))

    Trust().remember(TEAM, "a")

    assert list(json.loads((tmp_path / "trusted.json").read_bytes())) == [str(TEAM), f"rules {TEAM}"]


@pytest.mark.parametrize(
    "damaged",
    [b"", b"{", b"[]", b"null", b'{"/project/team.toml": 1}', b"\xff\xfe", b"[" * 100_000],
    ids=["empty", "cut", "list", "null", "number", "bytes", "deep"],
)
def test_a_damaged_record_trusts_nobody_and_is_replaced(tmp_path: Path, damaged: bytes) -> None:
    file = tmp_path / "trusted.json"
    file.write_bytes(damaged)
    assert not Trust(file).knows(TEAM, "a")

    Trust(file).remember(TEAM, "a")

    assert Trust(file).knows(TEAM, "a")


def test_a_record_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "trusted.json").mkdir()

    assert not Trust(tmp_path / "trusted.json").knows(TEAM, "a")
    with pytest.raises(BullpenError, match="cannot be written: Is a directory"):
        Trust(tmp_path / "trusted.json").remember(TEAM, "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trusted.json", "trusted.json.lock"]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    odd = Path("/project/\udcff/team.toml")

    Trust(tmp_path / "trusted.json").remember(odd, "a")

    assert Trust(tmp_path / "trusted.json").knows(odd, "a")


def test_processes_that_remember_at_once_forget_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from bullpen.team.trust import Trust\n"
        "for i in range(20): Trust(Path(sys.argv[1])).remember(Path(f'/{sys.argv[2]}/{i}'), 'a')"
    )
    file = tmp_path / "trusted.json"
    children = [subprocess.Popen([sys.executable, "-c", program, str(file), str(name)]) for name in range(4)]
    assert [child.wait() for child in children] == [0, 0, 0, 0]

    assert all(Trust(file).knows(Path(f"/{name}/{i}"), "a") for name in range(4) for i in range(20))


def test_what_a_team_would_run(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "backend").symlink_to("real")
    team = read_team(
        PERSON
        + '[[member]]\nname = "max"\nagent = "codex"\nmodel = "o9"\ncwd = "backend"\npermissions = "edit"\n'
        + 'arguments = ["--yolo"]\nenv = ["TOKEN"]\ninstruction_file = "MAX.md"\n'
        + '[[member]]\nname = "sarah"\ncommand = ["./agent", "-x"]\n'
    )

    assert what_it_runs(team, root) == (
        Runs(
            member="max",
            command=(
                *("codex", "exec", "--json", "--skip-git-repo-check", "-c", 'shell_environment_policy.inherit="core"'),
                *("-c", "project_doc_max_bytes=0"),
                *("--sandbox", "workspace-write", "--model", "o9", "--yolo", "-"),
            ),
            folder=root / "real",
            permissions="edit",
            restricted=True,
            own_arguments=("--yolo",),
            environment=("CODEX_*", "OPENAI_*", "AZURE_OPENAI_*", "TOKEN"),
            instruction_file=root / "MAX.md",
        ),
        Runs(member="sarah", command=("./agent", "-x"), folder=root, permissions="read-only", restricted=False),
    )


def test_a_team_that_cannot_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownAgent):
        what_it_runs(read_team(PERSON + '[[member]]\nname = "max"\nagent = "clade"\n'), tmp_path)
    with pytest.raises(InvalidTeam, match="would be read as an option"):
        what_it_runs(read_team(PERSON + '[[member]]\nname = "max"\nagent = "claude"\nmodel = "--x"\n'), tmp_path)


def test_allowed_commands_are_part_of_what_runs(tmp_path: Path) -> None:
    head = f'{PERSON}[[member]]\nname = "max"\nallow = ["pytest"]\nagent = '

    def runs(settings: str) -> Runs:
        return what_it_runs(read_team(head + settings), tmp_path)[0]

    assert runs('"claude"').allow == ("pytest",)
    assert "Bash(pytest),Bash(pytest *)" in runs('"claude"').command
    assert runs('"codex"').allow == ()


def test_settings_are_agreed_to_for_one_team_file(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted.json")
    trust.remember(TEAM, "a", {"1 .mcp.json", "2 .env"})

    assert trust.agreed(TEAM) == {"1 .mcp.json", "2 .env"}
    assert trust.agreed(Path("/elsewhere/team.toml")) == frozenset()


def test_all_settings_of_one_agreement_are_agreed_to(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted.json")
    marks = {f"{number} .claude/agents/{number}.md" for number in range(MOST_TEXTS + 1)}
    trust.remember(TEAM, "a", {"0 .mcp.json"})
    trust.remember(TEAM, "a", marks)

    assert trust.agreed(TEAM) == marks


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    members = (("ann", "claude", "full"), ("bob", "qwen", "edit"), ("eve", "opencode", "ask"), ("zoe", "codex", "full"))
    tables = [f'[[member]]\nname = "{name}"\nagent = "{cli}"\npermissions = "{may}"\n' for name, cli, may in members]
    team = read_team(PERSON + "".join(tables))
    (tmp_path / ".mcp.json").touch()
    (tmp_path / "opencode.json").touch()
    runs = what_it_runs(team, tmp_path)
    asks = "nobody has agreed to them; `bullpen chat` asks."

    assert settings_sentences(team, tmp_path, ()) == [
        f"ann does not get the project's settings (.mcp.json): {asks}",
        "bob does not get the project's settings (.mcp.json): its permissions are not full.",
        f"eve is not started with opencode.json: its CLI cannot leave them out, and {asks}",
    ]
    agreed = frozenset().union(*(one.settings.marks for one in runs))
    assert settings_sentences(team, tmp_path, agreed) == [
        "bob does not get the project's settings (.mcp.json): its permissions are not full."
    ]
