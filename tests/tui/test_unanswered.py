"""What a turn without a reply had said stays on the screen; and who will be asked is shown before Enter."""

from tests.tui.stage import Scene, Script, Stage

from bullpen.tui.composer import Composer
from bullpen.tui.unanswered_fold import UnansweredFold

BEGUN: Script = [{"say": "Half of it "}, {"hang": True}]
SAID: Script = [{"say": "All of it."}]


def test_what_a_cancelled_turn_had_said_stays_in_its_place(stage: Stage) -> None:
    stage.agent("max", BEGUN, SAID)

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("Half of it")
        await scene.conversation.cancel()
        await scene.sees("turn 1 was cancelled after", "11 characters said")
        assert "Half of it" not in scene.text, "it is folded"
        await open_fold(scene)
        await scene.say("Again.")
        await scene.sees("All of it.")
        await scene.quiet()
        assert scene.text.index("was cancelled") < scene.text.index("Again.") < scene.text.index("All of it.")

    id_ = stage.play(story)

    async def later(scene: Scene) -> None:
        await scene.sees("turn 1 was cancelled after", "All of it.")
        await open_fold(scene)

    stage.play(later, resume=id_)


async def open_fold(scene: Scene) -> None:
    await scene.app.screen.query_one(UnansweredFold).toggle()
    await scene.sees("Half of it", "The turn was cancelled.")


def test_who_will_be_asked_is_on_the_border_before_enter(stage: Stage) -> None:
    stage.agent("max", SAID)
    stage.agent("sarah", SAID, cli="codex")

    async def story(scene: Scene) -> None:
        composer = scene.app.screen.query_one(Composer)
        assert not composer.border_subtitle
        await scene.type("Go")
        await scene.sees("→ max (max leads the team.)")
        await scene.type(" @sarah.")
        await scene.sees("→ max, then sarah (max leads the team.)")
        composer.text = "@sarah Go"
        await scene.sees("→ sarah ─")
        composer.text = "@sarha"
        await scene.sees("→ nobody. Nobody here is called 'sarha'. Did you mean sarah?")
        composer.text = "/cancel"
        await scene.until(lambda: "→" not in str(composer.border_subtitle))

    stage.play(story)
