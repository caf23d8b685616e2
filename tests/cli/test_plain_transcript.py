"""Show: events in, a page that people can read out."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.view.changed import RECORDS

from bullpen.approvals import Answer
from bullpen.check_results import CheckResult
from bullpen.cli.plain.transcript import Show
from bullpen.conversation.events import (
    Answered,
    Checked,
    ConversationEvent,
    FilesChanged,
    HandOverMissed,
    Held,
    Lagged,
    Paused,
    Queued,
    Quiet,
    Said,
    Trouble,
    TurnBegan,
    TurnEnded,
    TurnEvent,
    Undecided,
)
from bullpen.conversation.state import UndecidedTurn
from bullpen.file_changes import FolderChanges
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.missed_hand_overs import MissedHandOver
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
from bullpen.view.choices import Choice, Decision
from bullpen.view.decisions import decisions


class Paper:
    """A page that keeps what was written; without a width, unless one is set."""

    columns: int | None = None

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def shown(*events: ConversationEvent, in_chat: bool = True, asked: Sequence[Decision] = ()) -> str:
    paper = Paper()
    show = Show(paper, Colours(None, on=False), lambda: asked, in_chat=in_chat)
    for event in events:
        show.tell(event)
    return paper.text


def asked(
    *undecided: UndecidedTurn,
    paused: str | None = None,
    waiting: int = 0,
    held: Sequence[str] = (),
    missed: MissedHandOver | None = None,
) -> tuple[Decision, ...]:
    return decisions(
        undecided=undecided, paused=paused, waiting=waiting, held=held, missed=missed, agents=("ada", "ben")
    )


def missed(sender: str, name: str, quote: str) -> MissedHandOver:
    return MissedHandOver(sender=sender, members=(name,), kind="in_words", quote=quote)


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
        "  ! Not everything fits: CONTEXT trimmed to 2 of 5 messages.",
        "  ~ Let me see about it",
        "  I look.",
        "  ▸ Bash  ls ⏎ -l",
        "  ▸ Edit  a.py",
        "    ✓ Bash: one (+2 lines)",
        "    ✗ no such text",
        "    ✓ changed b.py",
        "  ☑ build  ☐ test",
        "  · busy, attempt 1",
        "  Done. [NEXT: ben]",
        "  #2 → ben · 1.2 s · 1.2k tokens · $0.0100 · changed b.py",
        "  ! Nobody here is called bne.",
    ]


def test_a_turn_that_ends_while_another_runs_is_written_at_once() -> None:
    events = [
        began("1", "ada"),
        began("2", "ben"),
        began("3", "mei"),
        *does("2", TextDelta("ben ")),
        *does("1", TextDelta("ada says")),
        *does("2", TextDelta("says b")),
        said("2", "ben", "ben says b"),
        HandOverMissed(member="ben", message_id="m2", names=("mei",), quote="over to mei", text="ben wrote so."),
        ended("2", "ben"),
    ]
    more = [
        *does("1", TextDelta(" a")),
        said("1", "ada", "ada says a"),
        ended("1", "ada"),
        *does("3", TextDelta("mei says m")),
        said("3", "mei", "mei says m"),
        ended("3", "mei"),
    ]
    open_now = asked(missed=missed("ben", "mei", "over to mei"))

    at_once = [
        "  ada says",
        "  ben says b",
        "  #2 · 1.2 s",
        "  (ada, mei are still working.)",
    ]
    assert without_headings(shown(*events, asked=open_now)) == at_once
    assert without_headings(shown(*events, *more, asked=open_now)) == [
        *at_once,
        "ada continues",
        "   a",
        "  #2 · 1.2 s",
        "  (mei is still working.)",
        "  mei says m",
        "  #2 · 1.2 s",
        f"? {missed('ben', 'mei', 'over to mei').sentence}",
        "  1 Ask mei   /next mei",
        "  3 Leave it  /dismiss",
    ]


def without_headings(page: str) -> list[str]:
    return [line for line in page.splitlines() if line and "turn" not in line]


def test_a_turn_that_fails_while_another_runs_asks_at_once() -> None:
    failure = Failed(kind="crashed", message="It died.")
    undecided = UndecidedTurn(turn=turn("2", "ben"), state="failed", failure=failure)
    page = shown(
        began("1", "ada"),
        began("2", "ben"),
        *does("2", TextDelta("I try")),
        TurnEnded(turn_id="2", member="ben", state="failed", seconds=1.0, failure=failure),
        Undecided(turn=turn("2", "ben"), state="failed", text="ben: It died."),
        asked=asked(undecided),
    )

    assert without_headings(page)[:2] == [
        "  I try",
        "  ✗ failed · 1.0 s · what it said so far is kept, but is not a message",
    ]
    assert "✗ ben (turn 2): It died.\n" in page


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
    assert [line for line in lines[1:] if "#2 · --:--" not in line and "kim → ada" not in line] == [
        "  I was say",
        "  Wait!",
        "ada continues",
        "  ing",
        "  #2 · 1.2 s",
    ]


def test_what_a_turn_used_is_not_written_below_the_failure_of_another_one() -> None:
    failure = Failed(kind="crashed", message="It died.")
    undecided = UndecidedTurn(turn=turn("2", "ben"), state="failed", failure=failure)
    page = shown(
        began("1", "ada"),
        began("2", "ben"),
        *does("1", TextDelta("Done.")),
        TurnEnded(turn_id="2", member="ben", state="failed", seconds=1.0, failure=failure),
        Undecided(turn=turn("2", "ben"), state="failed", text="ben: It died."),
        said("1", "ada", "Done."),
        ended("1", "ada"),
        asked=asked(undecided),
    )

    before, _, after = page.rpartition("ada ended\n")
    assert "✗ ben (turn 2): It died.\n" in before
    assert after.startswith("  #2 · 1.2 s")


def test_a_word_is_whole_after_an_interruption() -> None:
    paper = Paper()
    paper.columns = 40
    show = Show(paper, Colours(None, on=False), tuple, in_chat=True)

    for event in (began("1", "ada"), *does("1", TextDelta("I was say"))):
        show.tell(event)
    show.interrupt()
    paper.write("kim ▸ /queue\n")
    for event in (*does("1", TextDelta("ing")), said("1", "ada", "I was saying"), ended("1", "ada")):
        show.tell(event)

    assert paper.text.splitlines()[2:] == [
        "  I was ",
        "kim ▸ /queue",
        "",
        "ada continues",
        "  saying",
        "  #2 · 1.2 s",
    ]


def test_a_reply_that_was_not_streamed_is_shown_whole() -> None:
    page = shown(began("1", "ada"), *does("1", TextDelta("draft")), said("1", "ada", "final\nword"), ended("1", "ada"))

    assert "  draft\n  final\n  word\n  #2 · " in page


def test_a_failed_turn_shows_the_choices_only_where_they_can_be_typed() -> None:
    ended_turn = UndecidedTurn(
        turn=turn("1", "ada"), state="failed", failure=Failed(kind="crashed", message="It died.")
    )
    failed = (
        began("1", "ada"),
        *does("1", TextDelta("I try")),
        TurnEnded(
            turn_id="1", member="ada", state="failed", seconds=1.0, failure=Failed(kind="crashed", message="It died.")
        ),
        Undecided(turn=turn("1", "ada"), state="failed", text="ada: It died."),
        Paused(kind="cap", text="20 turns."),
    )
    open_now = asked(ended_turn, paused="20 turns.", waiting=1)

    in_chat, elsewhere = shown(*failed, asked=open_now), shown(*failed, asked=open_now, in_chat=False)

    assert elsewhere.endswith(
        "  ✗ failed · 1.0 s · what it said so far is kept, but is not a message\n✗ ada (turn 1): It died.\n"
    )
    assert in_chat.endswith(
        "✗ ada (turn 1): It died.\n"
        "  1 Retry             /retry 1\n"
        "  2 Skip              /skip 1\n"
        "  3 Hand over to ben  /hand ben 1\n"
        "  /drop               remove every waiting turn\n"
    )


def test_an_offered_answer_is_its_number_first() -> None:
    answer = Choice(action="yes", label="no", typed="/yes 1 no", purpose="answer: no", given={}, key="2")
    page = Paper()

    Show(page, Colours(None, on=False), lambda: (), in_chat=True).decision(
        Decision(kind="question", text="ada asks you (turn 1).", shown="Ship it?", choices=(answer,))
    )

    assert page.text.endswith("  2 no  /yes 1 no\n")


def test_the_length_of_a_long_command_is_said_below_it_too() -> None:
    page = Paper()
    asked = Decision(kind="question", text="ada wants to run a command.", shown="touch evil" + "\n" * 60 + "ls")

    Show(page, Colours(None, on=False), lambda: (), in_chat=True).decision(asked)

    assert page.text.endswith("\n  ls\n\n? That is 61 lines and 72 characters: read it from the first to the last.\n")


def test_a_failed_turn_is_asked_about_while_another_one_runs() -> None:
    ended_turn = UndecidedTurn(
        turn=turn("1", "ada"), state="failed", failure=Failed(kind="crashed", message="It died.")
    )
    events = (
        began("1", "ada"),
        began("2", "ben"),
        *does("2", TextDelta("I am")),
        TurnEnded(turn_id="1", member="ada", state="failed", seconds=1.0),
        Undecided(turn=turn("1", "ada"), state="failed", text=""),
        *does("2", TextDelta(" slow")),
    )

    page = shown(*events, in_chat=False, asked=asked(ended_turn))

    assert page.endswith("  I am\n✗ ada (turn 1): It died.\n\nben continues\n   slow")


def test_what_stays_on_hold_is_said_once() -> None:
    held = Held(turns=(turn("2", "ben"),))

    page = shown(held, Quiet(waits_for=None), asked=asked(waiting=1, held=("ada",)))

    assert page == (
        "‖ 1 turn from before the pause is on hold: ada.\n"
        "  1 Continue  /continue\n"
        "  /drop       remove every waiting turn\n"
    )


def test_what_is_decided_already_is_not_asked() -> None:
    assert shown(Paused(kind="cap", text="20 turns."), Quiet(waits_for=None)) == ""


def test_a_decision_interrupts_no_turn() -> None:
    page = shown(
        began("1", "ada"),
        *does("1", TextDelta("I was say")),
        Paused(kind="cap", text="20 turns."),
        *does("1", TextDelta("ing")),
        said("1", "ada", "I was saying"),
        ended("1", "ada"),
        in_chat=False,
        asked=asked(paused="20 turns."),
    )

    assert page.endswith("  I was saying\n  #2 · 1.2 s\n‖ Paused: 20 turns.\n")


def test_without_a_chat_a_missed_hand_over_says_what_to_say() -> None:
    event = HandOverMissed(member="ben", message_id="m", names=("mei",), quote="over to mei", text="")

    page = shown(event, in_chat=False, asked=asked(missed=missed("ben", "mei", "over to mei")))

    assert page.endswith("\n  It was not handed over. To do that, say: [NEXT: mei]\n")


def test_a_plan_is_shown_in_place_of_the_tool_that_changes_it() -> None:
    page = shown(
        began("1", "ada"),
        *does(
            "1",
            ToolStarted(id="a", name="TodoWrite", input={"todos": []}),
            TodoList((TodoItem("build", done=False),)),
            ToolFinished(id="a", output="ok"),
            ToolStarted(id="b", name="update_plan", input={}),
            ToolFinished(id="b", output="no", failed=True),
        ),
    )

    assert page.splitlines()[2:] == ["  ☐ build", "    ✗ no"]


def test_what_was_changed_is_said_after_the_turn() -> None:
    changed, by_people, _, _, undone = RECORDS
    page = shown(
        began("1", "max"),
        said("1", "max", "Done.", ()),
        ended("1", "max"),
        FilesChanged.of(changed),
        FilesChanged.of(by_people),
        FilesChanged.of(undone),
        FilesChanged.of(replace(changed, changes=FolderChanges(folder="/x"))),
    )

    assert page.splitlines()[-3:] == [
        "  ± max changed 3 files in turn 1 (+2 −1).  /diff 1",
        "  ± Somebody changed 1 file between turns (+1 −1).",
        "  ± kai took back turn 3: 1 file (−2).",
    ]


RUNNING = CheckResult(
    turn_id="1", member="max", name="pytest", command=("pytest",), workspace="/p", state="running", at=1
)
RED = replace(RUNNING, state="red", exit_code=1, seconds=2.1, output="".join(f"line {n}\n" for n in range(30)))


def test_what_checks_said_is_told_when_they_have_ended() -> None:
    done = (began("1", "max"), said("1", "max", "Done.", ()), ended("1", "max"))
    checks = [
        *(RUNNING, RED, replace(RED, name="lint", state="green", output="")),
        *(
            replace(RED, name="slow", state="timed_out"),
            replace(RED, name="gone", state="not_started", note="Not found."),
        ),
    ]
    events = [Checked(result=one) for one in checks]

    assert shown(*done, *events).splitlines()[-4:] == [
        "  ✗ pytest: red (exit 1), 2.1 s  /checks 1",
        "  ✓ lint: green, 2.1 s",
        "  ✗ slow: timed out after 2.1 s  /checks 1",
        "  – gone: could not start. Not found.  /checks 1",
    ]
    unattended = shown(*done, *events[:2], in_chat=False).splitlines()
    assert unattended[-22:-19] == ["  ✗ pytest: red (exit 1), 2.1 s", "    …", "    line 10"]
    assert unattended[-1] == "    line 29"


def test_what_bullpen_itself_says_is_written_where_people_type() -> None:
    speaker = Speaker(role_id="bullpen", role_name="bullpen", type="system")
    message = ConversationMessage(id="m3", content="The check pytest is red.", speaker=speaker)
    paper = Paper()
    show = Show(paper, Colours(None, on=False), lambda: (), in_chat=True, repeats_people=False)
    show.tell(Said(sequence=3, message=message))
    assert "The check pytest is red." in paper.text


def test_an_edit_shows_its_first_lines() -> None:
    old = "def x():\n\treturn 1\n"
    content = "".join(f"{number}\n" for number in range(20))
    page = shown(
        began("1", "ada"),
        *does(
            "1",
            ToolStarted(
                id="a",
                name="Edit",
                input={"file_path": "a.py", "old_string": old, "new_string": old.replace("1", "2")},
            ),
            ToolFinished(id="a", output="ok"),
            ToolStarted(id="b", name="Write", input={"file_path": "b.py", "content": content}),
        ),
    )

    assert page.splitlines()[2:] == [
        "  ▸ Edit  a.py +1 −1",
        "      def x():",
        "    −     return 1",
        "    +     return 2",
        "    ✓ ok",
        "  ▸ Write  b.py +20",
        *(f"    + {number}" for number in range(12)),
        "    … 8 more lines",
    ]


@pytest.mark.parametrize(
    "event",
    [
        TurnEvent(turn_id="1", member="x", event=Thinking("\x1b[31m\r\u202e")),
        TurnEvent(
            turn_id="1", member="x", event=ToolStarted(id="a", name="\x1b[2J", input={"command": "\x1b]0;x\x07"})
        ),
        TurnEvent(turn_id="1", member="x", event=ToolStarted(id="a", name="t", input={"\x9b": ["\x1b\u2066"]})),
        TurnEvent(
            turn_id="1",
            member="x",
            event=ToolStarted(id="a", name="Write", input={"file_path": "\x1b[A", "content": "\x1b[2J\r\u202e"}),
        ),
        TurnEvent(turn_id="1", member="x", event=ToolFinished(id="a", output="\x1b[2J\r", changed_files=("\x1b[A",))),
        TurnEvent(turn_id="1", member="x", event=TodoList((TodoItem("\x1b[A\r", done=False),))),
        TurnEvent(turn_id="1", member="x", event=Notice(kind="noise", text="\x1b[A\x08")),
        TurnEvent(turn_id="1", member="x", event=Notice(kind="retry", text="\x1b[A\x08")),
        Trouble(text="\x1b[A\x07"),
        said(None, "\x1b[A", "\x1b[A\r", ("\x1b[A",), notes=("\x1b[A",), reason="\x9b"),
    ],
)
def test_nothing_that_a_terminal_would_obey_gets_through(event: ConversationEvent) -> None:
    page = shown(began("1", "\x1b[31mada\r", "\x1b[A"), event)

    assert not set(page) & set("\x1b\x9b\x07\x08\r\u202e\u2066")
    assert "\ufffd" in page


@pytest.mark.parametrize(
    "decision",
    [
        *asked(UndecidedTurn(turn=turn("1", "\x1b[A"), state="interrupted"), paused="\x1b[A\r\u202e"),
        *asked(missed=missed("\x1b[A", "\x1b[A\r", "\x9b")),
    ],
)
@pytest.mark.parametrize("in_chat", [True, False])
def test_nor_in_what_people_are_asked(decision: Decision, in_chat: bool) -> None:
    paper = Paper()

    Show(paper, Colours(None, on=False), tuple, in_chat=in_chat).decision(decision)

    assert not set(paper.text) & set("\x1b\x9b\x07\x08\r\u202e\u2066")
    assert "\ufffd" in paper.text


def test_a_viewer_that_was_too_slow_is_told() -> None:
    page = shown(Lagged(missed=1200), in_chat=False, asked=asked(paused="20 turns."))

    assert page == "  (1,200 events missing here; the messages are complete.)\n‖ Paused: 20 turns.\n"


def test_a_long_first_column_is_wrapped_instead_of_leaving_no_room_for_the_second() -> None:
    paper = Paper()
    paper.columns = 79
    long = "turn 3, max, after the check `python -m pytest -q tests/shop` which is red: 漢字"
    rows = [(long, "2 files changed, +10 -3  /diff 3"), ("all together", "3 files changed  /diff all")]
    Show(paper, Colours(None, on=False), list, in_chat=True).table(rows)
    assert paper.text == (
        "turn 3, max, after the check `python   2 files changed, +10 -3  /diff 3\n"
        "-m pytest -q tests/shop` which is\n"
        "red: 漢字\n"
        "all together                           3 files changed  /diff all\n"
    )


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        (
            Answered(turn_id="1", member="ada", question="q", answer=Answer(verdict="yes"), by="lee"),
            "lee said yes to ada",
        ),
        (
            Answered(
                turn_id="1",
                member="ada",
                question="q",
                answer=Answer(verdict="no", reason="not today"),
                by="lee",
                about="git push",
            ),
            "lee said no to ada: git push (not today)",
        ),
        (
            Answered(
                turn_id="1",
                member="ada",
                question="q",
                answer=Answer(verdict="no"),
                because="nobody answered within 30 minutes",
            ),
            "ada: no, since nobody answered within 30 minutes",
        ),
    ],
)
def test_who_looks_on_reads_who_answered(answered: Answered, words: str) -> None:
    before = (began("1", "ada"), *does("1", TextDelta("I would push.")))

    page = shown(*before, replace(answered, was_waiting=True), *does("1", TextDelta(" Fine.")))

    assert f"\n  {words}\n" in page
    # That a rule says yes at once is not worth a line; what is refused is.
    assert (words in shown(*before, answered)) == (answered.answer.verdict == "no")
