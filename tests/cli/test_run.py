"""`bullpen run`: what it prints, and how its exit code tells the end."""

import array
import contextlib
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bullpen import clock
from bullpen.testing.clock import UntilThere
from bullpen.testing.terminal import Terminal

Write = Callable[..., Path]
Bullpen = Callable[..., subprocess.CompletedProcess[str]]
AtTerminal = Callable[..., Terminal]
Start = Callable[..., "subprocess.Popen[bytes]"]


def test_a_relay_is_shown_and_ends_well(write_team: Write, bullpen_process: Bullpen) -> None:
    write_team(ada="I have a plan. [NEXT: ben]", ben="Done. 完成了 🎉")

    done = bullpen_process("run", "--trust", "team.toml", "Build it.")

    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if "·" not in line] == [
        *("", "  Build it.", "  (ada leads the team.)"),
        *("", "  I have a plan. [NEXT: ben]"),
        *("", "  Done. 完成了 🎉"),
    ]
    assert "kim → ada  #1 · " in done.stdout
    assert "  #2 → ben · " in done.stdout
    assert "Continue: bullpen chat --resume " in done.stderr


def test_a_message_that_names_nobody_in_the_team_has_a_code_of_its_own(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")

    done = bullpen("run", "--trust", "team.toml", "[NEXT: adda] Hi.")

    assert done.returncode == 6
    assert "Nobody here is called 'adda'. Did you mean ada?" in done.stdout
    assert "Nobody was asked. Nobody here is called 'adda'. Did you mean ada?" in done.stderr
    assert "Hello." not in done.stdout
    assert "/next" not in done.stdout
    assert "Say it again, or ask somebody in a chat: bullpen chat --resume " in done.stdout


def test_a_message_before_the_team_file_is_told_apart(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")

    done = bullpen("run", "--trust", "hello there", "team.toml")

    assert done.returncode == 2
    assert "The team file comes first: team.toml 'hello there'" in done.stderr
    assert bullpen("run", "--trust", "team.toml", "none.toml").returncode == 0


def test_several_that_cannot_work_apart_are_not_said_to_be_misspelled(write_team: Write, bullpen: Bullpen) -> None:
    file = write_team(ada="Hello.", ben="Hello.")
    text = file.read_text(encoding="utf-8").replace("command =", 'permissions = "edit"\ncommand =')
    file.write_text(text, encoding="utf-8")

    done = bullpen("run", "--trust", "team.toml", "[NEXT: ada | ben] Hi.")

    assert done.returncode == 6
    (why,) = [line for line in done.stderr.splitlines() if line.startswith("Nobody was asked.")]
    assert "git" in why
    assert "called that" not in done.stdout
    assert "names nobody" not in done.stderr


def test_json_is_one_event_per_line_and_nothing_else(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")

    done = bullpen("run", "--trust", "--json", "team.toml", "Hi.")

    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["type"] for one in events if one["type"] != "turn_event"] == [
        *("said", "queued", "turn_began", "said", "turn_ended", "quiet")
    ]
    # "news" is what an earlier version called the type.
    assert events[-1] == {"type": "quiet", "news": "quiet", "waits_for": "kim"}


def test_the_message_can_come_from_stdin_and_the_team_file_is_the_usual_one(
    write_team: Write, bullpen: Bullpen
) -> None:
    write_team("hand_over_note = false\n", ada=[{"echo": True}])

    done = bullpen("run", "--trust", "-", stdin="first line\nsecond line\n")

    assert done.returncode == 0
    assert "  first line\n  second line\n" in done.stdout


def test_without_a_message_it_says_how_to_give_one(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")

    assert bullpen("run", "team.toml").returncode == 2
    assert bullpen("run", "--max-turns", "0", "team.toml", "x").returncode == 2
    assert bullpen("run", "--timeout", "nan", "team.toml", "x").returncode == 2


def test_a_file_that_nobody_trusts_is_not_run(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")

    done = bullpen("run", "team.toml", "x")

    assert done.returncode == 1
    assert "is not trusted" in done.stderr
    assert done.stdout == ""


def test_a_failed_turn_gives_3_and_can_be_decided_later(write_team: Write, bullpen_process: Bullpen) -> None:
    write_team(ada=[{"say": "I try"}, {"stderr": "out of ideas"}, {"exit": 3}])

    done = bullpen_process("run", "--trust", "team.toml", "x")

    assert done.returncode == 3
    assert "✗ failed" in done.stdout
    assert "out of ideas" in done.stdout
    assert "`bullpen explain 1 --stream` shows what it printed." in done.stdout
    assert "Waiting for your decision: turn 1 of ada. In chat: /retry or /skip.\n" in done.stderr
    assert bullpen_process("run", "--resume", "last").returncode == 3


def test_what_was_undecided_before_says_nothing_of_a_later_message(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada=[{"exit": 1}], bob="Ship it? [ASK: yes | no]", cid="Read.")

    assert bullpen("run", "--trust", "team.toml", "@ada go").returncode == 3
    assert bullpen("run", "--resume", "last", "@bob go").returncode == 3, "bob asks"

    well = bullpen("run", "--resume", "last", "@cid go")
    assert (well.returncode, "Waiting for your decision: turn 1 of ada." in well.stderr) == (0, True)
    assert bullpen("run", "--resume", "last", "@ada go").returncode == 3, "she fails again"
    assert bullpen("run", "--resume", "last").returncode == 3, "all of it is to be decided"


def test_a_question_gives_3_until_it_is_answered(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Ship it? [ASK: yes | no]")

    done = bullpen("run", "--trust", "team.toml", "Go.")

    assert done.returncode == 3
    answers = "/yes 1 yes or /yes 1 no or /no 1"
    assert f"Waiting for your answer: ada asks you (turn 1). In chat: {answers}.\n" in done.stderr
    assert bullpen("run", "--resume", "last", "/no 1").returncode == 0


def test_a_red_check_gives_7_until_it_is_green(write_team: Write, bullpen: Bullpen) -> None:
    team = write_team(ada=[{"write_file": {"path": "made.txt", "text": "hi"}}, {"say": "Done."}])
    text = team.read_text(encoding="utf-8").replace('name = "ada"', 'name = "ada"\npermissions = "edit"')
    check = '\n[[check]]\nname = "ready"\ncommand = ["test", "-e", "ready"]\n'
    team.write_text(text + check, encoding="utf-8")

    red = bullpen("run", "--trust", "team.toml", "x")
    (team.parent / "ready").touch()
    (team.parent / "made.txt").unlink()
    green = bullpen("run", "--trust", "team.toml", "x")

    assert red.returncode == 7, red.stdout + red.stderr
    assert "ready: red (exit 1)" in red.stdout
    assert "A check is red." in red.stderr
    assert green.returncode == 0, green.stdout + green.stderr
    assert "ready: green" in green.stdout


def test_a_command_is_obeyed_or_refused_and_never_said_to_an_agent(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")
    bullpen("run", "--trust", "team.toml", "Hi.")

    done = bullpen("run", "--resume", "last", "/rename The login")
    assert (done.returncode, "Hello." in done.stdout) == (0, False)
    assert "The login" in bullpen("sessions", "list").stdout
    for wrong in ("/undo", "/pick max", "/diff", "/nonsense"):
        done = bullpen("run", "--resume", "last", wrong)
        assert done.returncode in (1, 2), wrong
        assert done.stderr.startswith("bullpen: "), done.stderr
        assert "Hello." not in done.stdout
    assert bullpen("sessions", "show", "last").stdout.count("Hello.") == 1


def test_a_cap_gives_4_and_resume_goes_on(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="ping [NEXT: ben]", ben="pong [NEXT: ada]")

    done = bullpen("run", "--trust", "--max-turns", "3", "team.toml", "x")

    assert done.returncode == 4
    assert done.stdout.count("  turn ") == 3
    assert "Paused: " in done.stdout
    more = bullpen("run", "--resume", "last", "--max-turns", "2")
    assert more.returncode == 4
    assert more.stdout.count("  turn ") == 2


def test_a_budget_that_is_used_up_gives_4_and_says_so(write_team: Write, bullpen: Bullpen) -> None:
    team = write_team(ada="ping [NEXT: ben]", ben="pong [NEXT: ada]")
    text = team.read_text(encoding="utf-8").replace('name = "ben"', 'name = "ben"\nbudget = { turns = 1 }')
    team.write_text(text, encoding="utf-8")

    done = bullpen("run", "--trust", "team.toml", "x")

    assert done.returncode == 4
    assert "? ben has taken 1 turn: its budget of 1 turn is used up." in done.stdout
    assert (
        "Paused: a budget is used up.\nben has taken 1 turn: its budget of 1 turn is used up. In chat: /raise"
        in done.stderr
    )
    assert bullpen("run", "--resume", "last").returncode == 4, "to continue does not raise it"


def test_a_timeout_gives_5_and_stores_what_was_cancelled(write_team: Write, bullpen: Bullpen, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    write_team(ada=[{"say": "I begin"}, {"write_file": {"path": str(begun), "text": ""}}, {"hang": True}])

    with clock.use(UntilThere(4321, begun)):
        done = bullpen("run", "--trust", "--timeout", "4321", "team.toml", "x")

    assert done.returncode == 5
    assert "  I begin\n" in done.stdout
    assert "○ cancelled" in done.stdout
    assert "turn 1 of ada" in done.stderr


def test_ctrl_c_cancels_stores_and_leaves(write_team: Write, start_bullpen: Start, bullpen: Bullpen) -> None:
    write_team(ada=[{"say": "I begin"}, {"hang": True}])
    process = start_bullpen("run", "--trust", "team.toml", "x")
    wait_for(process, b"I begin")

    os.killpg(process.pid, signal.SIGINT)

    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "○ cancelled" in said.decode()
    assert bullpen("run", "--resume", "last").returncode == 3


def test_who_is_ready_first_is_shown_first(write_team: Write, start_bullpen: Start) -> None:
    begins = [{"say": "I begin"}, {"write_file": {"path": "begun", "text": ""}}, {"hang": True}]
    write_team(ada=begins, ben=[{"wait_for": "begun"}, {"say": "I am done."}])
    process = start_bullpen("run", "--trust", "team.toml", "Both, please. [NEXT: ada & ben]")

    assert b"  I am done.\n" in wait_for(process, b"(ada is still working.)")

    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)


def at_work_in(folder: Path) -> list[str]:
    """Return the processes whose working folder this is."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if place.readlink() == folder:
                found.append(place.parent.name)
    return found


PATIENT = """
import sys
from bullpen.agents import process
from bullpen.cli import main
process.GRACE_SECONDS = 3600.0
sys.exit(main(sys.argv[1:]))
"""
STUBBORN = "trap ': > asked' INT TERM; cat > /dev/null; echo I begin; while :; do sleep 0.05; done"


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path, start_bullpen: Start) -> None:
    team = f'[[member]]\nname = "kim"\n[[member]]\nname = "ada"\ncommand = ["sh", "-c", "{STUBBORN}"]\n'
    (tmp_path / "team.toml").write_text(team, encoding="utf-8")
    process = start_bullpen("run", "--trust", "team.toml", "x", program=("-c", PATIENT))
    wait_for(process, b"I begin")

    os.killpg(process.pid, signal.SIGINT)
    while not (tmp_path / "asked").exists():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)

    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"cancelled \xc2\xb7" not in said
    # Not even an agent that ignores every signal but one is left behind.
    while at_work_in(tmp_path):
        time.sleep(0.02)


def test_a_very_long_line_is_written_whole(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Hello.")

    done = bullpen("run", "--trust", "--as", "kim", "team.toml", "-", stdin="a" * 3_000_000)

    assert done.returncode == 0, done.stderr
    assert "a" * 3_000_000 in done.stdout


IMPATIENT = """
import sys
from bullpen.cli import main, signals
signals.AGAIN_SECONDS, signals.STUCK_SECONDS = 0.0, {stuck}
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("numbers", "stuck", "code"),
    [
        ([signal.SIGINT, signal.SIGINT], 3600.0, 130),
        ([signal.SIGTERM], 0.0, 143),
        ([signal.SIGINT, signal.SIGTERM], 3600.0, 143),
    ],
    ids=str,
)
def test_signals_end_it_even_if_nobody_reads_its_output(
    numbers: list[signal.Signals], stuck: float, code: int, write_team: Write, start_bullpen: Start
) -> None:
    write_team(ada="Hello.")
    words = ("run", "--trust", "--as", "kim", "team.toml", "-")
    process = start_bullpen(*words, program=("-c", IMPATIENT.format(stuck=stuck)))
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(b"a" * 3_000_000)
    process.stdin = None
    wait_until_stuck(process)

    *first, last = numbers
    for number in first:
        threads = psutil.Process(process.pid).num_threads()
        process.send_signal(number)
        # A thread waits from now on whether it is taken.
        while psutil.Process(process.pid).num_threads() == threads:
            time.sleep(0.01)
    process.send_signal(last)

    assert process.wait(timeout=60) == code


def wait_until_stuck(process: "subprocess.Popen[bytes]") -> None:
    """Wait until the pipe that it writes to is full."""
    assert process.stdout is not None
    size, room = array.array("i", [0]), fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
    while size[0] < room:
        assert process.poll() is None
        time.sleep(0.02)
        fcntl.ioctl(process.stdout, termios.FIONREAD, size)


def test_a_reader_that_leaves_early_ends_it_quietly(write_team: Write, environment: dict[str, str]) -> None:
    file = write_team(ada=[{"say": "word " * 2000, "chunk": 50, "delay": 0.01}])
    command = f"{sys.executable} -m bullpen run --trust team.toml x | head -n 3"

    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=environment,
        cwd=file.parent,
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 141
    assert done.stderr == b""


def test_a_terminal_gets_our_colours_and_nothing_from_agents(write_team: Write, at_terminal: AtTerminal) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m one\rtwo \u202etxt.exe\x1b[31mred\x08\x08"
    write_team(ada=[{"say": evil, "chunk": 1, "delay": 0.002}])

    with at_terminal("run", "--trust", "team.toml", "x") as terminal:
        assert terminal.leave() == 0

    assert terminal.screen.unknown == []
    assert b"\x1b[1;" in terminal.written
    assert "   one\ufffdtwo \ufffdtxt.exered\ufffd\ufffd" in terminal.screen.lines


def test_no_color_is_respected(write_team: Write, at_terminal: AtTerminal) -> None:
    write_team(ada="Hello.")

    with at_terminal("run", "--trust", "team.toml", "x", NO_COLOR="1") as terminal:
        terminal.leave()

    assert b"\x1b" not in terminal.written
    assert "Hello." in terminal.screen.text


def wait_for(process: "subprocess.Popen[bytes]", text: bytes) -> bytes:
    """Return what it has written when this is there."""
    assert process.stdout is not None
    seen = b""
    while text not in seen:
        assert select.select([process.stdout], [], [], 20)[0], seen
        more = os.read(process.stdout.fileno(), 4096)
        assert more, seen
        seen += more
    return seen


def test_a_long_message_is_no_name_of_a_file(write_team: Write, bullpen: Bullpen) -> None:
    write_team(ada="Read.")

    done = bullpen("run", "--trust", "word " * 80 + "and pyproject.toml")

    assert (done.returncode, "Read." in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("program", "shown"), [("echo half an answer; exit 3", "half an answer\n"), ("cat > read", "kim: Hi.\n")]
)
def test_what_a_failed_command_is_said_to_need_is_there(
    program: str, shown: str, write_team: Write, bullpen: Bullpen
) -> None:
    file = write_team("hand_over_note = false\n")
    file.write_text(f'{file.read_text()}[[member]]\nname = "own"\ncommand = ["sh", "-c", "{program}"]\n')

    done = bullpen("run", "--trust", "Hi.")

    assert done.returncode == 3
    named = re.search(r"✗ own [^`]*`bullpen (.*)`", " ".join(done.stdout.split()))
    assert named is not None
    assert shown in bullpen(*named[1].split()).stdout + "\n"
