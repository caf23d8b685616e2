"""The line under a composer is what Enter does, in every door, and nobody answers what comes up while they type."""

import asyncio
import html
import io
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
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
from bullpen.errors import NothingAsked
from bullpen.routing.asks import OpenAsk
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import StreamPage
from bullpen.testing.clock import ManualClock
from bullpen.testing.site import site
from bullpen.testing.stage import write_team
from bullpen.tui.app import BullpenApp
from bullpen.tui.chat import ChatScreen
from bullpen.turn_events import ApprovalAsked
from bullpen.view.choices import Decision
from bullpen.view.entered import entered
from bullpen.view.shown_cards import SETTLED_SECONDS, TOO_EARLY, ShownCards
from bullpen.view.state import conversation_view

Try = Callable[[str], Awaitable[tuple[str, str]]]
"""Types a text; returns the line under it, and what the person is told after Enter."""

ASKS = tuple(
    Asked(turn_id=turn, member="ada", question=ApprovalAsked(id=f"q{turn}", kind="command", command=command), at=0)
    for turn, command in (("3", "touch a"), ("4", "rm -rf b"))
)
INPUTS = (
    "hello",
    "@ben hello",
    "add a thing, and @ben too",
    "[NEXT: ada & ben] go",
    "@bem hello",
    "/etc/hosts is gone",
    "/note the deadline is Friday",
    "/nex",
    "/note",
    "y",
    "No",
    "yes, but later",
    "no, use the test database",
    "/yes",
    "/yes conversation",
    "/no not on a Friday",
    "/stop",
    "/yes 4",
    "12",
)


class Desk:
    """Takes the place of agents that wait: notes what they are answered, and what is said."""

    def __init__(self, conversation: Conversation, monkeypatch: pytest.MonkeyPatch, asked: tuple[Asked, ...]) -> None:
        self.done: list[str] = []
        self._conversation, self._asked = conversation, asked
        monkeypatch.setattr(conversation, "answer", self._answer)
        monkeypatch.setattr(conversation, "say", self._say)
        self.open()

    def open(self) -> None:
        self.done.clear()
        self._conversation.approvals.open.clear()
        for one in self._asked:
            self._conversation.approvals.open[one.turn_id, one.question.id] = one

    async def _answer(self, turn_id: str, question: str, answer: Answer, *, scope: str = "once", **_: Any) -> None:
        if (turn_id, question) not in self._conversation.approvals.open:
            raise NothingAsked(turn_id, question)
        self.done.append(f"answers turn {turn_id}: {answer.verdict}{f' {scope}' if answer.verdict == 'yes' else ''}")

    async def _say(self, text: str, *, sender: str | None = None, **_: Any) -> None:
        route = self._conversation.route_of(text, sender=sender)
        steps = sorted({(one.step, one.member) for one in route.asked})
        self.done.append(f"asks {', '.join(name for _, name in steps) or 'nobody'}")


def promised(line: str) -> str:
    """Return in the same words what a line says that Enter does."""
    if line.startswith("→"):
        names = re.split(r" \(|\. | · ", line.removeprefix("→ "))[0].rstrip(".")
        return f"asks {', '.join(re.split(r', then | & ', names.replace('all', 'ada & ben')))}"
    if found := re.fullmatch(r"answers ada: (Yes|No)(.*?) \((touch a|rm -rf b)\)", line):
        turn = {"touch a": "3", "rm -rf b": "4"}[found[3]]
        scopes = {", this once": " once", ", for exactly this from now on in this conversation": " conversation"}
        scope = scopes[found[2]] if found[1] == "Yes" else ""
        verdict = "stop" if found[2].startswith(", and stop") else found[1].lower()
        return f"answers turn {turn}: {verdict}{scope}"
    return ""


