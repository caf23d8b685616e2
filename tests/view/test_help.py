"""What help shows: what can be done now comes first, the few commands that matter follow, the rest is behind "all"."""

import asyncio
from pathlib import Path

import pytest
from tests.tui.stage import Stage
from tests.view.doors import DOORS

from bullpen.errors import BullpenError
from bullpen.team.reader import read_team
from bullpen.view.choices import Choice, Decision
from bullpen.view.commands import COMMANDS, read_command
from bullpen.view.help import FEW, MORE, all_sections, help_sections
from bullpen.view.state import ConversationView, Working

IDLE = ConversationView(id="x", team="t", is_open=True)
TEAM = read_team('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\nmodel = "opus"\n')


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Stage(tmp_path)


def names(rows: list[tuple[str, str]]) -> list[str]:
    return [typed.split()[0] for typed, _ in rows if typed]


def test_what_waits_comes_before_who_works() -> None:
    retry = Choice(action="retry", label="Retry", typed="/retry 3", purpose="run the turn again")
    failed = Decision(kind="failed", text="max failed.", turn="3", choices=(retry,))
    working = Working(turn="4", member="sarah", doing="thinking", since=0)
    view = ConversationView(id="x", team="t", is_open=True, decisions=(failed,), working=(working,))

    first, now = next(iter(help_sections(view).items()))

    assert next(iter(all_sections(view).items())) == (first, now)
    assert first == "Now"
    assert now == [
        ("", "max failed."),
        ("/retry 3", "run the turn again"),
        ("/tell sarah TEXT", "give sarah words in this turn"),
        ("/cancel sarah", "end the turn of sarah"),
    ]


def test_it_says_of_a_conversation_what_its_header_says() -> None:
    waits = ConversationView(id="x", team="t", is_open=True, status="your_turn", waits_for="kim")

    assert help_sections(waits)["Now"] == [("", "Nobody is working. It waits for you, kim: say what you want.")]
    assert help_sections(IDLE)["Now"] == [("", "Nobody is working, and nothing waits for you: say what you want.")]


def test_the_few_come_first_and_every_command_is_somewhere() -> None:
    few, every = help_sections(IDLE), all_sections(IDLE)

    assert names(few["Commands"]) == [f"/{name}" for name in FEW] + ["/help"]
    assert few["Commands"][-1] == MORE
    assert [name for _, rows in every.items() for name in names(rows) if name.startswith("/")] == [
        *(f"/{name}" for name in FEW),
        *(f"/{name}" for name in COMMANDS if name not in FEW),
    ]


@pytest.mark.parametrize(
    ("typed", "does"),
    [
        *(("/status", "queue"), ("/cost", "who"), ("/usage", "who"), ("/model", "who"), ("/agents", "who")),
        *(("/new", "new"), ("/clear", "new"), ("/sessions", "open"), ("/resume login", "open")),
        *(("/compact", "sumup"), ("/exit", "quit")),
    ],
)
def test_words_of_other_programs_do_what_is_expected(typed: str, does: str) -> None:
    found = read_command(typed, TEAM)

    assert found is not None
    assert found.command.name == does


def test_who_wants_another_model_is_told_where_it_is_set() -> None:
    with pytest.raises(BullpenError, match='set in the team file, below its name, for example: model = "opus"'):
        read_command("/model sonnet", TEAM)


@pytest.mark.parametrize("door", ["plain chat", "browser", "editor"])
def test_help_and_the_other_conversations_are_in_every_door(door: str, stage: Stage) -> None:
    stage.agent("max", [{"say": "Hello."}], more='model = "opus"')

    async def story() -> tuple[str, ...]:
        async with DOORS[door](stage.team, stage.folder) as (_, send):
            return tuple([await send(text) for text in ("/help", "/help all", "/new", "/cost")])

    few, every, new, cost = asyncio.run(story())

    assert "nothing waits for you" in few
    assert "/help all" in few
    assert "/reorder" not in few
    assert "/reorder" in every
    assert {"plain chat": "bullpen chat", "editor": "new thread in your editor", "browser": ""}[door] in new
    assert "model opus" in cost
