"""The view of a conversation: worked out from memory, and the same for whoever does not own it."""

import asyncio
import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.tui.stage import Script, Stage

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.store.sqlite import SqliteStore
from bullpen.store.thread import StoreThread
from bullpen.view.state import ConversationView, conversation_view, stored_view
from bullpen.view.status_lines import team_lines, who_lines
from bullpen.view.unanswered import unanswered_turn

HANGING: Script = [{"usage": {"input": 100, "output": 5}}, {"hang": True}]
FAILING: Script = [{"error": 500, "message": "the model is down"}]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return Stage(tmp_path)


async def busy(conversation: Conversation) -> None:
    await conversation.say("[NEXT: ada, max] Go.")
    await conversation.until_quiet()
    await conversation.say("[NEXT: max] And you?")
    while not any(running.is_recorded for running in conversation.running.values()):
        await asyncio.sleep(0.01)
    await conversation.say("[NEXT: ada] Then you.")


def comparable(view: ConversationView) -> ConversationView:
    """Return a view without what only its owner can know: what a running turn does, and the numbers of events."""
    members = tuple(replace(member, working=None) for member in view.members)
    return replace(view, is_open=False, number=0, working=(), members=members)


def test_another_process_sees_the_same(stage: Stage) -> None:
    stage.agent("max", HANGING)
    stage.agent("ada", FAILING, cli="gemini")

    async def story() -> tuple[ConversationView, ConversationView]:
        async with open_team(stage.team, db=stage.db) as conversation:
            await busy(conversation)
            with SqliteStore(stage.db) as other:
                return conversation_view(conversation), stored_view(other, conversation.id)

    own, others = asyncio.run(story())

    assert comparable(own) == comparable(others)
    assert (own.is_open, others.is_open, others.is_owned) == (True, False, True)
    assert [(one.member, one.turn) for one in own.working] == [(one.member, one.turn) for one in others.working]
    assert own.status == "working"
    assert [(member.name, member.status) for member in own.members] == [
        ("kim", "idle"),
        ("max", "working"),
        ("ada", "undecided"),
    ]
    assert [turn.member for turn in own.queue] == ["max", "ada"]
    assert [(decision.kind, decision.member, decision.others) for decision in own.decisions[:1]] == [
        ("failed", "ada", ("max",))
    ]
    assert own.members[2].spent.failures == 1
    assert "the model is down" in own.members[2].spent.last_failure


def test_it_is_nobodys_turn_while_an_agent_works_on_their_next_message(stage: Stage, tmp_path: Path) -> None:
    first = tmp_path / "first"
    stage.agent("max", [{"wait_for": str(first)}, {"say": "The first is done."}], HANGING)

    async def story() -> ConversationView:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("One.")
            await conversation.say("Two.")
            first.touch()
            while conversation.waits_for is None or not conversation.running:
                await asyncio.sleep(0.01)
            return conversation_view(conversation)

    view = asyncio.run(story())

    assert (view.status, view.activity.name, view.waits_for) == ("working", "working", "kim")
    assert [(one.name, one.status, one.activity) for one in view.members] == [
        ("kim", "idle", "asleep"),
        ("max", "working", "working"),
    ]


def test_a_turn_that_a_stop_ended_is_said_to_be_interrupted_wherever_it_is_shown(stage: Stage) -> None:
    stage.agent("max", HANGING)

    async def story() -> str:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go.")
            while not any(running.is_recorded for running in conversation.running.values()):
                await asyncio.sleep(0.01)
            return conversation.id

    conversation_id = asyncio.run(story())

    with SqliteStore(stage.db) as store:
        view = stored_view(store, conversation_id)
        ended = unanswered_turn(store, conversation_id, "1")
    assert [(one.name, one.activity) for one in view.members] == [("kim", "waits"), ("max", "failed")]
    assert [one.text for one in view.decisions] == [
        "max (turn 1): bullpen stopped during this turn. Files may have been changed."
    ]
    assert ended.signed.startswith("✗ turn 1 was interrupted after")


def test_the_view_of_an_open_conversation_asks_the_store_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.agent("max", HANGING)
    stage.agent("ada", FAILING, cli="gemini")

    async def story() -> ConversationView:
        async with open_team(stage.team, db=stage.db) as conversation:
            await busy(conversation)

            def refuse(*_: object, **__: object) -> None:
                raise AssertionError("the store was asked")

            with monkeypatch.context() as patch:
                patch.setattr(StoreThread, "do", refuse)
                for name in ("turns", "turn", "messages", "conversation", "queued", "running"):
                    patch.setattr(SqliteStore, name, refuse)
                return conversation_view(conversation)

    assert asyncio.run(story()).working


def test_a_turn_that_ran_when_its_process_was_killed_waits_for_a_decision(stage: Stage) -> None:
    stage.agent("max", HANGING)

    async def story() -> ConversationView:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go.")
            while not any(running.is_recorded for running in conversation.running.values()):
                await asyncio.sleep(0.01)
            with SqliteStore(stage.db) as other:
                # As if this process were gone, and with it its claim.
                owner = other.conversation(conversation.id).owner
                assert owner is not None
                other.release(conversation.id, owner)
                return stored_view(other, conversation.id)

    view = asyncio.run(story())

    assert (view.status, view.is_owned, view.working) == ("paused", False, ())
    assert [(decision.kind, decision.turn) for decision in view.decisions] == [("failed", "1")]


def test_a_conversation_in_which_a_turn_is_about_to_begin_is_working(stage: Stage) -> None:
    stage.agent("max", HANGING)

    async def story() -> str:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go.")
            return conversation_view(conversation).status

    assert asyncio.run(story()) == "working"


def test_what_a_member_does_not_get_of_the_project_is_said_in_who(stage: Stage) -> None:
    stage.agent("max", HANGING)
    stage.agent("ada", HANGING, more='permissions = "full"')
    skill = stage.team.parent / ".claude" / "skills" / "ship" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.touch()

    async def story() -> list[str]:
        async with open_team(stage.team, db=stage.db) as conversation:
            return who_lines(conversation)

    lines = asyncio.run(story())

    assert [line for line in lines if "does not get" in line] == [
        "  does not get the project's skills (.claude/skills/ship/SKILL.md): its permissions are not full"
    ]


def test_of_whom_no_figures_are_known_it_is_said_in_who(stage: Stage) -> None:
    counted: Script = [{"say": "Done."}]
    stage.agent("max", [{"say": "Done."}], cli="text")
    stage.agent("ada", counted)
    stage.agent("new", HANGING, cli="text")
    stage.agent("bad", [{"exit": 1}], cli="text")

    async def story() -> list[str]:
        async with open_team(stage.team, db=stage.db) as conversation:
            await conversation.say("Go. [NEXT: max & ada & bad]")
            await conversation.until_quiet()
            return who_lines(conversation)

    lines = [line for line in asyncio.run(story()) if "memory of its own" not in line]
    assert lines[2] == "  reports no figures: what its turns have used is not known"
    assert sum("no figures" in line for line in lines) == 1, lines


def test_who_has_full_permissions_is_shown(stage: Stage) -> None:
    stage.agent("max", HANGING)
    stage.agent("ada", FAILING, cli="gemini", more='permissions = "full"')

    async def story() -> ConversationView:
        async with open_team(stage.team, db=stage.db) as conversation:
            return conversation_view(conversation)

    view = asyncio.run(story())

    assert [member.name for member in view.members if member.has_full_permissions] == ["ada"]
    lines = team_lines(view)
    assert [line for line in lines if "full permissions" in line] == [line for line in lines if line.startswith("ada:")]
