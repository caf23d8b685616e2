"""People and agents on the full screen, from the first word to the last."""

import pytest
from tests.tui.stage import Scene, Script, Stage
from textual.widgets import Button, OptionList

from bullpen.conversation.events import Trouble, TroubleOver
from bullpen.errors import NothingRuns
from bullpen.tui.composer import Composer
from bullpen.tui.fold import FoldTitle
from bullpen.tui.members import MembersPanel
from bullpen.tui.message import MessageView
from bullpen.tui.notice import NoticeBar
from bullpen.tui.prompt_screen import DifferenceScreen, PromptScreen
from bullpen.tui.queue import QueuePanel
from bullpen.tui.text_screen import LinesView
from bullpen.tui.transcript import Transcript

WORKING: Script = [
    {"think": "Where do I start?"},
    {"tool": {"name": "Bash", "input": {"command": "ls src"}, "output": "login.py\nlogout.py"}},
    {"say": "I found **login.py**.\n\n```python\ndef login():\n    return True\n```\n\nDone."},
    {"usage": {"input": 1200, "output": 80}, "cost": 0.02},
]
FAILING: Script = [{"error": 500, "message": "the model is down"}]
HANGING: Script = [{"say": "Let me think about it. "}, {"hang": True}]


def saying(text: str) -> Script:
    return [{"say": text}]


def test_a_person_speaks_and_an_agent_answers(stage: Stage) -> None:
    stage.agent("max", WORKING)

    async def story(scene: Scene) -> None:
        await scene.sees("Nothing has been said yet", "Shop", "Build the login.", "no waiting turns")
        await scene.say("Where is it?")
        await scene.sees("Kim → Max", "Where is it?")
        await scene.quiet()
        await scene.sees("Max → everyone", "I found login.py.", "def login():", "thinking · 1 tool")
        await scene.sees("1 turn · 1.3k tokens · $0.0200", "◆ Kim person")

    stage.play(story)


def test_what_an_agent_did_opens_by_key_and_by_mouse(stage: Stage) -> None:
    stage.agent("max", WORKING)

    async def story(scene: Scene) -> None:
        await scene.say("Where is it?")
        await scene.quiet()
        await scene.press("tab", "down", "enter")
        await scene.sees("▾ thinking · 1 tool", "▸ ✻ thinking Where do I start?", "▸ ✓ Bash ls src")
        assert "logout.py" not in scene.text

        await scene.pilot.click(list(scene.app.screen.query(FoldTitle))[2])
        await scene.sees("$ ls src", "logout.py")

    stage.play(story)


def test_what_an_agent_did_another_day_can_be_opened_too(stage: Stage) -> None:
    stage.agent("max", WORKING)

    async def second_day(scene: Scene) -> None:
        await scene.sees("I found login.py.", "▸ what it did")
        await scene.press("tab", "down", "enter")
        await scene.sees("▾ thinking · 1 tool", "▸ ✻ thinking Where do I start?", "▸ ✓ Bash ls src")

    stage.play(second_day, resume=stage.said("Where is it?"))


def test_a_reply_for_which_nothing_was_done_has_no_fold_on_another_day(stage: Stage) -> None:
    stage.agent("max", saying("Hello."), WORKING)

    async def second_day(scene: Scene) -> None:
        await scene.sees("Hello.", "I found login.py.")
        assert scene.text.count("what it did") == 1

    stage.play(second_day, resume=stage.said("Go.", "Go."))


def test_a_note_is_still_called_a_note_on_another_day(stage: Stage) -> None:
    stage.agent("max", saying("Hello."))

    async def first_day(scene: Scene) -> None:
        await scene.say("/note The deadline is Friday.")
        await scene.sees("(A note: nobody was asked.)")
        await scene.say("Go.")
        await scene.quiet()

    async def second_day(scene: Scene) -> None:
        await scene.sees("The deadline is Friday.", "Hello.")
        assert scene.text.count("(a note: nobody was asked)") == 1

    stage.play(second_day, resume=stage.play(first_day))


