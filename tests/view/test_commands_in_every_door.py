"""Every command with every form of argument does what it says, and every door takes every command.

What a command does is seen in one door, the plain chat. For the others it is enough that each passes every command on
as it was typed, and that one line of each kind has its effect there.
"""

import asyncio
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.tui.stage import Script, Stage
from tests.view.doors import DOORS, PATIENCE_SECONDS

from bullpen.cli.plain import typed_line as plain_commands
from bullpen.conversation.conversation import Conversation
from bullpen.tui import slash_commands as screen_commands
from bullpen.view import commands
from bullpen.view.commands import COMMANDS, SHOWN, Run
from bullpen.view.typed_answers import read_typed
from bullpen.web import shown_commands

HANGING: Script = [{"hang": True}]

# Each line that is typed, how the conversation is after it, and what the person is told.
Lines = list[tuple[str, str, str]]
CANCELLED = "Cancelled: {}. /retry {} runs it again."
BUSY: Lines = [
    (
        "[NEXT: max, sarah, ada] Go.",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits sarah:2 ada:3; task Build the login.",
        "",
    ),
    (
        "/drop 99",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits sarah:2 ada:3; task Build the login.",
        "Turn 99 is not waiting. /queue shows the queue.",
    ),
    (
        "/drop nobody",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits sarah:2 ada:3; task Build the login.",
        "Nobody here is called 'nobody'.",
    ),
    (
        "/drop -",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits sarah:2 ada:3; task Build the login.",
        "Nobody here is called '-'.",
    ),
    ("/DROP 2", "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3; task Build the login.", ""),
    (
        "/next",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3; task Build the login.",
        "/next needs a name, for example: /next sarah, or /next sarah & max",
    ),
    (
        "/next nobody",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3; task Build the login.",
        "Nobody here is called 'nobody'.",
    ),
    ("/Next Sarah", "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; task Build the login.", ""),
    (
        "/reorder",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; task Build the login.",
        "/reorder needs the numbers of waiting turns, for example: /reorder 5 3",
    ),
    (
        "/reorder max",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; task Build the login.",
        "/reorder needs the numbers of waiting turns, for example: /reorder 5 3",
    ),
    (
        "/task",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; task Build the login.",
        "The team's task: Build the login.",
    ),
    ("/task Ship it", "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; task Ship it", ""),
    (
        "/task",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; task Ship it",
        "The team's task: Ship it",
    ),
    ("/Task 14", "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; task 14", ""),
    ("/task -", "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4", ""),
    (
        "/task",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        "The team has no task. Set one: /task build the login",
    ),
    (
        "/rename",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        "This conversation is called: Go.",
    ),
    (
        "/Rename  The  login ",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; title The login",
        "This conversation is called: The login",
    ),
    (
        "/rename -",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        "This conversation is called: Go.",
    ),
    (
        "/raise always",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        "No budget is used up, or nearly so. /who shows how much is used; the team file sets budgets.",
    ),
    (
        "/forget",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        "/forget needs a name, for example: /forget max",
    ),
    (
        "/forget kim",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        "kim is a person.",
    ),
    (
        "/forget nobody",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        "Nobody here is called 'nobody'.",
    ),
    (
        "/forget sarah",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        "sarah has no session yet, so there is nothing to forget.",
    ),
    (
        "/forget ada",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4",
        (
            "ada has no memory of its own, so there is nothing to forget: gemini does not continue a session "
            "exactly as it was. It is given the conversation again in every turn."
        ),
    ),
    (
        "/Forget Max",
        "said 1 '[NEXT: max, sarah, ada] Go.'; runs max:1; waits ada:3 sarah:4; forgets max",
        "max begins a new session in its next turn, built from the conversation.",
    ),
    ("/etc/hosts is gone", "said 2 '/etc/hosts is gone'; runs max:1; waits ada:3 sarah:4 max:5; forgets max", ""),
    ("/", "said 3 '/'; runs max:1; waits ada:3 sarah:4 max:5 max:6; forgets max", ""),
    (" /cancel", "said 4 ' /cancel'; runs max:1; waits ada:3 sarah:4 max:5 max:6 max:7; forgets max", ""),
    ("/reorder 6 5 6", "said 4 ' /cancel'; runs max:1; waits max:6 max:5 ada:3 sarah:4 max:7; forgets max", ""),
    (
        "/retrry",
        "said 4 ' /cancel'; runs max:1; waits max:6 max:5 ada:3 sarah:4 max:7; forgets max",
        (
            "There is no command /retrry. Did you mean /retry or /reorder? /help all lists them. "
            "Start with a space to send it as a message."
        ),
    ),
    (
        "/nonsense 14",
        "said 4 ' /cancel'; runs max:1; waits max:6 max:5 ada:3 sarah:4 max:7; forgets max",
        "There is no command /nonsense. /help all lists them. Start with a space to send it as a message.",
    ),
    ("/drop 5 6", "said 4 ' /cancel'; runs max:1; waits ada:3 sarah:4 max:7; forgets max", ""),
    ("/drop sarah, 3", "said 4 ' /cancel'; runs max:1; waits max:7; forgets max", ""),
    ("/drop 7", "said 4 ' /cancel'; runs max:1; forgets max", ""),
    ("/drop ada", "said 4 ' /cancel'; runs max:1; forgets max", "No turn of ada is waiting."),
    ("/drop all", "said 4 ' /cancel'; runs max:1; forgets max", "No turn is waiting."),
    ("/drop", "said 4 ' /cancel'; runs max:1; forgets max", "No turn is waiting."),
    ("/retry", "said 4 ' /cancel'; runs max:1; forgets max", "No turn is waiting for a decision."),
    ("/skip 1", "said 4 ' /cancel'; runs max:1; forgets max", "Turn 1 is not waiting for a decision."),
    ("/cancel 99", "said 4 ' /cancel'; runs max:1; forgets max", "Turn 99 is not running."),
    ("/cancel sarah", "said 4 ' /cancel'; runs max:1; forgets max", "sarah is not working."),
    ("/cancel -", "said 4 ' /cancel'; runs max:1; forgets max", "Nobody here is called '-'."),
    ("/cancel max & nobody", "said 4 ' /cancel'; runs max:1; forgets max", "Nobody here is called 'nobody'."),
    ("/CANCEL Max", "said 4 ' /cancel'; undecided max:1; forgets max", CANCELLED.format("max", 1)),
    ("/go", "said 4 ' /cancel'; undecided max:1; forgets max", ""),
    ("/continue now", "said 4 ' /cancel'; undecided max:1; forgets max", ""),
    (
        "/undo 99",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "Turn 99 changed no files that bullpen knows of, so there is nothing to undo.",
    ),
    (
        "/undo 1 2",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "One turn at a time, for example: /undo 14, or /undo for the last one that changed files",
    ),
    ("/redo", "said 4 ' /cancel'; undecided max:1; forgets max", "There is nothing to redo: nothing was taken back."),
    (
        "/sumup",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "There is nothing to sum up: agents are shown all 4 messages, or have a summary of the rest.",
    ),
    ("/sumup nobody", "said 4 ' /cancel'; undecided max:1; forgets max", "Nobody here is called 'nobody'."),
    ("/Drop-Summary", "said 4 ' /cancel'; undecided max:1; forgets max", "There is no summary to drop."),
    ("/drop-summary 7", "said 4 ' /cancel'; undecided max:1; forgets max", "There is no summary #7 to drop."),
    ("/again", "said 4 ' /cancel'; undecided max:1; forgets max", "There is no open review."),
    ("/end-review max", "said 4 ' /cancel'; undecided max:1; forgets max", "There is no open review with 'max'."),
    (
        "/drop-summary max",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "/drop-summary takes the number of a summary, for example: /drop-summary 41",
    ),
    (
        "/Rewind",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "/rewind needs the number of a turn, for example: /rewind 14",
    ),
    (
        "/rewind 99",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "bullpen does not know what the files were after turn 99: it did not look at them.",
    ),
    (
        "/take",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "There is no conflict to decide about. /queue shows what needs a decision.",
    ),
    (
        "/keep 1",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "There is no conflict of turn 1 to decide about. /queue shows what needs a decision.",
    ),
    (
        "/resolve",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "/resolve needs one name, for example: /resolve max, or /resolve max 14 for turn 14",
    ),
    (
        "/resolve max",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "There is no conflict to decide about. /queue shows what needs a decision.",
    ),
    (
        "/apart",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "There is no conflict to decide about. /queue shows what needs a decision.",
    ),
    ("/merge", "said 4 ' /cancel'; undecided max:1; forgets max", "/merge needs a name, for example: /merge max"),
    (
        "/merge max",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "There is nothing to merge: everything that max did is in the shared folder.",
    ),
    (
        "/pick",
        "said 4 ' /cancel'; undecided max:1; forgets max",
        "/pick needs one name, for example: /pick max, or /pick 14 for what turn 14 did",
    ),
    ("/pick max", "said 4 ' /cancel'; undecided max:1; forgets max", "There is no result of 'max' to pick or drop."),
    ("/discard", "said 4 ' /cancel'; undecided max:1; forgets max", "There is nothing to drop."),
    ("/dismiss", "said 4 ' /cancel'; undecided max:1; forgets max", "There is no missed hand-over to dismiss."),
]
STOPPED: Lines = [
    ("Go.", "said 1 'Go.'; runs max:1; task Build the login.", ""),
    ("/cancel", "said 1 'Go.'; undecided max:1; task Build the login.", CANCELLED.format("max", 1)),
    (
        "/retry 9",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "Turn 9 is not waiting for a decision.",
    ),
    (
        "/retry sarah",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "No turn of sarah is waiting for a decision.",
    ),
    (
        "/retry -",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "Nobody here is called '-'.",
    ),
    (
        "/hand",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "/hand needs one name, for example: /hand max, or /hand max 14 for turn 14",
    ),
    (
        "/hand -",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "Nobody here is called '-'.",
    ),
    (
        "/hand max & sarah",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "/hand needs one name, for example: /hand max, or /hand max 14 for turn 14",
    ),
    (
        "/hand sarah 9",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "Turn 9 is not waiting for a decision.",
    ),
    (
        "/hand kim",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "kim is a person.",
    ),
    ("/retry", "said 1 'Go.'; runs max:2; task Build the login.", ""),
    ("/cancel 2", "said 1 'Go.'; undecided max:2; task Build the login.", CANCELLED.format("max", 2)),
    ("/skip max", "said 1 'Go.'; task Build the login.", ""),
    ("/continue", "said 1 'Go.'; task Build the login.", ""),
    ("/next max", "said 1 'Go.'; runs max:3; task Build the login.", ""),
    ("/cancel 3", "said 1 'Go.'; undecided max:3; task Build the login.", CANCELLED.format("max", 3)),
    ("/hand Sarah 3", "said 1 'Go.'; runs sarah:4; task Build the login.", ""),
    ("/cancel", "said 1 'Go.'; undecided sarah:4; task Build the login.", CANCELLED.format("sarah", 4)),
    ("/hand-over ada", "said 1 'Go.'; runs ada:5; task Build the login.", ""),
    ("/cancel 5", "said 1 'Go.'; undecided ada:5; task Build the login.", CANCELLED.format("ada", 5)),
    ("/retry 5", "said 1 'Go.'; runs ada:6; task Build the login.", ""),
    (" Again.", "said 2 ' Again.'; runs ada:6; waits max:7; task Build the login.", ""),
    (
        "/note",
        "said 2 ' Again.'; runs ada:6; waits max:7; task Build the login.",
        "/note needs a text, for example: /note the deadline is Friday",
    ),
    (
        "/Note By Friday. [NEXT: sarah]",
        "said 3 'By Friday. [NEXT: sarah]'; runs ada:6; waits max:7; task Build the login.",
        "",
    ),
    ("@sarah?", "said 4 '@sarah?'; runs ada:6; waits max:7 sarah:8; task Build the login.", ""),
    ("@sarha?", "said 5 '@sarha?'; runs ada:6; waits max:7 sarah:8; task Build the login.", ""),
    ("/next all", "said 5 '@sarha?'; runs ada:6; waits max:7 sarah:8 max:9 sarah:10 ada:11; task Build the login.", ""),
]
ASKS: Script = [{"say": "Do it. [NEXT: ada]"}]
ASKED: Lines = [
    ("Go.", "said 2 'Do it. [NEXT: ada]'; waits ada:2; needs a yes ada:2; task Build the login.", ""),
    (
        "/allow 9",
        "said 2 'Do it. [NEXT: ada]'; waits ada:2; needs a yes ada:2; task Build the login.",
        "Turn 9 is not waiting for a decision.",
    ),
    (
        "/allow max",
        "said 2 'Do it. [NEXT: ada]'; waits ada:2; needs a yes ada:2; task Build the login.",
        "No turn of max is waiting for a decision.",
    ),
    (
        "/dismiss 9",
        "said 2 'Do it. [NEXT: ada]'; waits ada:2; needs a yes ada:2; task Build the login.",
        "Turn 9 is not waiting for a decision.",
    ),
    ("/continue", "said 2 'Do it. [NEXT: ada]'; waits ada:2; needs a yes ada:2; task Build the login.", ""),
    ("/dismiss", "said 2 'Do it. [NEXT: ada]'; task Build the login.", ""),
    ("/allow", "said 2 'Do it. [NEXT: ada]'; task Build the login.", "No turn is waiting for a decision."),
    ("Go.", "said 4 'Do it. [NEXT: ada]'; waits ada:4; needs a yes ada:4; task Build the login.", ""),
    (
        "Go.",
        "said 6 'Do it. [NEXT: ada]'; waits ada:4 ada:6; needs a yes ada:4 ada:6; task Build the login.",
        "",
    ),
    (
        "Go.",
        "said 8 'Do it. [NEXT: ada]'; waits ada:4 ada:6 ada:8; needs a yes ada:4 ada:6 ada:8; task Build the login.",
        "",
    ),
    (
        "/dismiss 4",
        "said 8 'Do it. [NEXT: ada]'; waits ada:6 ada:8; needs a yes ada:6 ada:8; task Build the login.",
        "",
    ),
    ("/allow", "said 8 'Do it. [NEXT: ada]'; runs ada:8; waits ada:6; needs a yes ada:6; task Build the login.", ""),
    ("/ALLOW Ada", "said 8 'Do it. [NEXT: ada]'; runs ada:8; waits ada:6; task Build the login.", ""),
]


