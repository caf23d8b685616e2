"""What agents ask on the full screen: an answer is its number, and everybody reads who answered."""

import pytest
from tests.tui.stage import Scene, Stage

from bullpen.approvals import Answer

OFFER = "Shall I? [ASK: yes | no | later]"


@pytest.mark.parametrize(("number", "words"), [("1", "yes"), ("3", "later")])
def test_an_answer_that_an_agent_offers_is_chosen_with_its_number(number: str, words: str, stage: Stage) -> None:
    stage.agent("max", [{"say": OFFER}], [{"say": "Good."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("Shall I?", "1 yes", "2 no", "3 later")
        await scene.type(number)
        await scene.press("enter")
        await scene.sees("Good.")
        assert [one.message.content for one in await scene.conversation.messages()][-2:] == [words, "Good."]
        assert "2 no" not in scene.text

    stage.play(story)


def test_the_first_answer_has_a_key_of_its_own(stage: Stage) -> None:
    stage.agent("max", [{"say": OFFER}], [{"say": "Good."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("1 yes")
        await scene.press("f8")
        await scene.sees("Good.")
        assert [one.message.content for one in await scene.conversation.messages()][-2] == "yes"

    stage.play(story)


def test_a_number_that_no_answer_has_is_a_message(stage: Stage) -> None:
    stage.agent("max", [{"say": OFFER}], [{"say": "Good."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("3 later")
        await scene.type("7")
        await scene.press("enter")
        await scene.sees("Good.")
        assert [one.message.content for one in await scene.conversation.messages()][-2] == "7"

    stage.play(story)


def test_who_looks_on_reads_who_answered(stage: Stage) -> None:
    stage.agent("max", [{"ask": "touch a"}, {"ask": "touch b"}], more='permissions = "ask"')

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        # Somebody else answers, in another door.
        for command, answer in (("touch a", "yes"), ("touch b", "no")):
            await scene.sees(command)
            [(turn, question)] = scene.conversation.approvals.open
            verdict = Answer(verdict="yes") if answer == "yes" else Answer(verdict="no", reason="not today")
            await scene.conversation.answer(turn, question, verdict, by="kim")
            await scene.sees(f"kim said {answer} to max: {command}")
        await scene.sees("(not today)")
        await scene.quiet()

    stage.play(story)


@pytest.mark.parametrize(("word", "became"), [("y", "Allowed: touch a"), ("No", "Not allowed")])
def test_one_word_answers_an_agent_that_asks(word: str, became: str, stage: Stage) -> None:
    stage.agent("max", [{"ask": "touch a"}], more='permissions = "ask"')

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("wants to run a command")
        await scene.type(word)
        await scene.press("enter")
        await scene.sees(became)
        assert [one.message.speaker.role_id for one in await scene.conversation.messages()][1:] == ["max"]

    stage.play(story)
