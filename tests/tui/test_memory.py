"""What an agent remembers, beside its name, and the key that makes it forget."""

from tests.tui.stage import Scene, Script, Stage
from tests.view.remembering import GONE, SECOND, write_remembering

from bullpen.store.sqlite import SqliteStore

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
        await scene.sees("Who begins a new session?", "1 max  remembers 2 turns · 12k tokens", "no memory of its own")
        await scene.press("2")
        await scene.sees("ada has no memory of its own")
        assert not scene.conversation.progress.forgotten
        await scene.press("f10", "1")
        await scene.sees("forgets it in its next turn")
        assert scene.conversation.progress.forgotten == {"max": "kim"}

    stage.play(story, resume=id_)
