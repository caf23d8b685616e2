"""A reply that offers answers with [ASK: …]: the one that a person chooses is said to the agent, and only to it."""

import asyncio

import pytest
from tests.conversation.stage import HANG, Stage, said, until_at_work

from bullpen.approvals import Answer
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import ConversationEvent, Offered
from bullpen.errors import AnsweredAlready, NothingAsked
from bullpen.turn_events import ApprovalAsked
from bullpen.view.choices import Decision, with_key
from bullpen.view.commands import read_command, run_command, typed_choice
from bullpen.view.state import conversation_view

ASKS = "Shall I delete it? [ASK: yes | no | @b do it]"


@pytest.fixture
def talk(stage: Stage) -> Stage:
    stage.people_and_agents("kim lee", "")
    stage.agent("a", ASKS, "Thanks.")
    stage.agent("b", "I am b.")
    return stage


def questions(conversation: Conversation) -> list[Decision]:
    return [one for one in conversation_view(conversation).decisions if one.kind == "question"]


async def asked(conversation: Conversation) -> Decision:
    await conversation.say("@a go", sender="kim")
    await conversation.until_quiet()
    [question] = questions(conversation)
    return question


def test_one_key_answers_and_the_agent_gets_it_as_a_message(talk: Stage) -> None:
    async def play() -> None:
        async with talk.open() as conversation:
            events: list[ConversationEvent] = []

            async def watch() -> None:
                async for event in conversation.watch():
                    events[len(events) :] = [event]

            watching = asyncio.create_task(watch())
            await asyncio.sleep(0)
            question = await asked(conversation)
            assert (question.text, question.shown) == ("a asks you (turn 1).", "Shall I delete it?")
            assert [(one.key, one.label) for one in question.choices] == [
                *(("1", "yes"), ("2", "no"), ("3", "@b do it")),
                ("", "No answer"),
            ]
            chosen = with_key(" 2 ", [question])
            assert chosen is not None
            await run_command(typed_choice(chosen), conversation, "lee")
            await conversation.until_quiet()
            watching.cancel()
            assert await said(conversation) == ["kim: @a go", f"a: {ASKS}", "lee: no", "a: Thanks."]
            assert questions(conversation) == []
            assert [event for event in events if isinstance(event, Offered)] == [
                Offered(turn_id="1", member="a", choices=("yes", "no", "@b do it"))
            ]
            with pytest.raises(AnsweredAlready, match=r"no \(lee\)"):
                await conversation.answer_ask("1", "yes", by="kim")
            with pytest.raises(NothingAsked):
                await conversation.answer_ask("7", "yes", by="kim")

    asyncio.run(play())


def test_a_name_in_the_words_of_an_agent_asks_nobody(talk: Stage) -> None:
    async def play() -> list[str]:
        async with talk.open() as conversation:
            question = await asked(conversation)
            await run_command(typed_choice(question.choices[2]), conversation, "kim")
            await conversation.until_quiet()
            return await said(conversation)

    assert asyncio.run(play())[2:] == ["kim: @b do it", "a: Thanks."]


@pytest.mark.parametrize(
    ("line", "then"),
    [
        ("/no", []),
        ("/no 1", []),
        ("/yes 1 on Monday", ["kim: on Monday", "a: Thanks."]),
        ("/yes yes", ["kim: yes", "a: Thanks."]),
        ("/no 1 it is Friday", ["kim: it is Friday", "a: Thanks."]),
    ],
)
def test_it_can_be_typed(talk: Stage, line: str, then: list[str]) -> None:
    async def play() -> list[str]:
        async with talk.open() as conversation:
            await asked(conversation)
            typed = read_command(line, conversation.team)
            assert typed is not None
            await run_command(typed, conversation, "kim")
            await conversation.until_quiet()
            assert questions(conversation) == []
            return (await said(conversation))[2:]

    assert asyncio.run(play()) == then


def test_it_is_over_when_the_person_says_something_else_to_the_agent(talk: Stage) -> None:
    async def play() -> None:
        async with talk.open() as conversation:
            await asked(conversation)
            await conversation.say("@b hello", sender="kim")
            await conversation.until_quiet()
            assert len(questions(conversation)) == 1
            await conversation.say("@a never mind", sender="kim")
            await conversation.until_quiet()
            assert questions(conversation) == []

    asyncio.run(play())


def test_it_is_still_there_after_a_restart(talk: Stage) -> None:
    async def play() -> None:
        async with talk.open() as conversation:
            before = await asked(conversation)
            conversation_id = conversation.id
        async with talk.open(resume=conversation_id) as conversation:
            assert questions(conversation) == [before]
            await conversation.answer_ask("1", "yes", by="kim")
            await conversation.until_quiet()
            assert (await said(conversation))[2:] == ["kim: yes", "a: Thanks."]

    asyncio.run(play())


def test_an_answer_to_a_running_agent_is_a_message_too(stage: Stage) -> None:
    stage.people_and_agents("kim lee", "")
    stage.agent("a", HANG)

    async def play() -> list[str]:
        async with stage.open() as conversation:
            await conversation.say("@a go", sender="kim")
            await until_at_work(conversation, "a")
            question = ApprovalAsked(id="q1", kind="question", why="Which\ncolour?", choices=("red", "blue"))
            asking = asyncio.create_task(
                conversation.approvals.ask(conversation.member("a"), conversation.running["1"], question)
            )
            while not questions(conversation):
                await asyncio.sleep(0.01)
            chosen = with_key("2", questions(conversation))
            assert chosen is not None
            await run_command(typed_choice(chosen), conversation, "lee")
            assert await asking == Answer(verdict="yes", text="blue")
            return await said(conversation)

    assert asyncio.run(play())[1:] == ["lee: (answered a: Which colour?) blue"]
