"""Forking a conversation on the full screen: with a key on a message, with a command, from the palette."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.tui.stage import PATIENCE_SECONDS, Scene, Stage

from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import load_team
from bullpen.tui.app import BullpenApp
from bullpen.tui.chat import ChatScreen
from bullpen.tui.open_conversations import OpenConversations, open_conversations
from bullpen.tui.transcript import Transcript


@asynccontextmanager
async def talked(stage: Stage) -> AsyncIterator[tuple[Scene, OpenConversations]]:
    """A conversation with four messages."""
    stage.agent("max", [{"say": "The first answer."}], [{"say": "The second answer."}], [{"say": "Another one."}])
    loaded = load_team(stage.team)
    async with asyncio.timeout(3 * PATIENCE_SECONDS), open_conversations(loaded, stage.db) as conversations:
        conversation = await conversations.open(None)
        app = BullpenApp(conversation, conversations=conversations)
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            scene = Scene(app, pilot, conversation)
            for text in ("The first question.", "The second question."):
                await scene.say(text)
                await scene.quiet()
            await scene.sees("The second answer.")
            yield scene, conversations


def said(stage: Stage, conversation_id: str) -> list[str]:
    with SqliteStore(stage.db) as store:
        return [stored.message.content for stored in store.messages(conversation_id)]


def selected(scene: Scene) -> int | None:
    view = scene.app.screen.query_one(Transcript).selected
    return None if view is None else view.sequence


async def told(scene: Scene, words: str) -> None:
    """Wait for a notification. On the screen it may be wrapped anywhere."""
    await scene.until(lambda: any(words in one.message for one in scene.app._notifications))
    scene.app.clear_notifications()


async def forked(scene: Scene, conversations: OpenConversations, before: str) -> str:
    await scene.until(lambda: conversations.latest != before and bool(scene.app.screen.query(Transcript)))
    await told(scene, "This is the fork. ctrl+l goes back")
    assert isinstance(scene.app.screen, ChatScreen)
    assert scene.app.screen.conversation.id == conversations.latest
    return conversations.latest


def test_the_selected_message_is_the_last_of_the_fork(stage: Stage) -> None:
    async def story() -> None:
        async with talked(stage) as (scene, conversations):
            here = conversations.latest
            await scene.press("tab")
            while selected(scene) != 2:
                await scene.press("up")
            await scene.press("ctrl+f")
            fork = await forked(scene, conversations, here)
            await scene.sees("The first answer.")
            assert said(stage, fork) == ["The first question.", "The first answer."]
            assert "The second question." not in scene.text

            await scene.say("In the fork.")
            await scene.sees("In the fork.", "Another one.")
            await scene.until(lambda: said(stage, fork)[2:] == ["In the fork.", "Another one."])
            assert len(said(stage, here)) == 4

    asyncio.run(story())


def test_a_command_forks_at_a_number_or_at_the_end(stage: Stage) -> None:
    async def story() -> None:
        async with talked(stage) as (scene, conversations):
            here = conversations.latest
            await scene.say("/fork 9")
            await told(scene, "has 4 messages, so it cannot be forked at message 9.")
            await scene.press("ctrl+u")
            await scene.say("/fork two")
            await told(scene, "/fork takes the number of a message, for example: /fork 14")
            await scene.press("ctrl+u")
            assert conversations.latest == here
            await scene.say("/fork #3")
            third = await forked(scene, conversations, here)
            assert len(said(stage, third)) == 3
            await scene.say("/fork")
            assert len(said(stage, await forked(scene, conversations, third))) == 3

    asyncio.run(story())


def test_the_palette_forks_at_the_selected_message(stage: Stage) -> None:
    async def story() -> None:
        async with talked(stage) as (scene, conversations):
            here = conversations.latest
            await scene.press("tab")
            while selected(scene) != 3:
                await scene.press("up")
            await scene.press("ctrl+p")
            await scene.type("fork")
            await scene.sees("/fork")
            await scene.press("enter")
            assert len(said(stage, await forked(scene, conversations, here))) == 3

    asyncio.run(story())


def test_where_no_other_conversation_can_be_opened_nothing_is_forked(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        await scene.say("Hello.")
        await scene.quiet()
        await scene.say("/fork")
        await told(scene, "Other conversations cannot be opened here.")

    stage.play(story)
    with SqliteStore(stage.db) as store:
        assert len(store.conversations()) == 1
