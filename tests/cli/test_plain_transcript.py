"""Show: news in, a page that people can read out."""

import pytest

from bullpen.cli.plain.transcript import Show
from bullpen.conversation.events import (
    ConversationEvent,
    HandOverMissed,
    Held,
    Lagged,
    Paused,
    Queued,
    Said,
    Trouble,
    TurnBegan,
    TurnEnded,
    TurnEvent,
    Undecided,
)
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.terminal.colors import Colours
from bullpen.turn_events import (
    Event,
    Failed,
    Notice,
    TextDelta,
    Thinking,
    TodoItem,
    TodoList,
    ToolFinished,
    ToolStarted,
    Usage,
)


class Paper:
    """A page without a width, that keeps what was written."""

    columns = None

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def shown(*news: ConversationEvent, in_chat: bool = True) -> str:
    paper = Paper()
    show = Show(paper, Colours(None, on=False), in_chat=in_chat)
    for one in news:
        show.tell(one)
    return paper.text


def turn(turn_id: str, member: str) -> WaitingTurn:
    return WaitingTurn(id=turn_id, member=member, message_id="m")


def began(turn_id: str, member: str, *cuts: str) -> TurnBegan:
    return TurnBegan(turn=turn(turn_id, member), at=0, prompt_bytes=10, cuts=cuts)


def does(turn_id: str, *events: Event) -> list[ConversationEvent]:
    return [TurnEvent(turn_id=turn_id, member="x", event=event) for event in events]


def said(turn_id: str | None, member: str, text: str, to: tuple[str, ...] = (), **more: object) -> Said:
    message = ConversationMessage(
        id="m2",
        content=text,
        speaker=Speaker(role_id=member, role_name=member, type="ai" if turn_id else "human"),
        routing=Routing(resolved_addressees=to),
    )
    return Said(sequence=2, message=message, turn_id=turn_id, **more)  # type: ignore[arg-type]


def ended(turn_id: str, member: str, usage: Usage | None = None) -> TurnEnded:
    return TurnEnded(turn_id=turn_id, member=member, state="done", seconds=1.25, usage=usage)


def test_a_turn_with_everything() -> None:
    page = shown(
        began("1", "ada", "CONTEXT trimmed to 2 of 5 messages"),
        *does(
            "1",
            Thinking("Let me\nsee"),
            Thinking(" about it"),
            TextDelta("I loo"),
            TextDelta("k."),
            ToolStarted(id="a", name="Bash", input={"command": "ls\n-l"}),
            ToolStarted(id="b", name="Edit", input={"file_path": "a.py", "old": "x"}),
            ToolFinished(id="a", output="one\n\ntwo\nthree"),
            ToolFinished(id="b", output="no such text", failed=True),
            ToolFinished(id="c", changed_files=("b.py",)),
            TodoList((TodoItem("build", done=True), TodoItem("test", done=False))),
            TodoList((TodoItem("build", done=True), TodoItem("test", done=False))),
            Notice(kind="retry", text="busy, attempt 1"),
            TextDelta("Done. [NEXT: ben]"),
        ),
        said("1", "ada", "Done. [NEXT: ben]", ("ben",), notes=("Nobody here is called bne.",)),
        Queued(turns=(turn("2", "ben"),)),
        ended("1", "ada", Usage(input_tokens=1200, output_tokens=30, cost_usd=0.01)),
    )

    assert page.splitlines()[2:] == [
        "  ! Not everything fitted: CONTEXT trimmed to 2 of 5 messages.",
        "  ~ Let me see about it",
        "  I look.",
        "  ▸ Bash  ls -l",
        "  ▸ Edit  a.py",
        "    ✓ Bash: one (+2 lines)",
        "    ✗ no such text",
        "    ✓ changed b.py",
        "  ☑ build  ☐ test",
        "  · busy, attempt 1",
        "  Done. [NEXT: ben]",
        "  #2 → ben · 1.2 s · 1,200 tokens in, 30 out · $0.0100 · changed b.py",
        "  ! Nobody here is called bne.",
    ]


def test_turns_at_the_same_time_are_read_one_after_the_other() -> None:
    page = shown(
        began("1", "ada"),
        began("2", "ben"),
        *does("2", TextDelta("ben ")),
        *does("1", TextDelta("ada ")),
        *does("2", TextDelta("says b")),
        said("2", "ben", "ben says b"),
        HandOverMissed(member="ben", message_id="m2", names=("mei",), quote="over to mei", text="ben wrote so."),
        ended("2", "ben"),
        *does("1", TextDelta("says a")),
        said("1", "ada", "ada says a"),
        ended("1", "ada"),
    )

    assert [line for line in page.splitlines() if line and "turn" not in line] == [
        "  ada says a",
        "  #2 · 1.2 s",
        "  ben says b",
        "  #2 · 1.2 s",
        "? ben wrote so.",
        "  Enter (or y, or /next mei) asks mei now; anything else goes on without.",
    ]


