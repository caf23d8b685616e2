"""What running agents ask: rules answer, people answer, and nothing is done without a recorded yes."""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.agents.asking import PROGRAM, AskingDriver, heard_in
from tests.conversation.stage import Stage

from bullpen.agents import AgentSpec
from bullpen.agents.registry import spec_for
from bullpen.approvals import Answer, ApprovalRecord
from bullpen.config import standing_answers_file
from bullpen.conversation import approvals, member_agent
from bullpen.conversation.approvals import Approvals, Unattended
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Answered, Asked, ConversationEvent, Trouble, TurnBegan
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import AnsweredAlready, CannotChange, HoldsOnce, NothingAsked, NotWorking
from bullpen.exchange.files import export_pieces
from bullpen.exchange.forking import fork_conversation
from bullpen.exchange.importing import import_conversation, read_import
from bullpen.routing.queue import WaitingTurn
from bullpen.store.sqlite import SqliteStore
from bullpen.team.team import Member
from bullpen.view.listing import all_conversations

YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="not on a Friday")
TOUCH = [["ask", "q1", "touch a"], ["wait", "q1"], ["end", "fine"]]


@pytest.fixture
def asking(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Add agents that ask, each with its script."""

    def spec(agent: str, command: tuple[str, ...] = (), *, name: str = "") -> AgentSpec:
        found = spec_for(agent, command, name=name)
        asks = replace(found, driver=AskingDriver, stream="json", permissions={"ask": ()}, ends_by_itself=False)
        return replace(found, asking=asks)

    monkeypatch.setattr(member_agent, "spec_for", spec)
    monkeypatch.setattr("bullpen.team.trust.spec_for", spec)

    def add(name: str, *steps: list[str], **keys: Any) -> None:
        command = [sys.executable, "-c", PROGRAM, json.dumps(steps)]
        stage.members[name] = {"name": name, "command": command, "permissions": "ask", **keys}

    stage.person("kim")
    return add


async def next_of(events: list[ConversationEvent], kind: type[Any], count: int = 1) -> Any:
    """Wait for an event."""
    while True:
        found = [event for event in events if isinstance(event, kind)]
        if len(found) >= count:
            return found[count - 1]
        await asyncio.sleep(0.01)


async def watch(conversation: Conversation, events: list[ConversationEvent]) -> None:
    async for event in conversation.watch():
        events += [event]


async def play(
    stage: Stage,
    *,
    then: Callable[[Conversation, list[ConversationEvent]], Any],
    says: str = "@a go",
    resume: str | None = None,
) -> list[ConversationEvent]:
    """Open the conversation, say something, and do something while the agent works; return all events."""
    events: list[ConversationEvent] = []
    async with stage.open(resume) as conversation:
        watching = asyncio.create_task(watch(conversation, events))
        await asyncio.sleep(0)
        await conversation.say(says, sender="kim")
        await then(conversation, events)
        await conversation.until_quiet()
    await watching
    return events


def records(stage: Stage) -> list[ApprovalRecord]:
    with SqliteStore(stage.db) as store:
        return [one for stored in store.conversations() for one in store.approvals(stored.id)]


def told(stage: Stage) -> list[tuple[str, str]]:
    return [(one["to"], one["verdict"]) for one in heard_in(stage.folder) if "to" in one]


def test_a_person_answers(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", *TOUCH)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked: Asked = await next_of(events, Asked)
        assert (asked.member, asked.question.command) == ("a", "touch a")
        assert list(conversation.approvals.open) == [(asked.turn_id, "q1")]
        await conversation.answer(asked.turn_id, "q1", YES, by="kim")
        assert conversation.approvals.open == {}

    events = asyncio.run(play(stage, then=answer))

    assert told(stage) == [("q1", "yes")]
    question, answered = records(stage)
    assert question.asked is not None
    assert (answered.by, answered.scope, answered.answer) == ("kim", "once", YES)
    assert [event.by for event in events if isinstance(event, Answered)] == ["kim"]


def test_the_reason_of_a_no_reaches_the_agent(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", *TOUCH)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        await conversation.answer(asked.turn_id, "q1", NO)

    asyncio.run(play(stage, then=answer))

    assert heard_in(stage.folder) == [{"to": "q1", "verdict": "no", "reason": "not on a Friday"}]


def test_the_first_answer_counts_and_the_other_one_is_told(stage: Stage, asking: Callable[..., None]) -> None:
    stage.person("lee")
    asking("a", *TOUCH)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        first, second = await asyncio.gather(
            conversation.answer(asked.turn_id, "q1", YES, by="kim"),
            conversation.answer(asked.turn_id, "q1", NO, by="lee"),
            return_exceptions=True,
        )
        assert first is None
        assert isinstance(second, AnsweredAlready)
        assert "kim" in str(second)
        with pytest.raises(NothingAsked):
            await conversation.answer(asked.turn_id, "q9", YES, by="lee")

    asyncio.run(play(stage, then=answer))

    assert told(stage) == [("q1", "yes")]
    assert len(records(stage)) == 2


def test_an_id_that_is_used_again_is_another_question(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", ["ask", "q1", "touch a"], ["wait", "q1"], ["ask", "q1", "rm -rf ."], ["wait", "q1"], ["end", ""])

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        first = await next_of(events, Asked)
        await conversation.answer(first.turn_id, first.question.id, YES)
        second = await next_of(events, Asked, 2)
        assert (second.question.id, second.question.command) == ("q1.2", "rm -rf .")
        await conversation.answer(second.turn_id, second.question.id, NO)

    asyncio.run(play(stage, then=answer))

    assert told(stage) == [("q1", "yes"), ("q1", "no")]
    assert [one.question for one in records(stage)] == ["q1", "q1", "q1.2", "q1.2"]


def test_another_command_needs_a_cli_that_can_and_holds_only_once(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", *TOUCH)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        with pytest.raises(CannotChange):
            await conversation.answer(asked.turn_id, "q1", Answer(verdict="yes", command="touch b"))
        await conversation.answer(asked.turn_id, "q1", NO)

    asyncio.run(play(stage, then=answer))

    assert told(stage) == [("q1", "no")]


def test_rules_answer_without_a_person(stage: Stage, asking: Callable[..., None]) -> None:
    steps = [["ask", "q1", "pytest -q"], ["wait", "q1"], ["ask", "q2", "git push origin"], ["wait", "q2"], ["end", ""]]
    asking("a", *steps, allow=["pytest"], deny=["git push"])

    events = asyncio.run(play(stage, then=_nothing))

    assert told(stage) == [("q1", "yes"), ("q2", "no")]
    assert not any(isinstance(event, Asked) for event in events)
    assert [one.because for one in records(stage) if one.answer] == ["allow: pytest", "deny: git push"]


def test_what_is_allowed_and_denied_is_denied_by_rule(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", ["ask", "q1", "git push origin"], ["wait", "q1"], ["end", ""], allow=["git *"], deny=["git push"])

    asyncio.run(play(stage, then=_nothing))

    assert told(stage) == [("q1", "no")]
    assert [one.because for one in records(stage) if one.answer] == ["deny: git push"]


@pytest.mark.parametrize(
    ("scope", "asked_again"), [("once", True), ("turn", False), ("conversation", False), ("team", False)]
)
def test_how_long_an_answer_holds_in_its_turn(
    stage: Stage, asking: Callable[..., None], scope: Any, asked_again: bool
) -> None:
    asking("a", ["ask", "q1", "touch a"], ["wait", "q1"], ["ask", "q2", "touch a"], ["wait", "q2"], ["end", "fine"])

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        await conversation.answer(asked.turn_id, "q1", YES, scope=scope)
        if asked_again:
            await next_of(events, Asked, 2)
            await conversation.answer(asked.turn_id, "q2", NO)

    asyncio.run(play(stage, then=answer))

    assert told(stage) == [("q1", "yes"), ("q2", "no" if asked_again else "yes")]


@pytest.mark.parametrize(("scope", "asked_again"), [("turn", True), ("conversation", False), ("team", False)])
def test_how_long_an_answer_holds_after_its_turn(
    stage: Stage, asking: Callable[..., None], scope: Any, asked_again: bool
) -> None:
    asking("a", *TOUCH)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        await conversation.answer(asked.turn_id, "q1", YES, scope=scope)
        await conversation.until_quiet()
        await conversation.say("@a again", sender="kim")
        if asked_again:
            asked = await next_of(events, Asked, 2)
            await conversation.answer(asked.turn_id, "q1", NO)

    asyncio.run(play(stage, then=answer))

    assert told(stage)[-1] == ("q1", "no" if asked_again else "yes")


@pytest.mark.parametrize(("scope", "is_asked"), [("conversation", True), ("team", False)])
def test_only_always_holds_in_another_conversation(
    stage: Stage, asking: Callable[..., None], scope: Any, is_asked: bool
) -> None:
    asking("a", *TOUCH)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        await conversation.answer(asked.turn_id, "q1", YES, scope=scope)

    asyncio.run(play(stage, then=answer))
    events = asyncio.run(play(stage, then=answer if is_asked else _nothing))

    assert any(isinstance(event, Asked) for event in events) is is_asked


@pytest.mark.parametrize("is_fork", [True, False])
def test_a_yes_in_a_copy_of_the_conversation_allows_nothing(
    stage: Stage, asking: Callable[..., None], is_fork: bool
) -> None:
    asking("a", *TOUCH)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        await conversation.answer(asked.turn_id, "q1", YES, scope="conversation")

    async def refuse(conversation: Conversation, events: list[ConversationEvent]) -> None:
        while not any(isinstance(event, Asked | Answered) for event in events):
            await asyncio.sleep(0.01)
        for asked in (event for event in events if isinstance(event, Asked)):
            await conversation.answer(asked.turn_id, "q1", NO)

    asyncio.run(play(stage, then=answer))
    with SqliteStore(stage.db) as store:
        (before,) = store.conversations()
        if is_fork:
            copy = fork_conversation(store, before.id).id
        else:
            exported = "".join(export_pieces(store, before.id, "json")).encode()
            copy = import_conversation(store, read_import(exported))
    events = asyncio.run(play(stage, then=refuse, resume=copy))

    assert any(isinstance(event, Asked) for event in events)
    assert told(stage)[-1] == ("q1", "no")


@pytest.mark.parametrize("scope", ["turn", "conversation", "team"])
def test_a_yes_to_a_file_elsewhere_holds_once(stage: Stage, asking: Callable[..., None], scope: Any) -> None:
    asking("a", ["edit", "q1", "/etc/hosts"], ["wait", "q1"], ["edit", "q2", "b"], ["wait", "q2"], ["end", "fine"])

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        with pytest.raises(HoldsOnce, match="a file outside of its folder"):
            await conversation.answer(asked.turn_id, "q1", YES, scope=scope)
        assert list(conversation.approvals.open) == [(asked.turn_id, "q1")], "nothing is answered"
        await conversation.answer(asked.turn_id, "q1", YES)
        await next_of(events, Asked, 2)
        await conversation.answer(asked.turn_id, "q2", YES, scope=scope)

    asyncio.run(play(stage, then=answer))

    assert told(stage) == [("q1", "yes"), ("q2", "yes")]


def test_what_an_earlier_version_always_allowed_is_shown_once_and_asked_again(
    stage: Stage, asking: Callable[..., None]
) -> None:
    asking("a", ["edit", "q1", "b"], ["wait", "q1"], ["end", "fine"])
    wide = {"event": "approval_asked", "id": "", "kind": "edit", "tool": "w", "paths": ["b"]}
    file = standing_answers_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    teams = {str(stage.folder / "team.toml"): {"a": [{**wide, "folder": str(stage.folder)}]}}
    file.write_text(json.dumps(teams), encoding="utf-8")

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        await conversation.answer(asked.turn_id, "q1", NO)

    first = asyncio.run(play(stage, then=answer))
    second = asyncio.run(play(stage, then=answer))

    told_of = [event.text for event in [*first, *second] if isinstance(event, Trouble)]
    assert told_of == [approvals.TAKEN_BACK.format(member="a", what="b")]


def test_a_yes_that_cannot_be_kept_for_other_conversations_reaches_the_agent(
    stage: Stage, asking: Callable[..., None]
) -> None:
    asking("a", *TOUCH)
    file = standing_answers_file()
    file.mkdir(parents=True)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        await conversation.answer(asked.turn_id, "q1", YES, scope="team")
        async with asyncio.timeout(20):
            await conversation.until_quiet()

    events = asyncio.run(play(stage, then=answer))

    assert told(stage) == [("q1", "yes")]
    (trouble,) = [event.text for event in events if isinstance(event, Trouble)]
    assert trouble.startswith(f"Your yes to a counts in this conversation, but is not kept for others: {file} cannot")


@pytest.mark.parametrize(("seconds", "words"), [(60, "1 minute"), (1800, "30 minutes"), (3, "0.05 minutes")])
def test_how_long_nobody_answered(seconds: float, words: str) -> None:
    given = approvals._too_late(Member(name="a", type="ai", ask_timeout=seconds))

    assert given.because == f"nobody answered within {words}"


def test_nobody_answers_in_time(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", *TOUCH, ask_timeout=0.2)

    asyncio.run(play(stage, then=_nothing))

    assert told(stage) == [("q1", "no")]
    assert "Nobody answered" in heard_in(stage.folder)[0]["reason"]
    assert records(stage)[-1].because.startswith("nobody answered")


def test_where_there_are_no_people_rules_answer(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", ["ask", "q1", "make"], ["wait", "q1"], ["ask", "q2", "rm x"], ["wait", "q2"], ["end", ""])

    async def run() -> None:
        async with stage.open() as conversation:
            conversation.approvals.unattended = Unattended(allow=("make",))
            await conversation.say("@a go")
            await conversation.until_quiet()

    asyncio.run(run())

    assert told(stage) == [("q1", "yes"), ("q2", "no")]


def test_a_cancelled_turn_leaves_no_open_question(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", ["ask", "q1", "touch a"], ["wait", "q1"], ["stay"])

    async def cancel(conversation: Conversation, events: list[ConversationEvent]) -> None:
        await next_of(events, Asked)
        await conversation.cancel()
        assert conversation.approvals.open == {}

    asyncio.run(play(stage, then=cancel))

    assert [one.because for one in records(stage) if one.answer] == ["it was over before an answer"]


def test_the_next_owner_asks_again_what_has_no_answer_and_nothing_else(
    stage: Stage, asking: Callable[..., None]
) -> None:
    asking("a", ["ask", "q1", "touch a"], ["ask", "q2", "touch b"], ["wait", "q2"], ["end", "fine"])
    opened: list[list[str]] = []

    async def look(conversation: Conversation, turn: WaitingTurn) -> Approvals:
        later = Approvals(conversation._journal)
        await later.adopt(RunningTurn(turn))
        opened.append([question for _, question in later.open])
        return later

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked, 2)
        turn = next(one.turn for one in events if isinstance(one, TurnBegan))
        await look(conversation, turn)
        await conversation.answer(asked.turn_id, "q1", NO)
        later = await look(conversation, turn)
        await later.close(RunningTurn(turn))
        opened.append([question for _, question in later.open])
        await look(conversation, turn)
        await conversation.cancel()

    asyncio.run(play(stage, then=answer))

    assert opened == [["q1", "q2"], ["q2"], [], []]
    assert [(one.question, one.answer.verdict, one.by) for one in records(stage) if one.answer] == [
        ("q1", "no", "kim"),
        ("q2", "no", ""),
    ]


def test_an_answer_counts_although_its_door_closes(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", *TOUCH)

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        door = asyncio.ensure_future(conversation.answer(asked.turn_id, "q1", YES, by="kim"))
        await asyncio.sleep(0)
        door.cancel()
        async with asyncio.timeout(20):
            await conversation.until_quiet()

    asyncio.run(play(stage, then=answer))

    assert told(stage) == [("q1", "yes")]


def test_a_question_that_is_taken_back_at_once_is_not_left_open(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", ["ask", "q1", "touch a"], ["back", "q1"], ["ask", "q2", "pytest"], ["wait", "q2"], ["end", ""])

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked, 1)
        while asked.question.id != "q2":
            asked = await next_of(events, Asked, 2)
        await conversation.answer(asked.turn_id, "q2", NO)

    asyncio.run(play(stage, then=answer))

    questions, answers = ([one.question for one in records(stage) if bool(one.asked) is is_one] for is_one in (1, 0))
    assert sorted(questions) == sorted(answers)


def test_no_and_stop_ends_the_turn(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", ["ask", "q1", "touch a"], ["wait", "q1"], ["stay"])

    async def stop(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        await conversation.answer(asked.turn_id, "q1", Answer(verdict="stop", reason="enough"), by="kim")
        assert not conversation.running

    asyncio.run(play(stage, then=stop))

    assert records(stage)[-1].answer == Answer(verdict="stop", reason="enough")


def test_words_to_an_agent_that_works(stage: Stage, asking: Callable[..., None]) -> None:
    asking("a", ["say", "hm"], ["hear"], ["end", "fine"])

    async def tell(conversation: Conversation, events: list[ConversationEvent]) -> None:
        while not any(turn.can_be_told and turn.text for turn in conversation.running.values()):
            await asyncio.sleep(0.01)
        assert await conversation.tell("a", "look at the tests, too", sender="kim")
        await conversation.until_quiet()
        with pytest.raises(NotWorking):
            await conversation.tell("a", "too late", sender="kim")

    asyncio.run(play(stage, then=tell))

    assert heard_in(stage.folder) == [{"tell": "look at the tests, too"}]


async def _nothing(_: Conversation, __: list[ConversationEvent]) -> None:
    pass


async def test_a_conversation_in_which_somebody_is_asked_needs_a_person(
    stage: Stage, asking: Callable[..., None]
) -> None:
    asking("a", *TOUCH)

    def needs_you() -> bool:
        with SqliteStore(stage.db) as store:
            (listed,) = all_conversations(store)
            return listed.needs_you

    async def answer(conversation: Conversation, events: list[ConversationEvent]) -> None:
        asked = await next_of(events, Asked)
        assert needs_you()
        await conversation.answer(asked.turn_id, asked.question.id, YES)
        await conversation.until_quiet()

    await play(stage, then=answer)
