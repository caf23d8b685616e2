"""A typed answer is about the question that was shown where it was typed, in every door."""

import asyncio
import html
import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from bullpen.app import open_team
from bullpen.approvals import Answer
from bullpen.cli.plain.transcript import Show
from bullpen.cli.plain.typed_line import ChatLines
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Asked
from bullpen.errors import BullpenError, NothingAsked
from bullpen.routing.asks import OpenAsk
from bullpen.team.team import Member, Team
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import StreamPage
from bullpen.testing.clock import ManualClock
from bullpen.testing.site import site
from bullpen.testing.stage import write_team
from bullpen.tui.app import BullpenApp
from bullpen.tui.chat import ChatScreen
from bullpen.turn_events import ApprovalAsked
from bullpen.view.choices import Decision
from bullpen.view.command_arguments import OneAnswer
from bullpen.view.commands import COMMANDS, Typed, run_command
from bullpen.view.decisions import decisions
from bullpen.view.shown_cards import SETTLED_SECONDS
from bullpen.view.state import conversation_view
from bullpen.view.typed_answers import read_typed

TEAM = Team(
    name="t", lead="max", members=(Member(name="kim", type="human"), Member(name="max", type="ai", agent="claude"))
)
FIRST, SECOND = (
    Asked(turn_id=turn, member="max", question=ApprovalAsked(id=f"q{turn}", kind="command", command=command), at=0)
    for turn, command in (("3", "touch a"), ("4", "rm -rf b"))
)
COLOURS = replace(FIRST, question=ApprovalAsked(id="q3", kind="question", why="When?", choices=("Always", "8080")))
CLOSED = "Turn 3 does not wait for an answer to a question 'q3'."


def shown(*asked: Asked, **more: Any) -> tuple[Decision, ...]:
    return decisions(undecided=(), asked=asked, paused=None, waiting=0, held=(), missed=None, agents=(), **more)


def given(text: str, *asked: Asked) -> OneAnswer:
    typed = read_typed(text, TEAM, shown(*asked))
    assert typed is not None
    assert isinstance(typed.given, OneAnswer)
    return typed.given


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/yes", OneAnswer(turn="3", question="q3")),
        ("/yes always", OneAnswer(turn="3", question="q3", scope="team")),
        ("/yes turn 3", OneAnswer(turn="3", question="q3", scope="turn")),
        ("/no turn it off", OneAnswer(turn="3", question="q3", text="turn it off")),
        ("/stop once and for all", OneAnswer(turn="3", question="q3", text="once and for all")),
        ("/instead make", OneAnswer(turn="3", question="q3", command="make")),
    ],
)
def test_an_answer_has_its_question(text: str, expected: OneAnswer) -> None:
    assert given(text, FIRST) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [("/yes Always", "Always"), ("/yes 8080", "8080"), ("/yes 3 always", "Always"), ("/yes Turn left", "Turn left")],
)
def test_a_word_of_an_agent_is_an_answer_and_neither_a_scope_nor_a_turn(text: str, words: str) -> None:
    assert given(text, COLOURS) == OneAnswer(turn="3", question="q3", text=words)


def test_which_of_several_has_to_be_said() -> None:
    with pytest.raises(BullpenError, match="Which one do you mean: /yes 3 or /yes 4"):
        given("/yes", FIRST, SECOND)
    assert given("/yes 4", FIRST, SECOND).question == "q4"


def of_turn_3(number: int, command: str) -> Asked:
    return replace(FIRST, question=ApprovalAsked(id=f"q{number}", kind="command", command=command))


BOTH = (of_turn_3(1, "touch a"), of_turn_3(2, "rm -rf b"))


@pytest.mark.parametrize("text", ["/yes", "/yes 3", "/yes always 3", "/no 3 because", "/stop 3", "/instead make"])
def test_of_two_questions_of_one_turn_none_is_taken_for_the_one_that_is_meant(text: str) -> None:
    first, second = (one.name for one in shown(*BOTH))
    with pytest.raises(BullpenError) as refused:
        given(text, *BOTH)
    command = text.split()[0]
    assert str(refused.value) == (
        "Several questions wait for you. "
        f"Which one do you mean: {command} {first} (touch a) or {command} {second} (rm -rf b)?"
    )


