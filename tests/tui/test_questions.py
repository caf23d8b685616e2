"""What agents ask on the full screen: an answer is its number, and everybody reads who answered."""

from tests.tui.stage import Scene, Stage

from bullpen.approvals import Answer

OFFER = "Shall I? [ASK: yes | no | later]"


async def said_by_kim(scene: Scene) -> list[str]:
    messages = [one.message for one in await scene.conversation.messages()]
    return [message.content for message in messages if message.speaker.role_id == "kim"]


def test_an_answer_that_an_agent_offers_is_chosen_with_its_number(stage: Stage) -> None:
    stage.agent("max", [{"say": OFFER}], [{"say": f"Good. {OFFER}"}], [{"say": "Fine."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("Shall I?", "1 yes", "2 no", "3 later")
        await scene.press("1")
        await scene.sees("Good.", "3 later")
        await scene.press("3")
        await scene.sees("Fine.")
        assert await said_by_kim(scene) == ["Go.", "yes", "later"]
        assert "2 no" not in scene.text

    stage.play(story)


def test_a_digit_needs_no_enter_and_a_number_that_no_answer_has_is_a_message(stage: Stage) -> None:
    stage.agent("max", [{"say": OFFER}], [{"say": f"Good. {OFFER}"}], [{"say": "Fine."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("1 yes")
        await scene.press("1")
        await scene.sees("Good.", "3 later")
        await scene.say("7")
        await scene.sees("Fine.")
        assert await said_by_kim(scene) == ["Go.", "yes", "7"]

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


def test_one_word_answers_an_agent_that_asks(stage: Stage) -> None:
    stage.agent("max", [{"ask": "touch a"}], more='permissions = "ask"')

    async def story(scene: Scene) -> None:
        for word, became in (("y", "Allowed: touch a"), ("No", "Not allowed")):
            await scene.say("Go.")
            await scene.sees("wants to run a command")
            await scene.say(word)
            await scene.sees(became)
            await scene.quiet()
        assert [one.message.speaker.role_id for one in await scene.conversation.messages()] == ["kim", "max"] * 2

    stage.play(story)
