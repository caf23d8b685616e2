"""bullpen import --from, with sessions that the genuine CLIs wrote."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.exchange.recorded_sessions import FIRST, FOLDER, HOMES, TYPED, copy_homes, session_files

from bullpen.cli import main
from bullpen.store.base import StoredConversation
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_TEAM

Printed = pytest.CaptureFixture[str]
every_cli = pytest.mark.parametrize("cli", HOMES)


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.setenv("TZ", "UTC")
    return copy_homes(tmp_path / "homes", monkeypatch)


def imported(database: Path) -> StoredConversation:
    with SqliteStore(database) as store:
        (conversation,) = store.conversations()
        return conversation


def speakers(database: Path) -> list[tuple[str, str, str]]:
    with SqliteStore(database) as store:
        (conversation,) = store.conversations()
        said_by = [stored.message.speaker for stored in store.messages(conversation.id)]
    return [(speaker.role_id, speaker.role_name, speaker.type) for speaker in said_by]


@every_cli
def test_a_session_becomes_a_conversation(cli: str, empty_home: Path, homes: dict[str, Path], capsys: Printed) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in session_files(homes[cli])}

    assert main(["import", "--from", cli, FIRST[cli]]) == 0

    printed = capsys.readouterr().out
    conversation = imported(empty_home)
    count = 5 if cli == "gemini" else 6
    assert printed == (
        f"Imported {count} messages of {cli}'s session {FIRST[cli]}.\n"
        f"Read it with: bullpen sessions show {conversation.id}\n"
        f"Continue it with: bullpen chat TEAM.toml --resume {conversation.id}\n"
    )
    assert (conversation.team, conversation.team_file, conversation.paused) == ("imported", "", None)
    assert speakers(empty_home)[:2] == [("you", "you", "human"), (cli, cli, "ai")]
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in session_files(homes[cli])} == before


@every_cli
def test_a_conversation_remembers_which_session_it_was(
    cli: str, empty_home: Path, homes: dict[str, Path], capsys: Printed
) -> None:
    main(["import", "--from", cli, TYPED[cli]])

    extra = imported(empty_home).extra
    assert extra is not None
    file = Path(extra["importedFrom"].pop("file"))
    assert file in session_files(homes[cli])
    assert extra["importedFrom"].pop("fileMark")["size"] == file.stat().st_size
    count = imported(empty_home).messages
    about = {"cli": cli, "sessionId": TYPED[cli], "folder": FOLDER, "member": cli, "messages": count}
    assert extra == {"importedFrom": about}

    capsys.readouterr()
    main(["sessions", "export", "last", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["importedFrom"]["sessionId"] == TYPED[cli]


def test_the_messages_are_shown_with_their_times(capsys: Printed) -> None:
    main(["import", "--from", "codex", "01a1e405"])
    capsys.readouterr()

    assert main(["sessions", "show", "last"]) == 0

    assert (
        "#2  codex  2026-03-02 11:02\n"
        "  I will read it.\n\n"
        "  (used 2 tools: exec_command cat notes.txt; exec_command echo 你好 && ls)\n\n"
        "  文件有两行：alpha 和 beta。\n"
    ) in capsys.readouterr().out


def test_without_a_team_it_says_who_could_remember_it(empty_home: Path, capsys: Printed) -> None:
    assert main(["import", "--from", "claude", FIRST["claude"]]) == 0
    capsys.readouterr()

    assert main(["sessions", "show", "--memory"]) == 0

    id_ = imported(empty_home).id
    assert capsys.readouterr().out == (
        f"{id_}  team imported: what its agents remember\n"
        f"  It has no agents yet. Continue it with a team: bullpen chat TEAM.toml --resume {id_}\n"
    )


def test_the_team_here_continues_with_the_member_who_is_that_agent(empty_home: Path, capsys: Printed) -> None:
    Path("team.toml").write_text(EXAMPLE_TEAM)

    assert main(["import", "--from", "claude", FIRST["claude"]]) == 0

    conversation = imported(empty_home)
    assert (conversation.team, conversation.team_path) == ("Builders", str(Path("team.toml").absolute()))
    assert speakers(empty_home)[:2] == [("kai", "Kai", "human"), ("max", "Max", "ai")]
    printed = capsys.readouterr().out
    assert "What claude said is now from Max of your team.\n" in printed
    assert f"Continue it with: bullpen chat --resume {conversation.id}\n" in printed


def test_another_agent_is_given_what_was_said(capsys: Printed) -> None:
    Path("team.toml").write_text(EXAMPLE_TEAM.replace("max_bytes = 300\n", ""))
    main(["import", "--from", "claude", FIRST["claude"]])
    capsys.readouterr()

    assert main(["preview", "--to", "sarah", "--session", "last", "Please review it."]) == 0

    prompt = capsys.readouterr().out
    assert "(used 1 tool: Read /nowhere/x.txt (failed))" in prompt
    assert "That file does not exist." in prompt
    assert "Please review it." in prompt


def test_a_conversation_that_was_imported_goes_on(
    bullpen: Callable[..., subprocess.CompletedProcess[str]],
    write_team: Callable[..., Path],
    environment: dict[str, str],
    homes: dict[str, Path],
) -> None:
    write_team(bob="I have read it: well done.")
    environment[HOMES["qwen"]] = str(homes["qwen"])

    assert bullpen("import", "--from", "qwen", FIRST["qwen"]).returncode == 0
    done = bullpen("run", "--resume", "last", "--trust", "@bob please review this")

    assert done.returncode == 0, done.stderr
    assert "I have read it: well done." in done.stdout
    assert "#8  bob" in bullpen("sessions", "show", "last").stdout


@pytest.mark.parametrize(
    ("options", "agent"),
    [([], "gemini"), (["--as", "sarah"], "sarah"), (["--as", "Max"], "max")],
)
def test_a_member_can_be_named(empty_home: Path, capsys: Printed, options: list[str], agent: str) -> None:
    Path("other.toml").write_text(EXAMPLE_TEAM)

    assert main(["import", "--from", "gemini", FIRST["gemini"], "--team", "other.toml", *options]) == 0

    assert speakers(empty_home)[1][0] == agent
    remark = "No single member of your team is gemini: --as NAME would name one.\n"
    assert (remark in capsys.readouterr().out) == (not options)


def test_two_members_with_the_same_agent_are_not_confused(empty_home: Path) -> None:
    Path("team.toml").write_text(EXAMPLE_TEAM.replace('agent = "codex"', 'agent = "claude-code"'))

    main(["import", "--from", "claude", FIRST["claude"]])

    assert speakers(empty_home)[1] == ("claude", "claude", "ai")


def test_importing_it_again_makes_another_and_says_so(empty_home: Path, capsys: Printed) -> None:
    main(["import", "--from", "claude", "last"])
    first = imported(empty_home).id

    assert main(["import", "--from", "claude", "last"]) == 0

    assert f"The same messages are stored already, as {first}. This is another copy." in capsys.readouterr().out


def test_what_could_not_be_read_is_said(homes: dict[str, Path], capsys: Printed) -> None:
    for file in session_files(homes["codex"]):
        if FIRST["codex"] in file.name:
            file.unlink()
        else:
            file.write_bytes(file.read_bytes() + b'{"cut')

    assert main(["import", "--from", "codex", "01a1e40c"]) == 0

    printed = capsys.readouterr().out
    assert "1 line of its file could not be read and was left out.\n" in printed
    assert f"Its beginning is in the session {FIRST['codex']}, which is gone.\n" in printed


def test_sessions_are_listed_the_newest_first(capsys: Printed) -> None:
    assert main(["import", "--from", "claude", "--list"]) == 0

    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    assert [row[:2] for row in rows[:3]] == [["from", "id"], ["claude", "ec189aca"], ["claude", "11111111"]]
    assert [row[3:5] for row in rows[1:3]] == [["14", FOLDER], ["6", FOLDER]]
    assert "Please read notes.txt. 请用中文总结。😀\n" in printed
    assert printed.endswith("Import one with: bullpen import --from claude ID\n")
    main(["import", "--from", "claude"])
    assert capsys.readouterr().out == printed


def test_the_sessions_of_all_clis_are_listed_those_of_this_folder_first(
    homes: dict[str, Path], capsys: Printed
) -> None:
    here = str(Path.cwd())
    for file in session_files(homes["qwen"]):
        file.write_bytes(file.read_bytes().replace(FOLDER.encode(), here.encode()))

    assert main(["import", "--list"]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert [row[0] for row in rows[:2]] == ["qwen", "qwen"]
    assert [row[4] for row in rows[:2]] == ["here", "here"]
    assert {row[0] for row in rows} == set(HOMES)
    assert here not in [row[4] for row in rows]


def test_what_was_said_cannot_command_the_terminal(homes: dict[str, Path], capsys: Printed) -> None:
    for file in session_files(homes["claude"]):
        file.write_bytes(file.read_bytes().replace(b"Please read", b"\\u001b]0;title\\u0007\\u001b[31mPlease"))

    main(["import", "--from", "claude", "--list"])

    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "Name a file, or with --from a CLI."),
        (["--list", "x.json"], 2, "--list imports nothing: leave out 'x.json', or --list."),
        (["x.json", "--as", "max"], 2, "--as is for sessions of a CLI: name it with --from."),
        (["--from", "claude", "nothing"], 1, "claude has no session 'nothing'."),
        (
            ["--from", "claude", "last", "--as", "max"],
            1,
            "Nobody can be 'max' without a team file: name one with --team.",
        ),
        (["--from", "claude", "last", "--team", "t.toml", "--as", "mux"], 1, "Did you mean max?"),
        (["--from", "claude", "last", "--team", "t.toml", "--as", "kai"], 1, "kai is not an agent"),
        (["--from", "claude", "last", "--team", "missing.toml"], 1, "There is no team file missing.toml."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    empty_home: Path, capsys: Printed, words: list[str], code: int, said: str
) -> None:
    Path("t.toml").write_text(EXAMPLE_TEAM)

    assert main(["import", *words]) == code

    assert said in capsys.readouterr().err
    assert not empty_home.exists()


def test_a_session_in_which_nothing_was_said_is_refused(
    empty_home: Path, homes: dict[str, Path], capsys: Printed
) -> None:
    file = homes["claude"] / "projects" / "-x" / "99999999-2222-4333-8444-555555555501.jsonl"
    file.parent.mkdir()
    file.write_text('{"type":"mode"}\n')

    assert main(["import", "--from", "claude", "9999"]) == 1

    said = "This cannot be imported: nobody said anything in the session 99999999-2222-4333-8444-555555555501."
    assert said in capsys.readouterr().err
    assert not empty_home.exists()


def test_no_sessions_are_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    for variable in HOMES.values():
        monkeypatch.setenv(variable, str(tmp_path / "nothing"))

    assert main(["import", "--list"]) == 0

    assert re.match(
        r"No session of claude, codex, gemini or qwen was found, or none that can be read", capsys.readouterr().out
    )