def test_each_question_of_a_turn_has_a_name_that_its_card_shows_and_that_stays() -> None:
    for asked, card, alone in zip(BOTH, shown(*BOTH), (shown(one)[0] for one in BOTH), strict=True):
        assert card.name == alone.name
        assert f"(question {card.name})" in card.text
        for choice in card.choices:
            answer = given(choice.typed.replace("REASON", "because"), *BOTH)
            assert (answer.turn, answer.question) == ("3", asked.question.id), choice.typed
            assert answer.scope == choice.given.get("scope", "once")
        assert given(f"/instead {card.name} make -k", *BOTH) == OneAnswer(
            turn="3", question=asked.question.id, command="make -k"
        )


def test_the_name_of_a_question_that_is_not_shown_means_no_other() -> None:
    first, second = shown(*BOTH)
    answer = given(f"/yes {first.name}", BOTH[1])
    assert (answer.turn, answer.question) != (second.turn, second.question)
    assert answer.question is not None


def test_a_choice_that_two_questions_of_one_turn_offer_is_not_guessed() -> None:
    colours = [replace(COLOURS, question=replace(COLOURS.question, id=one)) for one in ("a", "b")]
    for text in ("/yes Always", "/yes 3 Always"):
        with pytest.raises(BullpenError, match="Which one do you mean"):
            given(text, *colours)
    assert given(f"/yes {shown(*colours)[1].name} always", *colours) == OneAnswer(turn="3", question="b", text="Always")


