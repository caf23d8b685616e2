"""`bullpen chat` at a real terminal and without one: typing while agents stream, steering, leaving, coming back."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bullpen.testing.terminal import Terminal

Write = Callable[..., Path]
Bullpen = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[bytes]"]
AtTerminal = Callable[..., Terminal]

READY = "kim ▸"
HANGS = [{"say": "I begin"}, {"hang": True}]


def test_a_conversation_at_a_terminal(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada="Hello, Kim.")

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("Good morning\n")
        terminal.wait_for("Hello, Kim.", "#2 · ")
        terminal.press("/quit\n")
        assert terminal.leave() == 0

    assert terminal.screen.unknown == []
    lines = [re.sub(r"\d\d:\d\d|\d+\.\d s", "N", line) for line in terminal.screen.lines if line]
    assert lines[1:7] == [
        "kim ▸ Good morning",
        "  #1 → ada",
        "  (ada leads the team.)",
        "ada  turn 1 · N · given 411 bytes",
        "  Hello, Kim.",
        "  #2 · N",
    ]
    assert "Continue: bullpen chat --resume " in terminal.screen.text


def test_what_is_being_typed_survives_what_agents_say(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada=[{"say": "word 字 " * 60, "chunk": 3, "delay": 0.01}])

    with at_terminal("chat", "--plain", "--trust", columns=40) as terminal:
        terminal.wait_for(READY)
        terminal.press("Talk\n")
        terminal.wait_for("word 字")
        for letter in "你好 and more than fits in one row, surely":
            terminal.press(letter)
        terminal.wait_for("#2 · ")
        terminal.wait_until(lambda: terminal.screen.lines[terminal.screen.row] != "", what="the line")

        rows = [line for line in terminal.screen.lines if line]
        assert rows[-2:] == ["kim ▸ 你好 and more than fits in one ro", "w, surely"]
        assert all(re.fullmatch(r"  (word|字)( (word|字))*", line) for line in rows if "字" in line)
        said = " ".join(line for line in terminal.screen.text.splitlines() if "字" in line).split()
        assert said == ["word", "字"] * 60


def test_hostile_words_move_nothing(write_team: Write, at_terminal: AtTerminal) -> None:
    evil = "\x1b[2J\x1b[H\x1b]52;c;b3duZWQ=\x07\rkim ▸ rm -rf\x1b[A\u202e\x1b[6n"
    write_team(ada=[{"say": evil, "chunk": 1, "delay": 0.002}])

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("x\n")
        terminal.wait_for("#2 · ")

    assert terminal.screen.unknown == []
    assert "  \ufffdkim ▸ rm -rf\ufffd" in terminal.screen.lines
    assert terminal.screen.lines[1] == "kim ▸ x"


def test_ctrl_c_cancels_and_twice_leaves(write_team: Write, at_terminal: AtTerminal, bullpen: Bullpen) -> None:
    write_team(ada=HANGS, ben="Here.")

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("x [NEXT: ada, ben]\n")
        terminal.wait_for("I begin")
        terminal.press("\x03")
        terminal.wait_for("○ cancelled", "Retry", "remove every waiting turn")
        # Ben waits after ada until the person has decided.
        terminal.press("/skip\n")
        terminal.wait_for("Here.", "#2 · ")
        # Keys were pressed since the first Ctrl-C, so the next one is a first one again.
        terminal.press("\x03")
        terminal.wait_for("No turn is running. Ctrl-C again leaves.")
        terminal.press("\x03")
        assert terminal.leave() == 130


def test_two_ctrl_c_in_mid_turn_cancel_store_and_leave(
    write_team: Write, at_terminal: AtTerminal, bullpen: Bullpen
) -> None:
    write_team(ada=HANGS)

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("x\n")
        terminal.wait_for("I begin")
        terminal.press("\x03")
        terminal.wait_for("Ctrl-C again leaves.")
        terminal.press("\x03")
        assert terminal.leave() == 130

    again = bullpen("chat", "--resume", "last")
    assert "○ turn 1 was cancelled after" in again.stdout


def test_ctrl_d_asks_while_somebody_is_working(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada=HANGS)

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("x\n")
        terminal.wait_for("I begin")
        terminal.press("\x04")
        terminal.wait_for("ada is working. Leave, and cancel that? [y/N]")
        terminal.press("n\n")
        terminal.wait_for("kim ▸ n")
        terminal.press("/queue\n")
        terminal.wait_for("turn 1  ada: writing")
        terminal.press("\x04")
        terminal.wait_until(lambda: terminal.screen.text.count("[y/N]") == 2)
        terminal.press("y\n")
        assert terminal.leave() == 0


def test_a_missed_hand_over_takes_one_key(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada="That is my part. Over to ben.", ben="Thanks.")

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("x\n")
        # Drawn when the keys answer.
        terminal.wait_for("1 Ask ben   /next ben", "\n1 Ask ben  3 Leave it")
        terminal.press("1")
        terminal.wait_for("asked: ben", "Thanks.")


def test_pasting_never_sends(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada=[{"echo": True}])

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("\x1b[200~one\rtwo\r\x1b[201~")
        terminal.wait_for("kim ▸ one", "… two")
        assert "#1" not in terminal.screen.text
        terminal.press("three\\\n")
        terminal.wait_until(lambda: terminal.screen.lines[terminal.screen.row - 1 :][:2] == ["… three", "…"])
        terminal.press("four\n")
        terminal.wait_for("#2 → kim · ")

        assert "  kim: one\n  two\n  three\n  four\n" in terminal.screen.text


def type_each(terminal: Terminal, prompt: str, text: str) -> None:
    """Type letter by letter, each once the one before it is shown."""
    for end in range(1, len(text) + 1):
        shown = f"{prompt} {text[:end]}".rstrip()
        terminal.press(text[end - 1])
        terminal.wait_until(partial(lambda row: row in terminal.screen.lines, shown), what=shown)


def test_after_a_paste_of_200_000_characters_every_key_still_answers(
    write_team: Write, at_terminal: AtTerminal
) -> None:
    pasted = "你好 👍🏽 and more. " * 10_000 + "\r" + "A line with words.\r" * 1_000

    write_team(ada="That was long.")
    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press(f"\x1b[200~{pasted}\x1b[201~")
        terminal.wait_for("… A line with words.")
        type_each(terminal, "…", "every key answers")
        terminal.press("\x1b[A" * 1_010 + "\x01" + "Up here: ")
        terminal.wait_for("Up here: 你好")
        terminal.press("\n")
        terminal.wait_for("That was long.")
        assert terminal.screen.unknown == []


def test_tab_completes_and_arrows_bring_back_what_was_sent(
    write_team: Write, at_terminal: AtTerminal, environment: dict[str, str]
) -> None:
    team = write_team(ada="Yes.", ben="No.")
    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("Hm [NEXT: b\t\n")
        terminal.wait_for("kim ▸ Hm [NEXT: ben]", "No.", "#2 · ")
        terminal.press("/qui\t\n")
        assert terminal.leave() == 0

    (file,) = Path(environment["BULLPEN_HOME"], "input-histories").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    with at_terminal("chat", "--plain") as terminal:
        terminal.wait_for(READY)
        terminal.press("\x1b[A\x1b[A")
        terminal.wait_for("kim ▸ Hm [NEXT: ben]")

    other = file.parent / "other.toml"
    other.write_text(team.read_text())
    with at_terminal("chat", "--plain", "--trust", str(other)) as terminal:
        terminal.wait_for(READY)
        terminal.press("\x1b[A?")
        terminal.wait_for("kim ▸ ?")


def test_what_cannot_be_sent_is_not_lost(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team('[[member]]\nname = "lee"\n', ada="Yes.")

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for("you ▸")
        terminal.press("A long thought\n")
        terminal.wait_for("Say who you are")
        terminal.wait_until(lambda: terminal.screen.lines[terminal.screen.row] == "you ▸ A long thought")
        terminal.press(" [FROM: lee]\n")
        terminal.wait_for("Yes.")


def test_a_command_that_does_not_exist_is_not_said_to_the_team(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada="Yes.")

    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("/quue\n")
        terminal.wait_for("There is no command /quue. Did you mean /queue?")


def test_after_kill_9_in_mid_turn_resume_offers_the_choices(
    write_team: Write, at_terminal: AtTerminal, tmp_path: Path
) -> None:
    write_team(ada=HANGS, ben="Here.")
    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)
        terminal.press("Go! [NEXT: ada, ben]\n")
        terminal.wait_for("I begin")
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.leave()

    with at_terminal("chat", "--plain", "--resume", "last") as terminal:
        terminal.wait_for(READY)
        terminal.wait_for("Go! [NEXT: ada, ben]", "ada (turn 1): bullpen stopped", "1 Retry")
        terminal.press("/hand ben\n")
        terminal.wait_for("turn 1: ben answers", "Here.")


def test_a_conversation_in_use_says_how_to_watch(write_team: Write, at_terminal: AtTerminal, bullpen: Bullpen) -> None:
    write_team(ada="Yes.")
    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for(READY)

        second = bullpen("chat", "--resume", "last")

    assert second.returncode == 1
    assert "bullpen sessions watch " in second.stderr


def test_without_a_terminal_each_line_is_a_message(write_team: Write, bullpen_process: Bullpen) -> None:
    write_team("hand_over_note = false\n", ada=[{"say_prompt_length": True}], ben=[{"echo": True}])

    done = bullpen_process("chat", "--trust", stdin="one\n/who\ntwo \\\nlines [NEXT: ben]\n\n")

    assert done.returncode == 0
    assert "  one\n" in done.stdout
    assert "ada: " in done.stdout
    assert "  two \n  lines [NEXT: ben]\n" in done.stdout
    assert done.stdout.index("#2") < done.stdout.index("#3") < done.stdout.index("#4")


def test_without_a_terminal_the_exit_code_says_how_it_ended(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada=[{"exit": 3}])

    assert bullpen("chat", "--trust", stdin="x\n").returncode == 3
    assert bullpen("chat", "--resume", "last", stdin="/skip\n").returncode == 0
    assert bullpen("chat", "--resume", "last", stdin="/nonsense\n").returncode == 1


def test_a_person_is_greeted_also_where_the_cursor_cannot_move(write_team: Write, environment: dict[str, str]) -> None:
    folder = write_team(ada="Hello, Kim.", ben="Hi.").parent
    dumb = ["env", "TERM=dumb", sys.executable, "-m", "bullpen", "chat", "--trust"]

    with Terminal(dumb, env=environment, cwd=folder, columns=100) as terminal:
        terminal.wait_for(" with ada, ben. /help says what you can type; Ctrl-D leaves.")
        terminal.press("Good morning\n")
        terminal.wait_for("Hello, Kim.", "#2 · ")
        terminal.press("\x04")
        assert terminal.leave() == 0

    with Terminal(dumb, env=environment, cwd=folder, columns=140) as terminal:
        terminal.wait_for("Earlier here: “Good morning” To continue it, leave, and type: bullpen chat --resume ")
        terminal.press("\x04")
        assert terminal.leave() == 0


def test_a_program_that_sends_lines_is_not_greeted(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello, Kim.")

    assert "/help" not in bullpen("chat", "--trust", stdin="x\n").stdout


def test_ctrl_c_without_a_terminal(write_team: Write, start_bullpen: Start) -> None:
    write_team(ada=HANGS)
    process = start_bullpen("chat", "--trust")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"x\n")
    process.stdin.flush()
    seen = b""
    while b"I begin" not in seen:
        seen += os.read(process.stdout.fileno(), 4096)

    os.killpg(process.pid, signal.SIGINT)

    assert process.wait(30) == 130


def test_without_a_team_file_it_says_where_to_begin(bullpen: Bullpen) -> None:
    done = bullpen("chat")

    assert done.returncode == 1
    assert "bullpen init" in done.stderr
    assert "bullpen demo" in done.stderr


def test_a_team_file_that_is_gone_is_named(write_team: Write, bullpen: Bullpen) -> None:
    file = write_team(ada="Yes.")
    bullpen("run", "--trust", "team.toml", "x")
    file.rename(file.with_name("other.toml"))

    gone = bullpen("chat", "--resume", "last")

    assert gone.returncode == 1
    assert "team.toml, is gone. Name another one" in gone.stderr
    assert bullpen("chat", "other.toml", "--trust", "--team-changed", "--resume", "last", stdin="x\n").returncode == 0


def test_in_a_terminal_the_chat_fills_the_screen(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada="Hello, Kim.")

    with at_terminal("chat", "--trust") as terminal:
        terminal.wait_for("Say something")
        terminal.press("\x11")
        assert terminal.leave() == 0

    # This screen does not keep what a full screen covers, so where the line begins and wraps says nothing.
    assert "Nothingwassaid,sonothingiskept." in "".join(terminal.screen.text.split())


def test_a_person_who_looks_elsewhere_is_told_that_it_is_their_turn(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada="Done.")
    with at_terminal("chat", "--plain", "--trust") as terminal:
        terminal.wait_for("kim ▸")
        terminal.press("Go.\r\x1b[O")
        terminal.wait_for("Done.")
        terminal.wait_until(lambda: terminal.screen.notifications != [])
        assert terminal.screen.title == "◆ (1) team · bullpen"
        assert terminal.screen.notifications == ["bullpen: It waits for you, kim."]
        assert terminal.screen.bells == 1
        terminal.press("\x1b[IAgain.\r")
        terminal.wait_until(lambda: terminal.screen.title == "● team · bullpen")
        terminal.wait_until(lambda: terminal.screen.text.count("Done.") == 2)
        assert terminal.screen.bells == 1, "it is in front now"
