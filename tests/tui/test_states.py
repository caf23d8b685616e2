"""What works, waits or has failed looks the same in the bar, among the members and beside the turn."""

import pytest
from tests.tui.stage import Scene, Script, Stage

from bullpen.tui.composer import Composer, SuggestionList
from bullpen.tui.key_line import KeyLine
from bullpen.tui.message import MessageView
from bullpen.tui.note_line import NoteLine
from bullpen.tui.running_heads import RunningHeads
from bullpen.tui.status import StatusBar
from bullpen.tui.step_folds import StepFold
from bullpen.tui.transcript import Transcript
from bullpen.tui.turn import MOST_FOLDS, TurnView

EDITS = 'permissions = "edit"\n'
HANGING: Script = [{"say": "Let me think about it. "}, {"hang": True}]


def test_an_agent_that_asks_waits_everywhere(stage: Stage) -> None:
    stage.agent("max", [{"ask": "touch a"}], more='permissions = "ask"')

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("◆ waits for you", "◆ Max claude", "◆ Max waits for you · ", "Max  ◆ waits for you")
        assert "●" not in scene.text

    stage.play(story)


def test_a_long_name_of_a_team_does_not_hide_the_state_on_a_small_screen(stage: Stage) -> None:
    stage.agent("max", [{"ask": "touch a"}], more='permissions = "ask"')
    stage.head('name = "build-review-until-approved"\n')

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("1 Yes")
        assert "◆ waits for you" in scene.text.splitlines()[0]

    stage.play(story, size=(45, 14))


def test_a_failure_has_failed_everywhere(stage: Stage) -> None:
    stage.agent("max", [{"error": 500, "message": "the model is down"}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("✗ failed", "✗ Max claude", "✗ Max turn 1 failed")

    stage.play(story)


def test_who_works_on_what_stays_above_the_composer_however_much_it_says(stage: Stage) -> None:
    stage.agent("max", [{"say": "word\n\n" * 60}, {"hang": True}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("● working", "● Max writing · ", "esc cancel · /tell max", "esc Cancel")
        scene.app.screen.query_one(Transcript).scroll_home(animate=False)
        await scene.settled()
        assert "● Max writing · " in scene.text
        await scene.press("escape", "escape")
        await scene.sees("Cancelled: max. /retry 1 runs it again.")
        assert not scene.app.screen.query_one(RunningHeads).display
        assert "esc Cancel" not in scene.text

    stage.play(story, size=(80, 14))


def test_many_at_work_are_three_lines(stage: Stage) -> None:
    for name in "abcd":
        stage.agent(name, HANGING, cli="text")

    async def story(scene: Scene) -> None:
        await scene.say("Go. [NEXT: a & b & c & d]")
        await scene.until(lambda: len(scene.conversation.running) == 4)
        await scene.sees("+2 more")
        assert scene.app.screen.query_one(RunningHeads).size.height == 3

    stage.play(story, size=(45, 20))


def test_what_bullpen_says_covers_nothing(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        before = scene.app.screen.query_one(Transcript).region
        await scene.say("/undo")
        await scene.sees("! There is nothing to undo")
        note = scene.app.screen.query_one(NoteLine)
        others = [scene.app.screen.query_one(kind) for kind in (Transcript, StatusBar, RunningHeads)]
        assert not any(note.region.overlaps(other.region) for other in others if other.display)
        scene.app.clear_notifications()
        await scene.until(lambda: scene.app.screen.query_one(Transcript).region == before)

    stage.play(story, size=(45, 14))


def test_the_composer_is_there_however_little_room_there_is(stage: Stage) -> None:
    stage.agent("max", [{"ask": "touch a"}], more='permissions = "ask"')
    stage.agent("ada", HANGING, cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go. [NEXT: max & ada]")
        await scene.sees("◆ Max waits for you · ", "touch a")
        await scene.say("/undo")
        await scene.sees("! There is nothing to undo")
        lowest = scene.app.screen.query_one(KeyLine).region
        assert scene.app.screen.query_one(Composer).region.bottom <= lowest.y == 13

    stage.play(story, size=(45, 14))


def test_a_long_question_leaves_the_composer_where_it_is(stage: Stage) -> None:
    command = "rm -rf build && python3 -m pytest -q tests/test_prices.py --maxfail=1 --durations=10 -p no:cacheprovider"
    stage.agent("max", [{"ask": f"{command} --tb=short && echo done > build/result.txt"}], more='permissions = "ask"')

    async def story(scene: Scene) -> None:
        def is_whole() -> None:
            screen = scene.app.screen
            assert screen.query_one(Composer).region.bottom == screen.query_one(KeyLine).region.y == 13, scene.text
            assert (screen.query_one(Composer).region.height, screen.max_scroll_y) == (3, 0)

        await scene.say("Go.")
        await scene.sees(
            "1 Yes", "2 Yes, for exactly this from now on", "3 No, and say why", "esc stop", "rm -rf build"
        )
        is_whole()
        scene.app.screen.query_one("#asked").scroll_end(animate=False)
        await scene.sees("build/result.txt")
        await scene.type("/")
        await scene.until(lambda: scene.app.screen.query_one(SuggestionList).display)
        is_whole()
        await scene.press("backspace")
        await scene.say("/undo 99999 with more words than there is room for in two lines of a small screen")
        await scene.sees("! ", "…", "1 Yes", "esc stop")
        is_whole()
        scene.app.screen.query_one(Composer).load_text("")
        await scene.press("1")
        await scene.sees("kim said yes to max: rm -rf", "…")

    stage.play(story, size=(45, 14))


@pytest.mark.parametrize("size", [(45, 14), (80, 24)])
def test_a_narrow_screen_says_why_what_was_said_does_not_begin(stage: Stage, size: tuple[int, int]) -> None:
    stage.agent("kai", HANGING, cli="codex", more=EDITS)
    stage.agent("max", [{"say": "Done."}], more=EDITS)

    async def story(scene: Scene) -> None:
        await scene.say("@kai go")
        await scene.sees("● working")
        await scene.say("@max a")
        await scene.sees("max waits for kai: both may edit")
        await scene.say("@max b")
        await scene.sees("+2", "max waits for kai: both may edit")
        await scene.press("x")
        assert "max waits" not in scene.text
        await scene.press("backspace", "f2")
        line = str(scene.app.screen.query_one(Composer).border_subtitle)
        assert line == "", "the panel says it"

    stage.play(story, size=size)


def test_a_verdict_is_a_chip_on_its_message(stage: Stage) -> None:
    stage.agent("max", [{"say": "Fine.\n\n[VERDICT: approve]"}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("Max → everyone  ✓ approved")
        assert len(scene.app.screen.query(MessageView)) == 2

    stage.play(story)


def test_the_tools_before_the_last_are_one_line(stage: Stage) -> None:
    tools = [{"tool": {"name": "Bash", "input": {"command": f"step {n}"}, "output": "ok"}} for n in range(8)]
    stage.agent("max", [*tools, {"hang": True}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("5 earlier tools", "✓ Bash step 5", "✓ Bash step 7")
        turn = scene.app.screen.query_one(TurnView)
        assert len(turn.query(StepFold)) == MOST_FOLDS == 3
        await turn._earlier.toggle()
        await scene.sees("✓ Bash step 0", "✓ Bash step 4")

    stage.play(story)