def test_a_working_agent_is_seen_working(stage: Stage) -> None:
    stage.agent("max", [{"tool": {"name": "Bash", "input": {"command": "make"}, "output": "ok"}}, *HANGING])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("● Max claude", "writing · ", "✓ Bash make", "Let me think about it.")

        await scene.press("f9")
        await scene.sees("max is working. F9 again cancels that.")
        assert len(scene.conversation.running) == 1
        await scene.press("f9")
        await scene.sees("Cancelled: max. /retry 1 runs it again.", "○ Max turn 1 was cancelled")
        assert not {"1 Retry", "✗", "failed", "paused"} & set(scene.text.split("  "))
        assert scene.conversation.running == {}
        assert scene.app.screen.query_one(Transcript).turns == {}

    stage.play(story)


def test_a_failure_asks_and_a_key_tries_again(stage: Stage) -> None:
    stage.agent("max", FAILING, saying("Now it works."))

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("1 Retry", "1 failed", "✗ failed")
        await scene.press("1")
        await scene.sees("Now it works.")
        await scene.until(lambda: not scene.app.screen.query_one(NoticeBar).display)

    stage.play(story)


def test_another_member_takes_the_place_of_one_that_failed(stage: Stage) -> None:
    stage.agent("max", FAILING)
    stage.agent("sarah", saying("I do it instead."), cli="codex")
    stage.agent("lee", saying("Nor I."), cli="gemini")

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("1 Retry", "2 Skip", "3 Hand over")
        await scene.press("3")
        await scene.sees("/hand", "sarah", "lee")
        await scene.type("sarah")
        await scene.press("enter")
        await scene.sees("I do it instead.")

    stage.play(story)


def test_a_turn_that_failed_can_be_skipped_with_the_mouse(stage: Stage) -> None:
    stage.agent("max", FAILING)

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("2 Skip")
        skip = next(button for button in scene.app.screen.query(Button) if "Skip" in str(button.label))
        await scene.pilot.click(skip)
        await scene.until(lambda: not scene.conversation.undecided)
        assert not scene.app.screen.query_one(NoticeBar).display

    stage.play(story)


def test_after_a_cancel_the_bar_offers_to_continue_and_the_queue_says_why_it_waits(stage: Stage) -> None:
    stage.agent("max", HANGING, saying("Later."))

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.until(lambda: len(scene.conversation.running) == 1)
        await scene.say("And then this.")
        await scene.until(lambda: len(scene.conversation.waiting) == 1)
        await scene.say("/cancel")
        await scene.sees("1 Continue", "2 Retry", "waits until you continue:")
        await scene.press("1")
        await scene.sees("Later.")

    stage.play(story)