@pytest.mark.parametrize("answer", [OneAnswer(), OneAnswer(turn="3")])
@pytest.mark.parametrize("name", ["yes", "no", "stop"])
def test_an_answer_of_a_program_that_could_mean_two_questions_answers_none(
    answer: OneAnswer, name: str, team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with open_team(team, db=team.parent / "c.db") as conversation:
            answered = Answered(conversation, monkeypatch)
            for one in BOTH:
                conversation.approvals.open[one.turn_id, one.question.id] = one
            with pytest.raises(BullpenError, match="Nothing was answered"):
                await run_command(Typed(COMMANDS[name], answer), conversation)
            assert answered.questions == []
            await run_command(Typed(COMMANDS[name], OneAnswer(turn="3", question="q2")), conversation)
            assert answered.questions == ["q2"]

    asyncio.run(play())


def test_an_answer_that_could_mean_two_replies_answers_none(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with open_team(team, db=team.parent / "c.db") as conversation:
            ask = OpenAsk(member="max", words="?", choices=("yes",), at=0)
            progress = replace(conversation.progress, asks={"3": ask, "4": ask})
            monkeypatch.setattr(Conversation, "progress", property(lambda _: progress))
            with pytest.raises(BullpenError, match="Several questions of turn 3 and turn 4 wait"):
                await run_command(Typed(COMMANDS["yes"], OneAnswer()), conversation)

    asyncio.run(play())


def test_who_waits_comes_before_an_ask_at_the_end_of_a_reply() -> None:
    asks = {"1": OpenAsk(member="max", words="?", choices=("yes",), at=0)}
    typed = read_typed("/yes", TEAM, shown(FIRST, asks=asks))

    assert typed is not None
    assert typed.given.question == "q3"


class Answered:
    """Takes the place of what is stored: notes which questions were answered."""

    def __init__(self, conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
        self.questions: list[str] = []
        self.conversation = conversation
        monkeypatch.setattr(conversation, "answer", self._answer)
        self.open(FIRST)

    def open(self, asked: Asked) -> None:
        """Let this be the only question that is open."""
        self.conversation.approvals.open.clear()
        self.conversation.approvals.open[asked.turn_id, asked.question.id] = asked

    async def _answer(self, turn_id: str, question: str, _: Answer, **__: Any) -> None:
        if (turn_id, question) not in self.conversation.approvals.open:
            raise NothingAsked(turn_id, question)
        self.questions.append(question)


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return write_team(tmp_path, {"max": [{"say": "hi"}]})


@pytest.mark.parametrize("line", ["/yes", "y", "/yes always", "n", "/no"])
def test_in_the_plain_chat(line: str, team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with open_team(team, db=team.parent / "c.db") as conversation:
            answered, written = Answered(conversation, monkeypatch), io.StringIO()

            def now() -> tuple[Decision, ...]:
                return conversation_view(conversation).decisions

            show = Show(StreamPage(written), Colours(None, on=False), now, in_chat=True)
            lines = ChatLines(conversation, show, None)
            show.tell(FIRST)
            begun = show.asked()
            answered.open(SECOND)
            assert not await lines.take(line), "the other one is not written yet"
            assert "What you saw is not asked any more." in written.getvalue()
            show.tell(SECOND)
            assert not await lines.take(line, begun), "it was not there when the line was begun"
            assert CLOSED in written.getvalue()
            conversation.approvals.open.clear()
            assert not await lines.take(line, begun), "and it is not a message either"
            assert answered.questions == []
            answered.open(SECOND)
            assert await lines.take(line)
            assert answered.questions == ["q4"]

    asyncio.run(play())


def test_on_the_full_screen(team: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    async def play() -> None:
        async with open_team(team, db=team.parent / "c.db") as conversation:
            app, answered = BullpenApp(conversation), Answered(conversation, monkeypatch)
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                await pilot.pause()
                chat = app.screen
                assert isinstance(chat, ChatScreen)

                async def show(question: Asked) -> None:
                    answered.open(question)
                    await chat._updates.show_state()
                    await pilot.pause()

                # The key was pressed for another question, which had just been there.
                await show(FIRST)
                clock.advance(2 * SETTLED_SECONDS)
                await show(SECOND)
                await pilot.press("1", "backspace")
                assert answered.questions == []
                # So was the button.
                clock.advance(2 * SETTLED_SECONDS)
                await chat.run_action("choose('yes', 0, '3/q3')")
                assert answered.questions == []
                await chat.run_action("choose('yes', 0, '4/q4')")
                assert answered.questions.pop() == "q4"
                # So was the beginning of the line.
                await pilot.press("slash", "y")
                await show(FIRST)
                await pilot.press("e", "s", "enter")
                await pilot.pause()
                assert answered.questions == []
                assert "Turn 4 does not wait" in "\n".join(one.message for one in app._notifications)
                # It is back in the line, for who has read that, and has looked at what is asked now.
                await pilot.press("ctrl+a", "backspace")
                chat._composer.load_text("")
                clock.advance(2 * SETTLED_SECONDS)
                await pilot.press("slash", "y", "e", "s", "enter")
                await pilot.pause()
                assert answered.questions == ["q3"]

    asyncio.run(play())


def test_in_the_browser(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with site(team.parent, team) as served, httpx.AsyncClient(base_url=served.url, timeout=60) as client:
            await client.post(served.new_url(), headers={"Origin": served.url})
            conversation = (await served.hub.begin()).conversation
            answered = Answered(conversation, monkeypatch)

            async def send(*asked: tuple[str, str]) -> str:
                form = {"text": "/yes", "asked": json.dumps(asked)}
                headers = {"HX-Request": "true", "Origin": served.url}
                return html.unescape(
                    (await client.post(f"/c/{conversation.id}/messages", data=form, headers=headers)).text
                )

            answered.open(SECOND)
            assert CLOSED in await send(("3", "q3"))
            assert "What you saw is not asked any more." in await send()
            assert answered.questions == []
            await send(("4", "q4"))
            assert answered.questions == ["q4"]

    asyncio.run(play())


def test_a_late_answer_does_not_fall_through_to_an_ask_of_the_same_turn(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with open_team(team, db=team.parent / "c.db") as conversation:
            Answered(conversation, monkeypatch)
            conversation.approvals.open.clear()
            asks = {"3": OpenAsk(member="max", words="?", choices=("yes",), at=0)}
            progress = replace(conversation.progress, asks=asks)
            monkeypatch.setattr(Conversation, "progress", property(lambda _: progress))
            late = OneAnswer(turn="3", question="q3")
            for name in ("yes", "no"):
                with pytest.raises(NothingAsked):
                    await run_command(Typed(COMMANDS[name], late), conversation)

    asyncio.run(play())