def test_a_turn_that_still_runs_is_followed_when_the_other_is_over() -> None:
    page = shown(
        began("1", "ada"),
        began("2", "ben"),
        *does("2", TextDelta("half a ")),
        said("1", "ada", "all"),
        ended("1", "ada"),
        *does("2", TextDelta("sentence")),
    )

    assert page.endswith("  half a sentence")


def test_what_happens_in_between_does_not_break_a_line() -> None:
    page = shown(
        began("1", "ada"),
        *does("1", TextDelta("I was say")),
        said(None, "kim", "Wait!", ("ada",)),
        *does("1", TextDelta("ing")),
        said("1", "ada", "I was saying"),
        ended("1", "ada"),
    )

    lines = [line for line in page.splitlines() if line]
    assert [line for line in lines[1:] if "#2 · 0" not in line and "kim → ada" not in line] == [
        "  I was say",
        "  Wait!",
        "ada goes on",
        "  ing",
        "  #2 · 1.2 s",
    ]


def test_a_reply_that_was_not_streamed_is_shown_whole() -> None:
    page = shown(began("1", "ada"), *does("1", TextDelta("draft")), said("1", "ada", "final\nword"), ended("1", "ada"))

    assert "  draft\n  final\n  word\n  #2 · " in page


def test_a_failed_turn_shows_the_choices_only_where_they_can_be_typed() -> None:
    failed = (
        began("1", "ada"),
        *does("1", TextDelta("I try")),
        TurnEnded(
            turn_id="1", member="ada", state="failed", seconds=1.0, failure=Failed(kind="crashed", message="It died.")
        ),
        Undecided(turn=turn("1", "ada"), state="failed", text="ada: It died."),
        Paused(kind="cap", text="20 turns."),
        Held(turns=(turn("2", "ben"),)),
    )

    in_chat, elsewhere = shown(*failed), shown(*failed, in_chat=False)

    assert "  ✗ failed · 1.0 s · what it said so far is kept, and is no message\n! ada: It died.\n" in elsewhere
    assert "/retry" not in elsewhere
    assert "/go" not in elsewhere
    assert "/retry does it again · /skip goes on without it · /hand NAME" in in_chat
    assert "‖ Paused: 20 turns.\n  /go goes on" in in_chat
    assert "‖ On hold since the pause: ben\n  /go lets them" in in_chat


@pytest.mark.parametrize(
    "news",
    [
        TurnEvent(turn_id="1", member="x", event=Thinking("\x1b[31m\r\u202e")),
        TurnEvent(
            turn_id="1", member="x", event=ToolStarted(id="a", name="\x1b[2J", input={"command": "\x1b]0;x\x07"})
        ),
        TurnEvent(turn_id="1", member="x", event=ToolStarted(id="a", name="t", input={"\x9b": ["\x1b\u2066"]})),
        TurnEvent(turn_id="1", member="x", event=ToolFinished(id="a", output="\x1b[2J\r", changed_files=("\x1b[A",))),
        TurnEvent(turn_id="1", member="x", event=TodoList((TodoItem("\x1b[A\r", done=False),))),
        TurnEvent(turn_id="1", member="x", event=Notice(kind="noise", text="\x1b[A\x08")),
        Undecided(turn=turn("1", "\x1b[A"), state="failed", text="\x1b[A\r\u202e"),
        HandOverMissed(member="a", message_id="m", names=("\x1b[A",), quote="\x1b", text="\x1b[A"),
        Trouble(text="\x1b[A\x07"),
        said(None, "\x1b[A", "\x1b[A\r", ("\x1b[A",), notes=("\x1b[A",), reason="\x9b"),
    ],
)
def test_nothing_that_a_terminal_would_obey_gets_through(news: ConversationEvent) -> None:
    page = shown(began("1", "\x1b[31mada\r", "\x1b[A"), news)

    assert not set(page) & set("\x1b\x9b\x07\x08\r\u202e\u2066")
    assert "\ufffd" in page


def test_a_viewer_that_was_too_slow_is_told() -> None:
    assert "(1,200 pieces of what was said are left out here" in shown(Lagged(missed=1200))