def test_a_cap_asks_whether_to_continue(stage: Stage) -> None:
    stage.head('name = "Shop"\n[limits]\nturns_per_message = 1\n')
    stage.agent("max", saying("Your turn. [NEXT: sarah]"))
    stage.agent("sarah", saying("Thank you."), cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("taken 1 turn since you last spoke", "1 Continue", "Drop the queue")
        await scene.press("1")
        await scene.sees("Thank you.")

    stage.play(story)


def test_a_missed_hand_over_is_one_key_from_being_made(stage: Stage) -> None:
    stage.agent("max", saying("The API is done. Sarah, please review it."))
    stage.agent("sarah", saying("It is fine."), cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("1 Ask sarah", "3 Leave it")
        await scene.press("1")
        await scene.sees("It is fine.")

    stage.play(story)


def test_the_queue_is_reordered_and_dropped_by_keys(stage: Stage) -> None:
    stage.agent("max", HANGING)
    stage.agent("sarah", saying("Yes."), cli="codex")
    stage.agent("lee", saying("No."), cli="gemini")

    async def story(scene: Scene) -> None:
        await scene.say("[NEXT: max, sarah, lee] Go.")
        await scene.sees("1. sarah", "2. lee", "Let me think")
        await scene.press("ctrl+g", "shift+down")
        await scene.sees("1. lee", "2. sarah")
        await scene.press("delete", "delete")
        await scene.until(lambda: [turn.member for turn in scene.conversation.waiting] == ["lee"])
        await scene.press("ctrl+delete", "ctrl+delete")
        await scene.sees("no waiting turns")
        await scene.press("f9", "f9")

    stage.play(story)


def test_the_task_is_changed_by_key_and_by_command(stage: Stage) -> None:
    stage.agent("max", saying("Yes."))

    async def story(scene: Scene) -> None:
        await scene.press("f4")
        await scene.sees("The team's task")
        await scene.press("ctrl+a", "ctrl+k")
        await scene.type("Ship it")
        await scene.press("ctrl+s")
        await scene.sees("▸ Ship it")
        await scene.say("/task Rest")
        await scene.sees("▸ Rest")
        assert scene.conversation.team_task == "Rest"

    stage.play(story)


def test_what_was_said_is_found(stage: Stage) -> None:
    stage.agent("max", saying("The cookie is in the jar."), saying("Other words."))

    async def story(scene: Scene) -> None:
        await scene.say("First.")
        await scene.quiet()
        await scene.say("Second.")
        await scene.quiet()
        await scene.press("f3")
        await scene.type("cookie")
        await scene.until(lambda: scene.app.screen.query_one("#found", OptionList).option_count == 1)
        await scene.press("enter")
        focused = scene.app.screen.focused
        assert isinstance(focused, MessageView)
        assert focused.sequence == 2

    stage.play(story)


def test_one_key_shows_the_exact_prompt_and_its_report(stage: Stage) -> None:
    stage.agent("max", saying("Yes."))

    async def story(scene: Scene) -> None:
        await scene.say("Is [this] exact?")
        await scene.quiet()
        await scene.press("ctrl+o")
        await scene.sees("What max was given in turn 1", "of 786,432 bytes for claude-code", "team task", "message")
        assert "of 0 " not in scene.text
        scene.app.screen.query_one(LinesView).scroll_end(animate=False)
        await scene.sees("Is [this] exact?")
        await scene.press("escape")
        await scene.say("/prompt max")
        await scene.sees("What max would be given now")

    stage.play(story)


def test_a_command_that_does_not_exist_says_so_and_stays(stage: Stage) -> None:
    stage.agent("max", saying("Yes."))

    async def story(scene: Scene) -> None:
        await scene.say("/nonsense now")
        await scene.sees("There is no command /nonsense", "/nonsense now")
        assert await scene.conversation.messages() == []

    stage.play(story)


def test_an_error_is_a_sentence_on_the_screen(stage: Stage) -> None:
    stage.agent("max", saying("Yes."))

    async def story(scene: Scene) -> None:
        await scene.press("f9")
        await scene.sees(str(NothingRuns(None)))

    stage.play(story)


def test_leaving_while_somebody_works_asks_first(stage: Stage) -> None:
    stage.agent("max", HANGING)

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("Let me think")
        await scene.press("ctrl+q")
        await scene.sees("max is working. ctrl+q again")
        assert scene.app.is_running
        await scene.pilot.press("ctrl+q")
        await scene.pilot.pause()
        assert not scene.app._running or scene.app._exit

    stage.play(story)


def test_a_conversation_is_resumed_where_it_was(stage: Stage) -> None:
    stage.agent("max", saying("The first answer."), FAILING)

    async def second(scene: Scene) -> None:
        await scene.sees("First question.", "The first answer.", "Second question.", "1 Retry", "1 failed")
        await scene.press("up")
        await scene.sees("Second question.")

    stage.play(second, resume=stage.said("First question.", "Second question."))


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_the_panel_is_shown_where_there_is_room_and_on_a_key(stage: Stage, size: tuple[int, int]) -> None:
    stage.agent("max", saying("Yes."))

    async def story(scene: Scene) -> None:
        panel = scene.app.screen.query_one(MembersPanel)
        wide = size[0] > 100
        assert panel.is_on_screen == wide
        await scene.press("f2")
        assert panel.is_on_screen != wide

    stage.play(story, size=size)


def test_help_shows_every_key(stage: Stage) -> None:
    stage.agent("max", saying("Yes."))

    async def story(scene: Scene) -> None:
        await scene.press("f1")
        await scene.sees("F9", "Cancel the selected turn", "ctrl+q", "shift+enter ctrl+j alt+enter", "/pick")
        await scene.type("cancel")
        await scene.sees("Cancel the selected turn", "Everywhere", "/cancel")
        await scene.until(lambda: "shift+enter" not in scene.text and "While you write" not in scene.text)
        await scene.press("escape")
        await scene.say("/help")
        await scene.sees("Everywhere")

    stage.play(story, size=(100, 150))


def test_everything_works_in_light_too(stage: Stage) -> None:
    stage.agent("max", WORKING)

    async def story(scene: Scene) -> None:
        await scene.say("Where is it?")
        await scene.quiet()
        dark = scene.app.screen.query_one(QueuePanel).background_colors[1]
        await scene.press("ctrl+t")
        await scene.sees("def login():")
        light = scene.app.screen.query_one(QueuePanel).background_colors[1]
        assert dark.brightness < 0.3 < 0.7 < light.brightness

    stage.play(story)


def test_a_turn_is_explained_by_its_number(stage: Stage) -> None:
    stage.agent("max", saying("Here it is."))

    async def story(scene: Scene) -> None:
        await scene.say("Where is the login?")
        await scene.sees("Here it is.")
        turn = await scene.conversation.read(lambda store, name: store.turns(name)[-1].id)
        await scene.say(f"/explain {turn}")
        await scene.until(lambda: isinstance(scene.app.screen, PromptScreen))
        await scene.sees("Where is the login?")
        await scene.press("escape")
        await scene.say("/explain 4711")
        await scene.sees("There is no turn '4711'")
        assert scene.app.screen.query_one(Composer).text == "/explain 4711"
        await scene.press("ctrl+u")
        await scene.say("/explain #99999999999999999999")
        await scene.sees("No turn of")

    stage.play(story)


def test_the_queue_is_reached_by_its_command(stage: Stage) -> None:
    stage.agent("max", HANGING)
    stage.agent("sarah", saying("Here it is."), cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go. [NEXT: max, sarah]")
        await scene.until(lambda: len(scene.conversation.waiting) == 1)
        await scene.say("/queue")
        await scene.until(lambda: isinstance(scene.app.screen.focused, QueuePanel))

    stage.play(story)


def test_the_last_turn_is_explained_and_compared_with_the_one_before(stage: Stage) -> None:
    stage.agent("max", saying("It is in login.py."), saying("It has one now."))

    async def story(scene: Scene) -> None:
        await scene.say("Where is the login?")
        await scene.quiet()
        await scene.say("/explain")
        await scene.sees("What max was given in turn 1")
        await scene.press("ctrl+d")
        await scene.sees("max has not had a turn before.")
        await scene.press("escape")
        await scene.say("Add a limit.")
        await scene.quiet()
        await scene.say("/explain")
        await scene.sees("What max was given in turn 2")
        await scene.press("ctrl+d")
        await scene.until(lambda: isinstance(scene.app.screen, DifferenceScreen))
        await scene.sees("Turn 2 of max, compared with turn 1", "1 message in both", "+Kim -> max: Add a limit.")
        await scene.sees("2 messages only in turn 2: #2 (Max), #3 (Kim)")
        await scene.press("escape", "escape")
        await scene.say("/prompt max")
        await scene.press("ctrl+d")
        await scene.sees("The next turn of max, compared with turn 2")

    stage.play(story, size=(120, 60))


def test_a_turn_that_has_not_started_has_no_prompt_yet(stage: Stage) -> None:
    stage.agent("max", HANGING)
    stage.agent("sarah", saying("Yes."), cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go. [NEXT: max, sarah]")
        await scene.until(lambda: len(scene.conversation.waiting) == 1)
        await scene.say("/explain 2")
        await scene.sees("Turn 2 of sarah has not started")

    stage.play(story)


def test_the_panel_that_a_wide_terminal_has_anyway_is_not_kept_in_a_narrow_one(stage: Stage) -> None:
    stage.agent("max", saying("Yes."))

    async def story(scene: Scene) -> None:
        await scene.say("/queue")
        panel = scene.app.screen.query_one(MembersPanel)
        assert panel.is_on_screen
        await scene.pilot.resize_terminal(80, 24)
        await scene.until(lambda: not panel.is_on_screen)
        await scene.say("/queue")
        assert panel.is_on_screen

    stage.play(story, size=(140, 40))


def test_words_are_found_by_a_command(stage: Stage) -> None:
    stage.agent("max", saying("The cookie isn't in the jar."))

    async def story(scene: Scene) -> None:
        await scene.say("Where is it?")
        await scene.quiet()
        await scene.say("/search isn't")
        await scene.until(lambda: scene.app.screen.query_one("#found", OptionList).option_count == 1)
        await scene.sees("#2 Max")

    stage.play(story)


def test_a_command_that_fails_stays_in_the_composer_and_one_that_works_does_not(stage: Stage) -> None:
    stage.agent("max", saying("Yes."))

    async def story(scene: Scene) -> None:
        composer = scene.app.screen.query_one(Composer)
        await scene.say("/hand max")
        await scene.sees("No turn is waiting for")
        assert composer.text == "/hand max"
        await scene.press("ctrl+u")
        await scene.say("/drop")
        await scene.sees("No turn is waiting.")
        assert composer.text == ""
        await scene.say("/task")
        await scene.sees("The team's task: Build the login.")

    stage.play(story)


def test_each_of_several_failures_is_decided_by_itself(stage: Stage) -> None:
    stage.agent("max", FAILING, saying("Now it works."))
    stage.agent("sarah", FAILING, cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go. [NEXT: max & sarah]")
        await scene.until(lambda: len(scene.conversation.undecided) == 2)
        await scene.sees("1 more decision")
        latest, first = reversed(scene.conversation.undecided)
        await scene.sees(f"{latest.member} (turn {latest.id}):")
        await scene.press("2")
        await scene.sees(f"{first.member} (turn {first.id}):")
        assert "more decision" not in scene.text
        assert [turn.id for turn in scene.conversation.undecided] == [first.id]

    stage.play(story)


def test_trouble_is_shown_before_anything_else_until_it_is_dismissed(stage: Stage) -> None:
    stage.agent("max", FAILING)

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("1 Retry")
        scene.conversation._journal.publish(Trouble(text="The disk is nearly full."))
        await scene.sees("The disk is nearly full.", "1 Leave it", "1 more decision")
        await scene.press("1")
        await scene.sees("1 Retry")
        assert "nearly full" not in scene.text
        assert len(scene.conversation.undecided) == 1

    stage.play(story)


def test_trouble_that_is_over_leaves_the_screen_and_other_trouble_stays(stage: Stage) -> None:
    stage.agent("max", FAILING)

    async def story(scene: Scene) -> None:
        publish = scene.conversation._journal.publish
        publish(Trouble(text="The disk is nearly full."))
        publish(Trouble(text="'b.txt' still has conflict marks.", about="b"))
        publish(Trouble(text="'a.txt' still has conflict marks.", about="a"))
        await scene.sees("'a.txt' still has conflict marks.", "2 more decisions")
        publish(TroubleOver(about="a", text="They are gone."))
        await scene.sees("'b.txt' still has conflict marks.", "1 more decision")
        publish(TroubleOver(about="b", text="They are gone."))
        await scene.sees("The disk is nearly full.")
        assert "more decision" not in scene.text
        publish(TroubleOver(about="a", text="They are gone."))
        await scene.sees("1 Leave it")
        await scene.press("1")
        await scene.until(lambda: not scene.app.screen.query_one(NoticeBar).display)

    stage.play(story)


def test_a_missed_hand_over_can_be_left_as_it_is(stage: Stage) -> None:
    stage.agent("max", saying("The API is done. Sarah, please review it."))
    stage.agent("sarah", saying("It is fine."), cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("3 Leave it")
        await scene.press("3")
        await scene.until(lambda: not scene.app.screen.query_one(NoticeBar).display)
        assert scene.conversation.progress.missed is None

    stage.play(story)
