"""What an agent remembers, beside its name, and the key that makes it forget."""

import pytest
from tests.tui.stage import Scene, Script, Stage
from tests.view.remembering import GONE, SECOND, write_remembering

from bullpen.exchange.forking import fork_conversation
from bullpen.store.sqlite import SqliteStore
from bullpen.tui.members import MembersPanel
from bullpen.view.state import conversation_view
from bullpen.view.status_lines import team_lines

SAID: Script = [{"say": "All of it."}]


def test_the_session_of_a_member_is_shown_and_forgotten_with_a_key(stage: Stage) -> None:
    stage.agent("max", SAID)
    stage.agent("ada", SAID, cli="gemini")
    with SqliteStore(stage.db) as store:
        id_ = write_remembering(store)

    async def story(scene: Scene) -> None:
        await scene.sees("remembers 2 turns · 12k tokens", f"session {SECOND[-8:]}")
        assert "forgets it" not in scene.text
        await scene.sees(f"rebuilt: {GONE}")
        assert scene.text.count("rebuilt:") == 1
        await scene.press("f10")
        await scene.sees(
            "Who should begin a new session?", "1 max  remembers 2 turns · 12k tokens", "no memory of its own"
        )
        await scene.press("2")
        await scene.sees("ada has no memory of its own")
        assert not scene.conversation.progress.forgotten
        await scene.press("f10", "1")
        await scene.sees("forgets it in its next turn")
        assert scene.conversation.progress.forgotten == {"max": "kim"}

    stage.play(story, resume=id_)


@pytest.mark.parametrize("size", [(80, 24), (140, 40)], ids=str)
def test_a_command_shows_the_team_and_what_each_remembers_and_nothing_else_changes(
    stage: Stage, size: tuple[int, int]
) -> None:
    stage.agent("max", SAID)
    with SqliteStore(stage.db) as store:
        id_ = write_remembering(store)

    async def story(scene: Scene) -> None:
        await scene.say("/who")
        await scene.sees("Who is in the team", "max: claude", "kim: a person")
        shown = " ".join(scene.text.split())
        assert team_lines(conversation_view(scene.conversation))[-1].strip() in shown
        await scene.press("escape")
        await scene.pilot.resize_terminal(80, 24)
        await scene.until(lambda: not scene.app.screen.query_one(MembersPanel).is_on_screen)

    stage.play(story, resume=id_, size=size)


def test_a_narrow_panel_breaks_what_a_member_remembers_between_its_parts(stage: Stage) -> None:
    stage.agent("max", SAID)
    with SqliteStore(stage.db) as store:
        id_ = write_remembering(store)

    async def story(scene: Scene) -> None:
        await scene.press("f2")
        await scene.sees("remembers 2 turns")
        panel = [line.rpartition("▏")[2].rstrip() for line in scene.text.splitlines()]
        start = panel.index("   remembers 2 turns")
        assert panel[start + 1] == "   12k tokens"

    stage.play(story, resume=id_, size=(80, 24))


def test_in_a_fork_a_member_that_continues_a_copy_can_forget_it(stage: Stage) -> None:
    stage.agent("max", SAID)
    with SqliteStore(stage.db) as store:
        fork = fork_conversation(store, write_remembering(store)).id

    async def story(scene: Scene) -> None:
        await scene.sees("  continues a copy")
        await scene.press("f10")
        await scene.sees("1 max  continues a copy")
        await scene.press("1")
        await scene.until(lambda: "continues a copy" not in scene.text)
        assert scene.conversation.progress.forgotten == {"max": "kim"}

    stage.play(story, resume=fork)
