"""Best of several survives a process that dies at any step: nothing is lost, and no worktree is left."""

import sqlite3

import pytest
from tests.conversation.killed_rounds import killed_at, opened_after_death, settled, steps_of
from tests.conversation.repository_stage import LINES, OwnProject, line
from tests.conversation.stage import Stage

OF_BOB = LINES.replace("line 2", "of bob")
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_round_survives_a_process_that_dies(stage: Stage, part: int) -> None:
    project = OwnProject(stage)
    for number, name in enumerate(("ann", "bob"), start=1):
        project.agent(name, line(number, f"of {name}"), workspace="shared")
    team = stage.write()
    steps = steps_of(team, stage.folder / "counted.db")
    assert project.worktrees() == []
    project.write("a.txt", LINES)
    # Spread over all of it, and not at the same places every time, since turns run at the same time.
    died = killed_at(team, stage.db, max(1, steps * (2 * part + 1) // (2 * PARTS)))
    assert died or part == PARTS - 1
    with sqlite3.connect(stage.db) as db:
        known = [row[0] for row in db.execute("SELECT id FROM conversations")]
    async with opened_after_death(stage, known[0] if known else None) as conversation:
        await settled(conversation)
        if not conversation.message_count:
            await conversation.say("[NEXT: ann | bob] Go.")
        await conversation.continue_turns()
        await settled(conversation)
        while conversation.undecided:
            await conversation.retry()
            await settled(conversation)
        assert project.read("a.txt") in (LINES, OF_BOB)
        if project.read("a.txt") == LINES and not conversation.progress.conflicts:
            await conversation.pick("bob")
            await settled(conversation)
        assert project.read("a.txt") == OF_BOB
        if conversation.progress.rounds:
            await conversation.discard()
            await settled(conversation)
        assert conversation.progress.rounds == {}
    assert project.worktrees() == []
