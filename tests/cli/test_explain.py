"""bullpen explain, on a real file."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from tests import forked
from tests.view.remembering import FIRST, GONE, write_remembering

from bullpen.cli import main
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID

Printed = pytest.CaptureFixture[str]

TURN_3 = """\
Turn 3 of quiet-river-4f2a: sarah, done
  answers   #5 Kai: Sarah, please review it, and Max, please write the test.
  started   2025-03-03 09:04:01, took 12 s
  used      1.2k tokens in (900 of them cached), 85 out, $0.0123
  command   openai-codex --json -

What it saw
  #5 Kai, 56 bytes: Sarah, please review it, and Max, please write the test.

What it did not see
  1 message (#1) was not offered: its window is 3.
  #2 Max, 58 bytes (did not fit into 300 bytes): With the login: one form, one cookie, and a test for each.
  #3 Kai, 30 bytes (did not fit into 300 bytes): Cookie or token? 你怎么看?
  #4 Max, 164 bytes (did not fit into 300 bytes): A cookie. set_cookie(🍪) I have written a long report about …

Size: 121 of 300 bytes
  system              23
  team task           28
  message             66
  separators           4

Word for word: bullpen explain 3 --session quiet-river-4f2a --prompt
"""


def printed(capsys: Printed, *words: str) -> str:
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


def refused(capsys: Printed, *words: str) -> str:
    assert main(["explain", *words]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("words", [["3"], ["3", "--session", "q"], ["#6"]])
def test_what_an_agent_saw(database: Path, capsys: Printed, words: list[str]) -> None:
    assert printed(capsys, *words) == TURN_3


def test_the_command_that_is_named_reads_the_same_file(database: Path, capsys: Printed) -> None:
    other = database.rename(database.with_name("other file.db"))
    named = printed(capsys, "3", "--db", str(other)).rpartition("Word for word: ")[2]
    program, command, *words = shlex.split(named)

    assert (program, command) == ("bullpen", "explain")
    assert "[MESSAGE]" in printed(capsys, *words)


def test_the_command_that_is_named_is_where_it_was_called(
    database: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["a clone/.venv/bin/bullpen"])
    monkeypatch.setenv("PATH", "")

    assert "Word for word: 'a clone/.venv/bin/bullpen' explain 3 " in printed(capsys, "3")


def test_a_turn_that_failed_and_one_that_waits(database: Path, capsys: Printed) -> None:
    assert "failed    The quota is used up until 11:00. Wait, or hand over." in printed(capsys, "last")
    assert "Its agent was given nothing yet." in printed(capsys, "5")
    assert "Turn 5 of quiet-river-4f2a has not started" in refused(capsys, "5", "--prompt")
    assert "Turn 5 of quiet-river-4f2a has not ended" in refused(capsys, "5", "--stream")


@pytest.mark.parametrize("other", ["4", "max", "@Max"])
def test_what_another_one_saw(database: Path, capsys: Printed, other: str) -> None:
    shown = printed(capsys, "3", "--diff", other)

    assert shown.startswith("quiet-river-4f2a: turn 3 (sarah) compared with turn 4 (max)\n  Both saw 1 message.\n")
    assert "Only turn 4 (max) saw\n  #2 Max, 58 bytes: With the login" in shown
    assert "  +- Kai -> max: Cookie or token? 你怎么看?\n" in shown


def test_a_member_without_an_answer_to_the_same_message(database: Path, capsys: Printed) -> None:
    assert "turn 2 (max) compared with turn 1 (max)" in printed(capsys, "2", "--diff", "max")
    assert "sarah has had no turn for the same message" in refused(capsys, "2", "--diff", "sarah")


def test_json(database: Path, capsys: Printed) -> None:
    explanation = json.loads(printed(capsys, "3", "--json"))
    assert [(seen["sequence"], seen["fate"]) for seen in explanation["context"]] == [
        (2, "dropped"),
        (3, "dropped"),
        (4, "dropped"),
    ]
    assert [seen["sequence"] for seen in json.loads(printed(capsys, "3", "--diff", "max", "--json"))["only_right"]] == [
        2,
        3,
        4,
    ]


def test_the_exact_bytes(database: Path) -> None:
    with SqliteStore(database) as store:
        record = store.record(EXAMPLE_ID, "3")
    assert record is not None

    def output(option: str) -> bytes:
        command = [sys.executable, "-m", "bullpen", "explain", "3", option]
        return bytes(forked.run(command, check=True, capture_output=True, env=os.environ).stdout)

    assert output("--prompt") == record.prompt.encode()
    assert output("--stream") == record.stream


def test_turns_that_do_not_exist(database: Path, capsys: Printed) -> None:
    assert "There is no turn '99' in quiet-river-4f2a. Its turns go from 1 to 5." in refused(capsys, "99")
    assert "No turn of quiet-river-4f2a ended with message #5." in refused(capsys, "#5")
    assert "ended with message #x" in refused(capsys, "#x")
    with SqliteStore(database) as store:
        store.create("empty", team="T", team_file="", started_at=1)
    assert "No agent has had a turn in empty yet." in refused(capsys, "last", "--session", "empty")


def test_before_the_first_conversation(empty_home: Path, capsys: Printed) -> None:
    assert refused(capsys, "1").startswith("bullpen: No conversations yet.")
    assert not empty_home.parent.exists()


def test_what_was_already_in_the_session_and_what_was_new(empty_home: Path, capsys: Printed) -> None:
    with SqliteStore(empty_home) as store:
        write_remembering(store)

    shown = printed(capsys, "2")

    assert f"  session   {FIRST}, continued after turn 1, with 1 turn in it\n" in shown
    assert (
        "\nAlready in its session\n"
        "  #1 Kim, 10 bytes, since turn 1: Question 1\n"
        "  #2 Max, 8 bytes, since turn 1: Answer 1\n"
        "\nNew\n"
        "  #3 Kim, 10 bytes: Question 2\n"
        "\nWhat it did not see\n"
        "  nothing\n"
    ) in shown
    assert f"  session   rebuilt: {GONE}\n" in printed(capsys, "3")
    compared = printed(capsys, "3", "--diff", "2")
    assert "  Both saw 3 messages.\n" in compared
    assert "  turn 2 (max): 2 messages already in its session: #1 to #2 since turn 1" in compared
    assert "Only turn 3 (max) saw\n  #4 Max" in compared
