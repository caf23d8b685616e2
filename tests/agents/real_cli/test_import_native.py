"""A session of a genuine CLI that a person made: in the team, its agent continues a copy, and only a copy."""

import asyncio
from pathlib import Path

import pytest
from tests.agents.real_cli.person import talk
from tests.agents.real_cli.scene import Scene, every_cli, text_of
from tests.agents.real_cli.turn import clis

from bullpen.cli import main
from bullpen.exchange.cli_sessions.finding import CliSessions
from bullpen.testing.models import Reply

READ = {"claude": "2\\tbeta", "codex": "alpha\\nbeta", "qwen": "alpha\\nbeta"}
"""What only the session has: what the agent read, and not only that it did."""


class Imported(Scene):
    """A team in a person's project, where the person's last session is imported."""

    def __init__(self, project: Path, cli: str) -> None:
        super().__init__(project.parent, cli, db=project.parent / "data" / "conversations.db")
        asyncio.run(talk(cli, project))
        (listed,) = CliSessions(cli).listed(project)
        self.persons_file = CliSessions(cli).session(listed.id, project).file

    def import_last(self) -> None:
        assert main(["import", "--from", self.cli, "last", "--team", str(self.project / "team.toml")]) == 0

    def asked(self, question: str) -> str:
        """Ask something in the imported conversation, and return what the model was asked."""
        answer = Reply(text="Alpha and beta.", input_tokens=100, cached_tokens=0, output_tokens=10)
        return text_of(asyncio.run(self.ask(self.conversation_id, question, answer))[1])


def state_of(file: Path) -> tuple[bytes, int]:
    return file.read_bytes(), file.stat().st_mtime_ns


@every_cli
def test_its_own_agent_continues_a_copy_of_the_session(cli: str, project: Path) -> None:
    scene = Imported(project, cli)
    before = state_of(scene.persons_file)
    scene.import_last()

    first = scene.asked("What was in the file?")
    second = scene.asked("And in which order?")

    assert state_of(scene.persons_file) == before, "the person's own session is never written to"
    assert scene.origins() == ["forked", "resumed"]
    assert scene.used() == [(100, 10)] * 2, "no turn is charged for the person's session"
    for asked in (first, second):
        assert asked.count("Please read notes.txt.") == 1, "it is in the session, and not in the prompt again"
        assert READ[cli] in asked.replace("\\\\n", "\\n")
        assert "used 1 tool" not in asked
    assert second.count("What was in the file?") == 1


@clis("claude", rarely=["codex", "qwen"])
@pytest.mark.parametrize("change", ["continued", "gone"])
def test_a_session_that_is_not_what_was_imported_is_rebuilt_from_the_text(cli: str, change: str, project: Path) -> None:
    scene = Imported(project, cli)
    file = scene.persons_file
    scene.import_last()
    if change == "gone":
        file.unlink()
    else:
        with file.open("ab") as opened:
            opened.write(b'{"type": "more"}\n')
        before = state_of(file)

    asked = scene.asked("What was in the file?")

    (use,) = scene.uses()
    reasons = {"continued": "its session was continued elsewhere", "gone": "the file of its session is gone"}
    assert (use.origin, use.reason) == ("rebuilt", reasons[change])
    assert asked.count("Please read notes.txt.") == 1
    assert "used 1 tool" in asked
    if change == "continued":
        assert state_of(file) == before


@pytest.mark.needs("claude")
def test_claude_does_not_continue_a_session_of_another_folder(project: Path, tmp_path: Path) -> None:
    scene = Imported(project, "claude")
    scene.project = tmp_path / "elsewhere"
    scene.project.mkdir()
    scene.write_team()
    scene.import_last()

    scene.asked("What was in the file?")

    (use,) = scene.uses()
    assert (use.origin, use.reason) == ("rebuilt", f"it worked in {project} and works in {scene.project} now")
