"""Four states, worked out once: of the conversation, its members, its turns, and in lists."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.tui.stage import Script, Stage

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.store.sqlite import SqliteStore
from bullpen.view.activity import ACTIVITIES, turn_word
from bullpen.view.choices import Decision, Kind
from bullpen.view.listing import conversation_summary
from bullpen.view.state import ConversationView, conversation_view, stored_view

HANGING: Script = [{"hang": True}]
ASKING: Script = [{"ask": "touch a"}]
FAILING: Script = [{"error": 500, "message": "the model is down"}]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return Stage(tmp_path)


def shown(view: ConversationView) -> object:
    """Return the state of a conversation, of its members, and of its running turns."""
    members = {member.name: member.activity for member in view.members}
    return view.activity.name, members, [one.activity for one in view.working]


async def seen(stage: Stage, conversation: Conversation) -> list[object]:
    """Return the states as its owner and as another process works them out, and that in a list."""
    with SqliteStore(stage.db) as other:
        both = [conversation_view(conversation), stored_view(other, conversation.id)]
        return [*map(shown, both), conversation_summary(other, conversation.id).activity]


def test_each_state_has_its_own_word_sign_and_colour() -> None:
    for part in ("word", "sign", "light"):
        assert len({getattr(one, part) for one in ACTIVITIES.values()}) == 4


def test_a_turn_that_runs_works_in_every_door() -> None:
    assert [turn_word(state) for state in ("running", "failed", "done")] == ["working", "failed", "done"]


def test_an_agent_that_asks_does_not_look_as_if_it_worked(stage: Stage) -> None:
    stage.agent("max", ASKING, more='permissions = "ask"')

    async def story() -> list[object]:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go.")
            while not conversation.approvals.open:
                await asyncio.sleep(0.01)
            return await seen(stage, conversation)

    waits = ("waits", {"kim": "asleep", "max": "waits"}, ["waits"])
    assert asyncio.run(story()) == [waits, waits, "waits"]


def test_an_agent_that_works(stage: Stage) -> None:
    stage.agent("max", HANGING)

    async def story() -> list[object]:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go.")
            while not any(running.is_recorded for running in conversation.running.values()):
                await asyncio.sleep(0.01)
            return await seen(stage, conversation)

    works = ("working", {"kim": "asleep", "max": "working"}, ["working"])
    assert asyncio.run(story()) == [works, works, "working"]


def test_an_agent_that_failed(stage: Stage) -> None:
    stage.agent("max", FAILING)

    async def story() -> list[object]:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go.")
            await conversation.until_quiet()
            return await seen(stage, conversation)

    failed: object = ("failed", {"kim": "waits", "max": "failed"}, [])
    assert asyncio.run(story()) == [failed, failed, "failed"]


def test_a_reply_waits_for_a_person_until_nobody_has_it_open(stage: Stage) -> None:
    stage.agent("max", [{"say": "Done."}])

    async def story() -> tuple[list[object], str, str]:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go.")
            await conversation.until_quiet()
            others = conversation_view(conversation).activity_for("mei").word
            open_here = await seen(stage, conversation)
        with SqliteStore(stage.db) as store:
            closed = stored_view(store, conversation.id).activity.name
            assert conversation_summary(store, conversation.id).activity == closed
        return open_here, others, closed

    open_here, others, closed = asyncio.run(story())
    waits: object = ("waits", {"kim": "waits", "max": "asleep"}, [])
    assert open_here == [waits, waits, "waits"]
    assert (others, closed) == ("waits for kim", "asleep")


def test_what_a_person_is_asked_comes_before_what_has_failed(stage: Stage) -> None:
    stage.agent("max", FAILING)
    stage.agent("ben", [{"say": "Ship it? [ASK: yes | no]"}], cli="text")

    async def story() -> list[object]:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go. [NEXT: max & ben]")
            await conversation.until_quiet()
            return await seen(stage, conversation)

    waits: object = ("waits", {"kim": "waits", "max": "failed", "ben": "waits"}, [])
    assert asyncio.run(story()) == [waits, waits, "waits"]


@pytest.mark.parametrize(
    ("kinds", "word"),
    [
        (("failed", "conflict"), "waits"),
        (("failed", "pick"), "waits"),
        (("failed", "held"), "failed"),
        (("paused",), "waits"),
        (("trouble", "missed"), "failed"),
    ],
)
def test_what_is_asked_wins_wherever_it_is_in_the_list(kinds: tuple[Kind, ...], word: str) -> None:
    view = ConversationView(
        id="c", team="t", is_open=True, decisions=tuple(Decision(kind=kind, text="") for kind in kinds)
    )
    assert view.activity.name == word