@asynccontextmanager
async def in_plain_chat(team: Path, monkeypatch: pytest.MonkeyPatch, *asked: Asked) -> AsyncIterator[tuple[Desk, Try]]:
    async with open_team(team, db=team.parent / "c.db") as conversation:
        written = io.StringIO()
        desk = Desk(conversation, monkeypatch, asked)

        def now() -> tuple[Decision, ...]:
            return conversation_view(conversation).decisions

        show = Show(StreamPage(written), Colours(None, on=False), now, in_chat=True)
        lines = ChatLines(conversation, show, None)
        for one in asked:
            show.tell(one)

        async def type_it(text: str) -> tuple[str, str]:
            seen, before = show.asked(), len(written.getvalue())
            line = lines.line(text, seen)
            await lines.take(text, seen)
            return line, written.getvalue()[before:].strip().removeprefix("! ")

        yield desk, type_it


@asynccontextmanager
async def on_the_full_screen(
    team: Path, monkeypatch: pytest.MonkeyPatch, *asked: Asked
) -> AsyncIterator[tuple[Desk, Try]]:
    async with open_team(team, db=team.parent / "c.db") as conversation:
        desk = Desk(conversation, monkeypatch, asked)
        app = BullpenApp(conversation)
        async with app.run_test(size=(200, 40), notifications=True) as pilot:
            chat = app.screen
            assert isinstance(chat, ChatScreen)

            async def type_it(text: str) -> tuple[str, str]:
                await chat._updates.show_state()
                await pilot.pause()
                chat._composer.focus()
                chat._composer.replace_draft("")
                # As if it had been there for a while.
                chat._composer.cards._since = dict.fromkeys(chat._composer.cards._since, -SETTLED_SECONDS)
                chat._composer.replace_draft(text)
                await pilot.pause()
                chat._composer._suggest([])
                await pilot.pause()
                line = str(chat._composer.border_subtitle)
                app.clear_notifications()
                await pilot.press("enter")
                await pilot.pause()
                told = "\n".join(one.message for one in app._notifications)
                chat._composer.load_text("")
                return line, told

            yield desk, type_it


@asynccontextmanager
async def in_the_browser(team: Path, monkeypatch: pytest.MonkeyPatch, *asked: Asked) -> AsyncIterator[tuple[Desk, Try]]:
    async with site(team.parent, team) as served, httpx.AsyncClient(base_url=served.url, timeout=60) as client:
        await client.post(served.new_url(), headers={"Origin": served.url})
        conversation = (await served.hub.begin()).conversation
        desk = Desk(conversation, monkeypatch, asked)
        seen = json.dumps([(one.turn_id, one.question.id) for one in asked])
        headers = {"HX-Request": "true", "Origin": served.url}

        async def type_it(text: str) -> tuple[str, str]:
            form = {"text": text, "asked": seen}
            would = (await client.post(f"/c/{conversation.id}/addressees", data=form, headers=headers)).json()
            answer = await client.post(f"/c/{conversation.id}/messages", data=form, headers=headers)
            told = html.unescape(re.sub(r"<button.*?</button>|<[^>]+>", "", answer.text, flags=re.DOTALL)).strip()
            if "line" in would:
                return would["line"], told
            steps = ", then ".join(" & ".join(step) for step in would["steps"])
            return f"→ {steps or 'nobody'}", told

        yield desk, type_it


