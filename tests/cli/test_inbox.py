"""`bullpen inbox`: what agents ask in another process, answered with one key."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.approvals import ApprovalRecord
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.terminal import Terminal

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[bytes]"]
AtTerminal = Callable[..., Terminal]
LONG = "touch " + "a" * 5_000 + " 测试"


@pytest.fixture
def asking(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Path]:
    """Write a team whose max asks before these commands."""

    def write(*commands: str) -> Path:
        program = tmp_path / "bin" / "claude"
        program.parent.mkdir()
        script = tmp_path / "script.json"
        script.write_text(json.dumps([{"ask": command} for command in commands]), encoding="utf-8")
        program.write_text(
            f'#!/bin/sh\nexec {sys.executable} -m bullpen.testing.agent --as claude --script {script} "$@"\n',
            encoding="utf-8",
        )
        program.chmod(0o755)
        environment["PATH"] = f"{program.parent}:{environment['PATH']}"
        team = tmp_path / "team.toml"
        people = "".join(f'[[member]]\nname = "{name}"\n' for name in ("kim", "lee"))
        team.write_text(f'{people}[[member]]\nname = "max"\nagent = "claude"\npermissions = "ask"\n', encoding="utf-8")
        return team

    return write


@pytest.fixture
def owner(start_bullpen: Start, asking: Callable[..., Path]) -> Callable[..., "subprocess.Popen[bytes]"]:
    """Start a process that owns a conversation in which max asks."""

    def start(*commands: str) -> "subprocess.Popen[bytes]":
        asking(*commands)
        return start_bullpen("run", "--trust", "--approve", "ask", "--as", "kim", "team.toml", "@max go")

    return start


def records(home: Path) -> list[ApprovalRecord]:
    with SqliteStore(home / "data" / "conversations.db") as store:
        return [one for stored in store.conversations() for one in store.approvals(stored.id)]


def until_asked(bullpen: Run, count: int = 1) -> "subprocess.CompletedProcess[str]":
    """Look until this much waits."""
    while len(json.loads((done := bullpen("inbox", "--json")).stdout)) < count:
        time.sleep(0.02)
    return done


def test_an_empty_inbox_says_so(bullpen: Run) -> None:
    done = bullpen("inbox")

    assert (done.returncode, done.stdout) == (
        0,
        "Nothing waits for you. Agents that ask appear here while a conversation is open.\n",
    )
    assert bullpen("inbox", "--json").stdout == "[]\n"


def test_without_a_terminal_it_prints_everything_and_says_by_its_exit_code_that_something_waits(
    owner: Start, bullpen: Run
) -> None:
    owner(LONG)
    [item] = json.loads(until_asked(bullpen).stdout)
    done = bullpen("inbox")

    assert item["decision"]["shown"] == LONG
    assert (item["people"], item["decision"]["member"]) == (["kim", "lee"], "max")
    assert done.returncode == 3
    assert done.stdout.startswith("max wants to run a command in ")
    length = f"That is 1 line and {len(LONG):,} characters: read it from the first to the last."
    assert f"{length}\n" in done.stdout.partition(LONG)[0]
    assert f"\n  {LONG}\n{length}\n  /yes  yes, this once\n" in done.stdout
    assert "\n  /no REASON  no, and tell it why\n" in done.stdout
    assert done.stdout.endswith("\nTo answer, run this in a terminal: bullpen inbox\n")


def test_a_yes_in_another_terminal_reaches_the_owner(
    owner: Start, bullpen: Run, at_terminal: AtTerminal, home: Path
) -> None:
    running = owner("touch a", "touch b")
    until_asked(bullpen)
    desk = at_terminal("inbox", "--watch", "--as", "lee")
    desk.wait_for("touch a", "Enter: later")
    assert desk.screen.title == "◆ (1) inbox · bullpen"
    desk.press("y")
    desk.wait_for("lee said yes to max: touch a.", "touch b")
    desk.wait_until(lambda: desk.screen.text.count("Enter: later") == 2)
    desk.press("n")
    desk.wait_for("Why not?")
    desk.press("not on a Friday\n")
    desk.wait_for("lee said no to max: touch b (not on a Friday).", "Nothing new waits for you.")
    desk.press("q")

    assert desk.leave() == 0
    assert running.communicate(timeout=60)[0].decode().count("not on a Friday") >= 1
    answers = [(one.answer.verdict, one.by, one.answer.reason) for one in records(home) if one.answer]
    assert answers == [("yes", "lee", ""), ("no", "lee", "not on a Friday")]
    assert desk.screen.bells >= 2


def test_who_is_second_is_told(owner: Start, bullpen: Run, at_terminal: AtTerminal) -> None:
    owner("touch a")
    until_asked(bullpen)
    first, second = at_terminal("inbox", "--as", "kim"), at_terminal("inbox", "--as", "lee")
    first.wait_for("Enter: later")
    second.wait_for("Enter: later")
    first.press("y")
    first.wait_for("kim said yes to max: touch a.")
    second.wait_for("kim said yes to max: touch a. It waits no more.")

    assert (first.leave(), second.leave()) == (0, 0)


def test_a_command_can_be_typed_and_what_was_typed_before_is_no_answer(
    owner: Start, bullpen: Run, at_terminal: AtTerminal, home: Path
) -> None:
    owner("touch a")
    until_asked(bullpen)
    desk = at_terminal("inbox", "--as", "lee")
    # Before anything is on the screen, and as a paste.
    desk.press("y")
    desk.wait_for("Enter: later")
    desk.press("\x1b[200~y\x1b[201~")
    desk.press("/")
    desk.press("yes conversation\n")
    desk.wait_for("lee said yes to max: touch a, also for the rest of this conversation.")

    assert desk.leave() == 0
    assert [(one.scope, one.by) for one in records(home) if one.answer] == [("conversation", "lee")]


def test_an_answer_that_a_reply_offers_is_given_with_its_number(
    tmp_path: Path, bullpen: Run, at_terminal: AtTerminal
) -> None:
    asks_once = (
        "cat > /dev/null; [ -e asked ] && echo Fine. && exit; touch asked; echo 'Ship it? [ASK: yes | no | later]'"
    )
    member = f'[[member]]\nname = "max"\ncommand = {json.dumps(["sh", "-c", asks_once])}\n'
    (tmp_path / "team.toml").write_text(f'[[member]]\nname = "kim"\n{member}', encoding="utf-8")
    with at_terminal("chat", "--plain", "--trust", "team.toml") as chat:
        chat.wait_for("kim")
        chat.press("@max go\r")
        until_asked(bullpen)
        first, second = at_terminal("inbox"), at_terminal("inbox")
        first.wait_for("Ship it?", "2  no", "Enter: later")
        second.wait_for("Enter: later")
        first.press("2")
        first.wait_for("kim answered max: no.")
        second.wait_for("kim answered max: no. It waits no more.")
        assert (first.leave(), second.leave()) == (0, 0)
        chat.press("\x04")
        assert chat.leave() == 0


def test_an_answer_that_a_reply_offered_is_given_also_when_nobody_has_its_conversation_open(
    write_team: Callable[..., Path], bullpen: Run, at_terminal: AtTerminal
) -> None:
    write_team(max="Ship it? [ASK: yes | no]")
    assert bullpen("run", "--trust", "team.toml", "@max go").returncode == 3
    write_team(max="Shipped.")

    (listed,) = json.loads(bullpen("sessions", "--json").stdout)
    printed = bullpen("inbox")
    assert (listed["activity"], printed.returncode) == ("waits", 3)
    assert "max asks you (turn 1)." in printed.stdout
    assert "nobody has it open" in printed.stdout
    assert "/yes 1 no" in printed.stdout

    desk = at_terminal("inbox", "--as", "kim")
    desk.wait_for("Ship it?", "2  no", "Enter: later")
    desk.press("2")
    # Its team file is another one now.
    desk.wait_for("Run it?")
    desk.press("y\r")
    desk.wait_for("Shipped.", "Nothing waits for you")
    assert desk.leave() == 0
    assert bullpen("inbox").returncode == 0


def test_a_turn_that_failed_is_decided_also_when_nobody_has_its_conversation_open(
    write_team: Callable[..., Path], bullpen: Run, at_terminal: AtTerminal
) -> None:
    write_team(max=[{"exit": 1}])
    assert bullpen("run", "--trust", "team.toml", "@max go").returncode == 3

    desk = at_terminal("inbox")
    desk.wait_for("2  Skip", "Enter: later")
    desk.press("/")
    desk.press("skip all\r")
    desk.wait_for("Nothing waits for you")
    assert desk.leave() == 0


def test_who_decides_about_a_turn_that_failed_is_told_what_became_of_it(
    write_team: Callable[..., Path], bullpen: Run, at_terminal: AtTerminal, home: Path
) -> None:
    write_team(max=[{"exit": 1}], ben=[{"exit": 1}])
    with at_terminal("chat", "--plain", "--trust", "team.toml") as chat:
        chat.wait_for("kim")
        chat.press("[NEXT: max & ben] go\r")
        waiting = json.loads(until_asked(bullpen, 2).stdout)
        with SqliteStore(home / "data" / "conversations.db") as store:
            (stored,) = store.conversations()
            ended = [store.turn(stored.id, item["decision"]["turn"]).ended_at for item in waiting]
        assert [item["since"] for item in waiting] == ended
        desk = at_terminal("inbox")
        desk.wait_for("1  Retry", "2  Skip", "Enter: later (1 more)")
        desk.press("2")
        desk.wait_for("kim decided: skip.", "Enter: later ·")
        desk.press("2")
        assert desk.leave() == 0
        chat.press("\x04")
        assert chat.leave() == 0


def test_an_agent_cannot_answer(owner: Start, bullpen: Run, environment: dict[str, str]) -> None:
    owner("touch a")
    until_asked(bullpen)
    environment["BULLPEN_TURN"] = "1"
    done = bullpen("inbox")

    assert done.returncode == 1
    assert "an agent cannot answer" in done.stderr


def test_somebody_who_is_not_in_the_team_cannot_answer(owner: Start, bullpen: Run, at_terminal: AtTerminal) -> None:
    owner("touch a")
    until_asked(bullpen)
    desk = at_terminal("inbox", "--as", "eve")
    desk.wait_for("Enter: later")
    desk.press("y")
    desk.wait_until(lambda: desk.screen.text.count("Enter: later") == 2)
    assert "! " in desk.screen.text
    desk.press("q")

    assert desk.leave() == 3


def test_who_runs_a_message_unattended_reads_what_was_refused_and_why(
    bullpen: Run, asking: Callable[..., Path]
) -> None:
    asking("touch a", "touch a", "touch b")

    done = bullpen("run", "--trust", "--as", "kim", "team.toml", "@max go")

    said = done.stdout + done.stderr
    assert said.count("max: touch a: no, since nobody can be asked") == 1
    assert said.count("max: touch b: no, since nobody can be asked") == 1