INSTEAD = "/instead needs a command, for example: /instead pytest -q tests"
TELL = "/tell needs a name and words, for example: /tell max look at the tests, too"
NOT_WORKING = "ada is not working now. Say it instead: @ada …"
QUESTIONS: Lines = [
    ("Go.", "said 1 'Go.'; runs max:1; asks touch a; task Build the login.", ""),
    ("/yes 9", "said 1 'Go.'; runs max:1; asks touch a; task Build the login.", "Turn 9 does not wait for an answer."),
    ("/yes", "said 1 'Go.'; runs max:1; asks touch b; task Build the login.", ""),
    ("/no not today", "said 1 'Go.'; runs max:1; asks touch c; task Build the login.", ""),
    ("/instead", "said 1 'Go.'; runs max:1; asks touch c; task Build the login.", INSTEAD),
    ("/instead touch z", "said 1 'Go.'; runs max:1; asks touch d; task Build the login.", ""),
    ("/tell max", "said 1 'Go.'; runs max:1; asks touch d; task Build the login.", TELL),
    ("/tell ada hi", "said 1 'Go.'; runs max:1; asks touch d; task Build the login.", NOT_WORKING),
    ("/stop", "said 1 'Go.'; undecided max:1; task Build the login.", ""),
    (
        "/no",
        "said 1 'Go.'; undecided max:1; task Build the login.",
        "No agent asks anything now.",
    ),
]

