"""A failing test prints what was said and done."""

from pathlib import Path

from tests.harness.nested import run_tests

IN_PROCESS = """
from bullpen.app import open_team
from bullpen.testing.stage import write_team

async def test_it(tmp_path):
    team = write_team(tmp_path, {"max": [{"say": "I looked."}, {"stderr": "no such luck"}, {"exit": 3}]})
    async with open_team(team, db=tmp_path / "a.db") as conversation:
        await conversation.say("Hello Max.")
        await conversation.until_quiet()
    assert False
"""
ELSEWHERE = """
import subprocess, sys
from bullpen.testing.stage import write_team

def test_it(tmp_path, monkeypatch):
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    write_team(tmp_path, {"max": [{"say": "I looked."}]})
    command = [sys.executable, "-m", "bullpen", "run", "--trust", "Hello Max."]
    subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, check=True)
    assert False
"""


def test_conversation_events_and_output_are_printed(tmp_path: Path) -> None:
    printed = run_tests(IN_PROCESS, tmp_path).stdout

    assert "1 kim: Hello Max." in printed.partition("- conversation -")[2]
    assert "TurnBegan(" in printed.partition("- events -")[2]
    output = printed.partition("- output of agents -")[2]
    assert "turn 1 of max, failed: It ended with exit code 3: no such luck" in output
    assert "I looked." in output


def test_a_conversation_of_another_process_is_read_from_its_database(tmp_path: Path) -> None:
    printed = run_tests(ELSEWHERE, tmp_path).stdout.partition("- conversations in ")[2]

    assert "kim: Hello Max." in printed
    assert "max: I looked." in printed
    assert "turn 1 of max: done" in printed
