"""What agents call during their turns changes what follows: agents in this process, in whole conversations."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.conversation.stage import Stage, events_so_far, said, tell

from bullpen.agents.runner import Reply
from bullpen.approvals import Answer
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Offered, Said
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.running_turn import RunningTurn
from bullpen.file_changes import ChangeRecord, FileChange, FolderChanges
from bullpen.tools.calls import Call
from bullpen.turn_events import Finished, Started, Usage

Script = dict[str, list[Any]]


@pytest.fixture
def plays(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let agents make calls and say the last word of their script, and return what they heard."""

    def play(**scripts: list[Any]) -> list[str]:
        heard: list[str] = []

        async def take_turn(agent: MemberAgent, given: object, running: RunningTurn, *, emit: Any) -> Reply:
            *calls, text = scripts[agent.member.name]
            for tool, arguments in calls:
                assert running.tools is not None
                heard.append((await running.tools.answer(Call(id=1, tool=tool, arguments=arguments))).text)
            emit(Finished(text=text))
            return Reply(text=text, usage=Usage(), started=Started(), command=("x",), seconds=0)

        monkeypatch.setattr(MemberAgent, "take_turn", take_turn)
        stage.person("kim")
        for name in scripts:
            stage.agent(name, agent="claude", tools=True, memory="shared")
        return heard

    return play


def notes_of(conversation: Conversation) -> list[str]:
    return [note for event in events_so_far(conversation, Said) for note in event.notes]


async def test_a_call_and_a_marker_that_say_the_same_count_once(stage: Stage, plays: Callable[..., list[str]]) -> None:
    plays(a=[("hand_over", {"to": ["b", "c"], "note": "Look."}), "Hi. [NEXT: b]"], b=["I am b."], c=["I am c."])
    async with stage.open() as conversation:
        assert await tell(conversation, "[NEXT: a] Go.") == [
            "kim: [NEXT: a] Go.",
            "a: Hi. [NEXT: b]\n\nTo b and c: Look.",
            "b: I am b.",
            "c: I am c.",
        ]


async def test_an_agent_sees_who_is_in_its_team_and_what_they_do_now(
    stage: Stage, plays: Callable[..., list[str]]
) -> None:
    heard = plays(a=[("team", {}), "I am a."], b=["I am b."])
    stage.members["b"]["role"] = "reviews\nit"
    stage.members["a"]["may_address"] = ["kim"]
    async with stage.open() as conversation:
        await tell(conversation, "[NEXT: a, b] Go.")

    (told,) = heard
    assert told.splitlines() == [
        "- kim, person",
        "- a, agent: this is you",
        "- b, agent: reviews it; waits for its turn; you may not hand over to it",
    ]


async def test_a_call_beside_best_of_several_is_not_followed_and_that_is_said(
    stage: Stage, plays: Callable[..., list[str]]
) -> None:
    plays(a=[("hand_over", {"to": ["b", "d"]}), "Hi. [NEXT: b | c]"], b=["I am b."], c=["I am c."], d=["I am d."])
    async with stage.open() as conversation:
        all_said = await tell(conversation, "[NEXT: a] Go.")
        assert not [line for line in all_said if line.startswith("d:")]
        (note,) = [note for note in notes_of(conversation) if "call" in note]
        assert note.startswith("The call that handed over to d was not followed: the reply lets several do the same")


async def test_a_question_for_later_is_a_card_and_its_answer_a_message(
    stage: Stage, plays: Callable[..., list[str]]
) -> None:
    question = {"question": "Which?", "choices": ["plum", "pear"], "wait": False}
    plays(a=[("ask_person", question), "Done."])
    async with stage.open() as conversation:
        await tell(conversation, "[NEXT: a] Go.")
        (offered,) = events_so_far(conversation, Offered)
        assert offered.choices == ("plum", "pear")
        await conversation.answer_ask(offered.turn_id, "pear", by="kim")
        await conversation.until_quiet()
        assert (await said(conversation))[1:3] == ["a: Done.\n\nWhich?", "kim: pear"]
        assert len(await said(conversation)) == 4


async def test_an_agent_hears_what_a_person_answers_while_it_works(
    stage: Stage, plays: Callable[..., list[str]]
) -> None:
    heard = plays(a=[("ask_person", {"question": "Which?", "choices": ["plum", "pear"]}), "Done."])
    async with stage.open() as conversation:
        await conversation.say("[NEXT: a] Go.")
        while not (conversation.approvals.open or heard):
            await asyncio.sleep(0.005)
        ((turn_id, question),) = conversation.approvals.open
        await conversation.answer(turn_id, question, Answer(verdict="yes", text="pear"), by="kim")
        await conversation.until_quiet()
    assert heard == ["pear"]


async def test_a_note_that_is_heard_again_is_left_once(stage: Stage, plays: Callable[..., list[str]]) -> None:
    plays(a=[*(("note", {"text": text}) for text in ("Mind the gap.", "Mind the gap.", "It is wide.")), "Done."])
    async with stage.open() as conversation:
        assert await tell(conversation, "[NEXT: a] Go.") == [
            "kim: [NEXT: a] Go.",
            "a: Mind the gap.",
            "a: It is wide.",
            "a: Done.",
        ]


async def test_a_diff_is_found_by_the_reply_of_its_turn(stage: Stage, plays: Callable[..., list[str]]) -> None:
    heard = plays(
        a=["Done."],
        b=[("read_diff", {"message": number}) for number in (1, 2, 9)] + ["I have read it."],
    )
    async with stage.open() as conversation:
        await tell(conversation, "[NEXT: a] Go.")
        state, file = conversation._journal.state, FileChange(path="x", kind="changed", added=1)
        changes = FolderChanges(folder="/x", files=(file,), patch="diff --git a/x b/x\n+plum\n")
        record = ChangeRecord(kind="turn", turn_id="1", member="a", at=1, changes=changes)
        await state.in_store(lambda: state._store.add_changes(conversation.id, record, owner=state._owner))
        await tell(conversation, "[NEXT: b] Go.")
    assert [("plum" in text, text.startswith("There is no reply")) for text in heard] == [
        (False, True),
        (True, False),
        (False, True),
    ]


async def test_who_judges_blind_finds_no_names_by_looking_things_up(
    stage: Stage, plays: Callable[..., list[str]]
) -> None:
    looks: list[Any] = [
        *[("read_history", arguments) for arguments in ({}, {"first": 1, "last": 9}, {"around": 2})],
        *[("search", {"query": query}) for query in ("quentin", "rosa", "plum", "I am")],
        *[("read_message", {"number": number, "offset": 0}) for number in range(1, 8)],
        *[("read_diff", {"turn": str(number)}) for number in range(1, 6)],
    ]
    heard = plays(quentin=["I am quentin: plum."], rosa=["Rosa says plum, too."], ann=[*looks, "A."])
    async with stage.open() as conversation:
        await tell(conversation, "[NEXT: quentin & rosa] Plum or pear?")
        await tell(conversation, "Quentin, Rosa: again! [NEXT: quentin & rosa, ann] blind")
        *_, told = await said(conversation)
    assert "plum" in heard[0]
    assert "Nothing was found." in heard[3:5]
    assert "plum" in heard[5]
    assert [text for text in heard if "quentin" in text.casefold() or "rosa" in text.casefold()] == []
    assert "was quentin (turn 3)" in told