# A message, an answer, a command that changes something, one that says something, one that is refused, one that is
# about files, and none.
ASKING = "runs max:1; asks touch b; task Build the login."
KINDS: Lines = [
    ("Go.", "said 1 'Go.'; runs max:1; asks touch a; task Build the login.", ""),
    ("/yes", f"said 1 'Go.'; {ASKING}", ""),
    ("/note By Friday.", f"said 2 'By Friday.'; {ASKING}", ""),
    ("/task", f"said 2 'By Friday.'; {ASKING}", "The team's task: Build the login."),
    ("/drop 99", f"said 2 'By Friday.'; {ASKING}", "Turn 99 is not waiting. /queue shows the queue."),
    (
        "/undo 99",
        f"said 2 'By Friday.'; {ASKING}",
        "Turn 99 changed no files that bullpen knows of, so there is nothing to undo.",
    ),
    (
        "/nonsense 14",
        f"said 2 'By Friday.'; {ASKING}",
        "There is no command /nonsense. /help all lists them. Start with a space to send it as a message.",
    ),
    (" /stop", f"said 3 ' /stop'; runs max:1; waits max:2; {ASKING.partition('; ')[2]}", ""),
]

# Every command that changes something, with an argument if it takes one.
EXAMPLES = (
    "/next max",
    "/note By Friday.",
    "/cancel max",
    "/continue",
    "/raise always max",
    "/retry 1",
    "/skip max",
    "/hand max 1",
    "/drop 3 4",
    "/reorder 5 3",
    "/allow 2",
    "/yes conversation",
    "/no not today",
    "/stop 1",
    "/instead touch z",
    "/tell max look",
    "/dismiss 2",
    "/task Ship it",
    "/rename The login",
    "/forget max",
    "/sumup max",
    "/drop-summary 41",
    "/take 1",
    "/keep",
    "/resolve max 14",
    "/apart 1",
    "/merge max",
    "/pick max",
    "/discard all",
    "/again max",
    "/end-review",
    "/undo 1",
    "/redo",
    "/rewind 14",
)
NAMES = [text.split()[0].removeprefix("/") for text in EXAMPLES]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return Stage(tmp_path)


