"""What checks said, on the full screen: live below the message, and one key shows what they wrote."""

from msgspec.structs import replace
from tests.tui.stage import Scene, Stage
from textual.widgets import Static

from bullpen.check_results import CheckResult
from bullpen.conversation.events import Checked
from bullpen.store.base import Store
from bullpen.tui.check_fold import CheckFold

RUNNING = CheckResult(
    turn_id="1",
    member="max",
    name="pytest",
    command=("pytest", "-q"),
    workspace="/p",
    state="running",
    at=5,
    after_message=2,
)
OUTPUT = "first line\n" + "\x1b[31m[bold]深\n" * 5 + "the last line"


async def keep(scene: Scene, result: CheckResult) -> CheckResult:
    def kept(store: Store, conversation_id: str) -> CheckResult:
        owner = store.conversation(conversation_id).owner
        write = store.finish_check if result.number else store.add_check
        return write(conversation_id, result, owner=owner)

    stored = await scene.conversation.read(kept)
    scene.conversation._journal.publish(Checked(result=stored))
    await scene.settled()
    return stored


def test_it_runs_ends_and_unfolds_at_any_width(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}], more='permissions = "read-only"')

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        await scene.sees("Yes.")
        begun = await keep(scene, RUNNING)
        await scene.sees("… pytest: running")
        await keep(scene, replace(begun, state="red", exit_code=1, seconds=2.1, output=OUTPUT))
        await scene.sees("▸ ✗ pytest: red (exit 1), 2.1 s")
        await keep(scene, replace(RUNNING, name="lint", state="green", seconds=0.5))
        await scene.sees("▸ ✓ lint: green, 0.5 s")
        await unfold(scene)
        await scene.type("/checks 1")
        await scene.press("enter")
        await scene.sees("Checks after turn 1", "$ pytest -q", "first line")

    conversation = stage.play(story, size=(40, 40))

    async def again(scene: Scene) -> None:
        for columns in (120, 80, 40):
            await scene.pilot.resize_terminal(columns, 40)
            await scene.sees("▸ ✗ pytest: red (exit 1), 2.1 s", "▸ ✓ lint: green, 0.5 s")
            await unfold(scene)

    stage.play(again, resume=conversation)


async def unfold(scene: Scene) -> None:
    """Open what the first check wrote, and close it."""
    scene.app.screen.query(CheckFold).first()._title.focus()
    await scene.press("enter")
    await scene.sees("▾ ✗ pytest: red (exit 1), 2.1 s", "the last line")
    await scene.press("enter")
    assert "the last line" not in scene.text


def test_of_a_long_output_the_end_is_unfolded(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}], more='permissions = "read-only"')

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        await scene.sees("Yes.")
        long = "".join(f"line {number}\n" for number in range(500))
        await keep(scene, replace(RUNNING, state="red", exit_code=1, output=long))
        await scene.sees("pytest: red")
        fold = scene.app.screen.query(CheckFold).first()
        await fold.toggle()
        await scene.sees("line 499")
        shown = str(fold.query_one(".output", Static).content)
        assert "… 442 lines are left out here: /checks 1 shows them" in shown
        assert "line 440" not in shown

    stage.play(story)
