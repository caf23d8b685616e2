"""A long text: its beginning and its end are on the screen, its middle is folded, and nothing of it is lost."""

from hypothesis import given
from hypothesis import strategies as st
from tests.tui.stage import Scene, Stage

from bullpen.conversation.running_turn import RunningTurn
from bullpen.routing.queue import WaitingTurn
from bullpen.tui.long_text import effort, folded
from bullpen.tui.middle_fold import MiddleFold
from bullpen.tui.text import MOST_LINES
from bullpen.tui.transcript import Transcript
from bullpen.turn_events import Event, TextDelta, ToolStarted

LIST = "\n".join(f"- item {number}" for number in range(100))
ORDINARY = f"Here is all of it:\n\n{LIST}\n\n```diff\n+ a\n- b\n```\n\nShall I change the cookie, too?"


def test_the_end_of_a_reply_is_never_folded() -> None:
    said = folded([ORDINARY])

    assert [text.split("\n")[0] for _, text in said.before] == ["Here is all of it:"]
    assert said.after[0][1].endswith("+ a\n- b\n```\n\nShall I change the cookie, too?")
    assert said.middle.startswith("- item ")
    assert f"{said.before[0][1]}{said.middle}{said.after[0][1]}" == ORDINARY


def test_what_is_short_is_whole_and_code_is_as_light_as_it_is_to_lay_out() -> None:
    diff = "```diff\n" + "\n".join(f"+ line {number}" for number in range(300)) + "\n```"

    assert folded([diff, "Fine?"]).before == ((0, diff), (1, "Fine?"))
    assert effort(diff) < 5 < effort(LIST) == MOST_LINES


def test_code_that_is_cut_is_code_on_both_sides() -> None:
    code = "~~~py\n" + "\n".join(f"line_{number} = {number}" for number in range(2_000)) + "\n~~~\n\nDone."
    said = folded([code])

    assert said.before[0][1].startswith("~~~py\nline_0")
    assert said.before[0][1].endswith("\n~~~")
    assert said.after[0][1].startswith("~~~py\nline_")
    assert said.after[0][1].endswith("\n~~~\n\nDone.")


def test_several_texts_are_as_much_as_one_together() -> None:
    said = folded(["First.", LIST, LIST, "Last?"])

    assert [number for number, _ in said.before] == [0, 1]
    assert [number for number, _ in said.after] == [2, 3]
    assert said.after[-1][1] == "Last?"


@given(st.lists(st.text(alphabet="ab -\n", max_size=60), min_size=1, max_size=4), st.integers(1, 40), st.integers(1, 9))
def test_nothing_is_lost_and_the_order_stays(texts: list[str], characters: int, lines: int) -> None:
    said = folded(texts, characters, lines)
    parts = [text for _, text in said.before] + [said.middle] + [text for _, text in said.after]

    assert "".join("".join(parts).split()) == "".join("".join(texts).split())


def test_a_long_reply_opens_into_all_of_it(stage: Stage) -> None:
    stage.agent("max", [{"say": ORDINARY}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("Shall I change the cookie, too?")
        (fold,) = scene.app.screen.query(MiddleFold)
        assert "lines in the middle" in fold._words.plain
        await fold.toggle()
        await scene.settled()
        scene.app.screen.query_one(Transcript).release_anchor()
        fold.scroll_visible(animate=False, top=True)
        await scene.sees("item 30")

    stage.play(story, size=(80, 24))


def test_streaming_never_stops_being_shown(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        running = RunningTurn(WaitingTurn(id="7", member="max", message_id="m"))
        await transcript.begin("7", running, at=0)
        for number in range(12):
            text = "".join(f"- line {number} {place}\n" for place in range(30))
            events: list[Event] = [TextDelta(text), *([ToolStarted(id="1", name="Bash")] if number == 9 else [])]
            for event in events:
                running.on_event(event)
                await transcript.on_turn_event("7", event)
            await scene.sees(f"line {number} 29")
        (fold,) = scene.app.screen.query(MiddleFold)
        assert "lines in the middle" in fold._words.plain
        await transcript.on_turn_event("7", TextDelta(""))
        assert len(scene.app.screen.query("BulletList MarkdownListItem")) < 120

    stage.play(story, size=(80, 24))