DOORS = {"plain chat": in_plain_chat, "full screen": on_the_full_screen, "browser": in_the_browser}


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return write_team(tmp_path, {"ada": [{"say": "hi"}], "ben": [{"say": "hi"}]}, head='name = "stage"\nlead = "ada"\n')


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("door", DOORS)
def test_the_line_is_what_enter_does(door: str, count: int, team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> dict[str, tuple[str, list[str]]]:
        found: dict[str, tuple[str, list[str]]] = {}
        async with DOORS[door](team, monkeypatch, *ASKS[:count]) as (desk, type_it):
            for text in INPUTS:
                desk.open()
                line, told = await type_it(text)
                found[text] = line, list(desk.done)
                assert line, text
                assert [promised(line)] == (desk.done or [""]), (text, line, told)
                if not desk.done and not line.startswith("/"):
                    # It was refused, in the words that the line had for it.
                    assert told, (text, line)
        return found

    found = asyncio.run(play())
    assert found["add a thing, and @ben too"][1] == ["asks ada, ben"]
    assert found["no, use the test database"][1] == ["asks ada"]
    answers = {0: [], 1: ["answers turn 3: yes once"], 2: []}[count]
    assert found["y"][1] == found["/yes"][1] == answers or (count == 0 and found["y"][1] == ["asks ada"])


def test_a_digit_answers_no_question_that_another_one_hides(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with open_team(team, db=team.parent / "c.db") as conversation:
            Desk(conversation, monkeypatch, ASKS[1:])
            ask = OpenAsk(member="max", words="?", choices=("Euros", "Dollars", "Yen", "Francs"), at=0)
            progress = replace(conversation.progress, asks={"2": ask})
            monkeypatch.setattr(Conversation, "progress", property(lambda _: progress))
            first, hidden = conversation_view(conversation).decisions
            for digit, typed in (("2", "/yes conversation or /yes 2 Dollars"), ("4", "/yes or /yes 2 Francs")):
                # The first one has only just come: it was not there when the line was begun.
                for seen in ([hidden], [first, hidden]):
                    line = entered(conversation, digit, seen).line
                    assert line == f"Several things wait for you. Which one do you mean: {typed}?"
            conversation.approvals.open.clear()
            assert entered(conversation, "2", [hidden]).line == "answers max: Dollars (?)"

    asyncio.run(play())


def test_a_digit_answers_only_what_has_been_there_for_half_a_second(clock: ManualClock) -> None:
    cards = ShownCards()
    [first], [second] = (tuple(shown(one)) for one in ASKS)

    cards.show([first])
    assert cards.choice("1") == cards.choice("7") == TOO_EARLY, "it was pressed before this was there"
    assert cards.choice("a") is None, "it is no answer to any card"
    clock.advance(SETTLED_SECONDS - 0.1)
    cards.show([first, second])
    assert cards.choice("1") == TOO_EARLY
    clock.advance(0.1)
    assert cards.choice("1") == first.choices[0]
    assert cards.choice("1", age=0.2) == TOO_EARLY, "the key has waited since before that"
    assert cards.choice("7") is None
    assert cards.settled == (first,)
    clock.advance(SETTLED_SECONDS)
    cards.show([second])
    assert cards.settled == (second,), "it was there before"
    assert cards.choice("1") == TOO_EARLY, "but the key may have been meant for the card above it"
    clock.advance(SETTLED_SECONDS)
    assert cards.choice("1") == second.choices[0]
    cards.show(())
    assert cards.choice("1") is None, "it begins a message"
    cards.show([second])
    assert cards.choice("1") == TOO_EARLY, "something else was in front of it"


def shown(asked: Asked) -> tuple[Decision, ...]:
    from bullpen.view.decisions import decisions

    return decisions(undecided=(), asked=[asked], paused=None, waiting=0, held=(), missed=None, agents=())


def test_who_types_through_a_card_that_appears_answers_nothing(
    team: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    async def play() -> None:
        async with open_team(team, db=team.parent / "c.db") as conversation:
            desk = Desk(conversation, monkeypatch, ())
            app = BullpenApp(conversation)
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                chat = app.screen
                assert isinstance(chat, ChatScreen)

                async def appears(*asked: Asked) -> None:
                    desk._asked = asked
                    desk.open()
                    await chat._updates.show_state()
                    await pilot.pause()

                await pilot.press("1", "space")
                await appears(ASKS[0])
                await pilot.press("1", "2", "3", "enter")
                await pilot.pause()
                assert desk.done == ["asks ada"], "the message was begun before"
                desk.done.clear()
                await pilot.press("1", "escape")
                assert (chat._composer.text, desk.done) == ("", []), "it has only just come"
                clock.advance(2 * SETTLED_SECONDS)
                await pilot.press("x", "1", "backspace", "backspace")
                assert desk.done == [], "digits count only where nothing is written"
                await pilot.press("3", "n", "o", "t", "enter")
                await pilot.pause()
                assert desk.done == ["answers turn 3: no"]
                desk.done.clear()
                await pilot.press("2")
                await pilot.pause()
                assert desk.done == ["answers turn 3: yes conversation"]
                desk.done.clear()
                await pilot.press("escape")
                await pilot.pause()
                assert desk.done == ["answers turn 3: stop"]

    asyncio.run(play())
