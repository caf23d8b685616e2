"""Two agents change the same line at the same time, again and again: nothing is lost, and every conflict is shown."""

from pathlib import Path

from tests.conversation.repository_stage import LINES, OwnProject, said

from bullpen.conversation.conflicts import Settling
from bullpen.conversation.conversation import Conversation

CHOICES: tuple[Settling, ...] = ("take", "keep", "apart")
NUMBER = 5


def two_agents(project: OwnProject) -> None:
    """Let ann and bob write the number of the round into the same line, neither before both have begun."""
    here = project.stage.folder
    for name, other in (("ann", "bob"), ("bob", "ann")):
        wait = f"touch {here}/{name}-$n; while [ ! -e {here}/{other}-$n ]; do sleep 0.01; done"
        project.agent(name, f"n=$(cat {here}/round); {wait}; sed -i '{NUMBER}s/.*/'{name}-$n/ a.txt")


async def trials(project: OwnProject, conversation: Conversation, count: int) -> dict[str, int]:
    """Play this many rounds; return how many conflicts were shown, and how many writes were lost."""
    shown = lost = 0
    for number in range(count):
        (project.stage.folder / "round").write_text(str(number), encoding="utf-8")
        await said(conversation, "[NEXT: ann & bob] Go.")
        shown += len(conversation.progress.conflicts)
        lost += await _lost(project, conversation, number)
    return {"shown": shown, "lost": lost}


async def _lost(project: OwnProject, conversation: Conversation, number: int) -> int:
    """Decide about the conflict of a round, and return how many of its two writes are not where they must be."""
    ((turn, conflict),) = conversation.progress.conflicts.items()
    second = conflict.member
    first = "bob" if second == "ann" else "ann"
    own = project.own(conversation, second)
    versions = {first: _line(project.folder), second: _line(own)}
    lost = sum(version != f"{name}-{number}" for name, version in versions.items())
    how = CHOICES[number % len(CHOICES)]
    await conversation.settle(how, turn)
    expected = {"take": second, "keep": first, "apart": first}[how]
    lost += _line(project.folder) != f"{expected}-{number}"
    if how == "apart":
        lost += _line(own) != f"{second}-{number}"
    return lost


def _line(folder: Path) -> str:
    lines = (folder / "a.txt").read_text(encoding="utf-8").splitlines()
    others = lines[: NUMBER - 1] + lines[NUMBER:]
    expected = LINES.splitlines()
    return lines[NUMBER - 1] if others == expected[: NUMBER - 1] + expected[NUMBER:] else "other lines have changed"