async def settled(conversation: Conversation, hanging: Collection[str]) -> None:
    """Wait until a turn is running that will not end, or nothing can begin."""
    quiet, running = conversation._journal.quiet, conversation.running
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not quiet.is_set() and not any(
            one.is_recorded and one.turn.member in hanging for one in running.values()
        ):
            await asyncio.sleep(0.005)


async def asking(conversation: Conversation) -> None:
    """Wait until an agent asks something, or nothing runs."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not conversation.approvals.open and not conversation._journal.quiet.is_set():
            await asyncio.sleep(0.005)


async def state_of(conversation: Conversation) -> str:
    """Return everything that a command could change, on one line."""
    newest = await conversation.messages(limit=1)
    parts = {
        "said": f"{conversation.message_count} {newest[0].message.content!r}" if newest else "",
        "runs": " ".join(f"{one.turn.member}:{one.turn.id}" for one in conversation.running.values()),
        "waits": " ".join(f"{turn.member}:{turn.id}" for turn in conversation.waiting),
        "needs a yes": " ".join(f"{turn.member}:{turn.id}" for turn in conversation.unallowed),
        "undecided": " ".join(f"{turn.member}:{turn.id}" for turn in conversation.undecided),
        "asks": " ".join(asked.question.command for asked in conversation.approvals.open.values()),
        "task": conversation.team_task or "",
        "title": conversation.title or "",
        "forgets": " ".join(conversation.progress.forgotten),
        "paused": conversation.paused or "",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items() if value)


async def played(
    door: str,
    team: Path,
    folder: Path,
    texts: list[str],
    hanging: Collection[str] = ("max", "sarah", "ada"),
    *,
    asks: bool = False,
) -> Lines:
    async with DOORS[door](team, folder) as (conversation, send):
        lines = []
        for text in texts:
            told = await send(text)
            await (asking(conversation) if asks else settled(conversation, hanging))
            lines.append((text, await state_of(conversation), told))
        return lines


@pytest.mark.parametrize("lines", [BUSY, STOPPED], ids=["busy", "stopped"])
def test_a_command_does_what_it_says(lines: Lines, stage: Stage) -> None:
    # They may edit one folder, so one works at a time.
    stage.agent("max", HANGING, more='permissions = "edit"')
    stage.agent("sarah", HANGING, cli="codex", more='permissions = "edit"')
    stage.agent("ada", HANGING, cli="gemini", more='permissions = "edit"')

    seen = asyncio.run(played("plain chat", stage.team, stage.folder, [text for text, *_ in lines]))

    assert seen == lines


def test_a_hand_over_is_allowed_or_dismissed(stage: Stage) -> None:
    stage.agent("max", ASKS)
    stage.agent("ada", HANGING, cli="gemini", more='permissions = "full"')

    seen = asyncio.run(played("plain chat", stage.team, stage.folder, [text for text, *_ in ASKED], hanging=("ada",)))

    assert seen == ASKED


def test_what_an_agent_asks_is_answered(stage: Stage) -> None:
    stage.agent("max", [{"ask": f"touch {name}"} for name in "abcd"], more='permissions = "ask"')
    stage.agent("ada", HANGING, cli="gemini")
    texts = [text for text, *_ in QUESTIONS]

    seen = asyncio.run(played("plain chat", stage.team, stage.folder, texts, hanging=(), asks=True))

    assert seen == QUESTIONS


@pytest.mark.parametrize("door", DOORS)
def test_one_line_of_each_kind_has_its_effect_in_every_door(door: str, stage: Stage) -> None:
    stage.agent("max", [{"ask": f"touch {name}"} for name in "ab"], more='permissions = "ask"')
    texts = [text for text, *_ in KINDS]

    seen = asyncio.run(played(door, stage.team, stage.folder, texts, hanging=(), asks=True))

    assert seen == KINDS


@pytest.mark.parametrize("door", DOORS)
def test_every_door_passes_every_command_on_as_it_was_typed(
    door: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.agent("max", HANGING)
    done: list[tuple[str, Any, str | None]] = []

    def noting(name: str) -> Run:
        async def run(_: Conversation, given: Any, person: str | None) -> str:
            done.append((name, given, person))
            return ""

        return run

    noted = {name: replace(one, run=one.run and noting(one.name)) for name, one in commands._BY_NAME.items()}
    monkeypatch.setattr(commands, "_BY_NAME", noted)

    async def story() -> tuple[list[object], str]:
        async with DOORS[door](stage.team, stage.folder) as (conversation, send):
            for text in EXAMPLES:
                assert await send(text) == ""
            typed = [read_typed(text, conversation.team, ()) for text in EXAMPLES]
            return [one and one.given for one in typed], await send("/who")

    given, shown = asyncio.run(story())

    assert [name for name, *_ in done] == NAMES
    assert [what for _, what, _ in done] == given
    assert {who for *_, who in done} <= {None, "kim"}
    assert "max" in shown


def test_every_command_is_typed_above() -> None:
    lines = (*BUSY, *STOPPED, *ASKED, *QUESTIONS)
    typed = {text.split()[0].lower().removeprefix("/") for text, *_ in lines if text.startswith("/")}
    names = set(COMMANDS) - {command.name for command in SHOWN}

    assert names <= typed
    assert set(NAMES) == names


def test_every_door_shows_what_a_command_shows() -> None:
    names = {command.name for command in SHOWN}

    assert set(plain_commands.HANDLERS) == names
    assert set(screen_commands.HANDLERS) >= names
    assert {*shown_commands.LINES, *shown_commands.ADDRESSES} == names


def test_one_key_answers_in_the_plain_chat(stage: Stage) -> None:
    stage.agent("max", [{"ask": f"touch {name}"} for name in "abc"], more='permissions = "ask"')

    seen = asyncio.run(played("plain chat", stage.team, stage.folder, ["Go.", "y", "n"], hanging=(), asks=True))

    assert [state.partition("asks ")[2] for _, state, _ in seen] == [
        f"touch {name}; task Build the login." for name in "abc"
    ]
