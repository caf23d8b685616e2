"""Several conversations in one screen: listed, opened, and none of them stopped or forgotten."""

import asyncio
from functools import partial

from tests.tui.stage import PATIENCE_SECONDS, Scene, Stage
from textual.widgets import OptionList

from bullpen.team.file import load_team
from bullpen.tui.app import BullpenApp
from bullpen.tui.chat import ChatScreen
from bullpen.tui.composer import Composer
from bullpen.tui.open_conversations import open_conversations


def test_another_conversation_is_opened_while_this_one_continues(stage: Stage) -> None:
    stage.agent("max", [{"say": "The first answer."}], [{"say": "Slowly. "}, {"hang": True}])

    earlier = stage.said("About the login.")

    async def today() -> None:
        loaded = load_team(stage.team)
        async with asyncio.timeout(3 * PATIENCE_SECONDS), open_conversations(loaded, stage.db) as conversations:
            conversation = await conversations.open(None)
            app = BullpenApp(conversation, conversations=conversations)
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                scene = Scene(app, pilot, conversation)
                await scene.say("About the logout.")
                await scene.sees("Slowly.")
                await scene.type("My draft")
                await scene.press("ctrl+l")
                await scene.sees("About the login.", "About the logout.", "here", "+ a new conversation")
                await scene.type("login")
                await scene.until(lambda: app.screen.query_one(OptionList).option_count == 2)
                await scene.press("enter")
                await scene.sees("The first answer.")
                assert conversations.latest == earlier
                assert app.screen.query_one(Composer).text == ""
                assert len(conversation.running) == 1

                await scene.press("ctrl+q")
                await scene.sees("max is working. ctrl+q again")

                await scene.press("ctrl+l")
                await scene.type("logout")
                await scene.press("enter")
                await scene.sees("Slowly.", "My draft")
                assert conversations.latest == conversation.id

                await scene.press("ctrl+u")
                await scene.say("/open nothing like it")
                await scene.sees("+ a new conversation")
                await scene.press("enter")
                await scene.sees("Nothing has been said yet")

    asyncio.run(today())


def test_new_begins_a_conversation_which_names_the_one_before(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story() -> None:
        async with open_conversations(load_team(stage.team), stage.db) as conversations:
            first = await conversations.open(None)
            app = BullpenApp(first, conversations=conversations)
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                scene = Scene(app, pilot, first)
                await scene.sees("Nothing has been said yet")
                assert "Earlier here" not in scene.text
                await scene.say("About the login.")
                await scene.sees("Yes.")
                await scene.say("/new")
                await scene.sees("Nothing has been said yet", "Earlier here: “About the login.” /open continues it.")
                assert conversations.latest != first.id

                await scene.say("/open")
                await scene.sees("Conversations of this folder")
                await scene.press("enter")
                await scene.sees("Yes.")
                assert conversations.latest == first.id

    asyncio.run(story())


def test_a_conversation_of_an_untrusted_team_is_not_opened(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])
    other = stage.folder / "other.toml"
    other.write_text(stage.team.read_text())

    async def today() -> None:
        async with open_conversations(load_team(other), stage.db) as conversations:
            await (await conversations.open(None)).say("Elsewhere.")
        async with open_conversations(load_team(stage.team), stage.db) as conversations:
            conversation = await conversations.open(None)
            app = BullpenApp(conversation, conversations=conversations)
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                scene = Scene(app, pilot, conversation)
                await scene.press("ctrl+l")
                await scene.type("elsewhere")
                await scene.press("enter")
                await scene.sees("other.toml is not trusted")
                assert isinstance(app.screen, ChatScreen)
                assert app.screen.conversation is conversation

    asyncio.run(today())


def has_another_theme(scene: Scene, theme: str) -> bool:
    return scene.app.theme != theme and {scene.app.theme, theme} == {"bullpen-dark", "bullpen-light"}


def test_the_palette_runs_commands_and_begins_those_that_need_more(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        composer = scene.app.screen.query_one(Composer)
        for draft in ("", "draft"):
            composer.text, theme = draft, scene.app.theme
            await scene.press("ctrl+p")
            await scene.sees("/next NAMES", "ask members to answer")
            await scene.type("dark")
            await scene.sees("switch between dark and light")
            await scene.press("enter")
            await scene.until(partial(has_another_theme, scene, theme))
            assert composer.text == draft

            await scene.press("ctrl+p")
            await scene.type("word for word")
            await scene.sees("/prompt NAME")
            await scene.press("enter")
            await scene.until(lambda: composer.text == "/prompt ")
        await scene.press("escape", "up")
        assert composer.text == "draft"

    stage.play(story)
