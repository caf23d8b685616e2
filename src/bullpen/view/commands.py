"""What a person can type after a slash: one table and one reader for every door.

A command either changes the conversation, the same way wherever it is typed, or shows something, which each door does
in its own way. Those that change something are also the actions of the API.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError, UnknownCommand
from bullpen.team.team import Team
from bullpen.text.names import nearest
from bullpen.view import command_effects, summaries
from bullpen.view.choices import Choice
from bullpen.view.command_arguments import (
    Leftover,
    Member,
    Names,
    Nothing,
    OneAnswer,
    OneTurn,
    Raise,
    Reviewed,
    Task,
    Text,
    ThatTurn,
    Title,
    Told,
    Turns,
    Undone,
    Which,
    read_answer,
    read_conflict,
    read_forget,
    read_hand,
    read_instead,
    read_leftover,
    read_member,
    read_merge,
    read_names,
    read_note,
    read_one_turn,
    read_pick,
    read_raise,
    read_refusal,
    read_resolve,
    read_reviewed,
    read_task,
    read_text,
    read_that_turn,
    read_title,
    read_told,
    read_turns,
    read_undone,
    read_which,
    read_who,
    read_words,
)

Run = Callable[[Conversation, Any, str | None], Awaitable[str]]
"""Does it, for a person; returns what to tell them, if the events do not say it all."""


class Command(Struct, frozen=True, kw_only=True):
    """One command."""

    name: str
    argument: str = ""
    """What it takes, as help writes it."""
    purpose: str
    example: str = ""
    takes: type[Struct] = Nothing
    read: Callable[[str, Team], Struct] = lambda _text, _team: Nothing()
    run: Run | None = None
    """None: it only shows something, and the door knows how."""
    action: str = ""
    """Its name in the API, if that is another one."""
    aliases: tuple[str, ...] = ()


class Typed(Struct, frozen=True):
    """A command as somebody typed it."""

    command: Command
    given: Any


_COMMAND = re.compile(r"/([A-Za-z][A-Za-z-]*)(?:\s+(.*))?", re.DOTALL)


def read_command(text: str, team: Team, more: Iterable[Command] = ()) -> Typed | None:
    """Return the command that a text is, or None if it is a message: "/etc/hosts is gone" is. `more` are the door's."""
    found = _COMMAND.fullmatch(text.rstrip())
    if found is None:
        return None
    known = {**_BY_NAME, **{command.name: command for command in more}}
    command = known.get(found[1].lower())
    if command is None:
        raise UnknownCommand(found[1], nearest(found[1].lower(), known))
    return Typed(command, command.read((found[2] or "").strip(), team))


def is_command_line(text: str) -> bool:
    """Return whether a text is a command or begins like one, and not a message."""
    return _COMMAND.fullmatch(text.rstrip()) is not None


def is_command(word: str, more: Iterable[Command] = ()) -> bool:
    """Return whether a word after a slash is a command."""
    return word.lower() in _BY_NAME or any(word.lower() == command.name for command in more)


async def run_command(typed: Typed, conversation: Conversation, person: str | None = None) -> str:
    """Change the conversation as a command says; return what to tell the person, if there is more to tell."""
    if typed.command.run is None:
        raise BullpenError(f"/{typed.command.name} shows something, and that is not possible here.")
    speaker = None if person is None else conversation.person(person).name
    return await typed.command.run(conversation, typed.given, speaker)


def typed_choice(choice: Choice) -> Typed:
    """Return a choice that a person made as the command that it is."""
    command = ACTIONS[choice.action]
    return Typed(command, read_form(command.takes, dict(choice.given)))


def read_form(kind: type[Struct], values: dict[str, Any]) -> Struct:
    """Return the values of a form as what a command takes; ValidationError says what is wrong."""
    filled = {name: value for name, value in values.items() if value not in ("", [])}
    return msgspec.convert(filled, kind, strict=False)


_ALL = (
    Command(
        name="next",
        argument="NAMES",
        purpose="ask members to answer the last message",
        example="/next max, or /next max & sarah",
        takes=Names,
        read=read_names,
        run=command_effects.ask,
        action="ask",
        aliases=("ask",),
    ),
    Command(
        name="note",
        argument="TEXT",
        purpose="store a note for everyone to read; it asks nobody",
        example="/note the deadline is Friday",
        takes=Text,
        read=read_note,
        run=command_effects.add_note,
    ),
    Command(
        name="queue",
        purpose="show the queue: who is working, who is waiting, and what needs a decision",
        aliases=("status",),
    ),
    Command(
        name="cancel",
        argument="[TURN | NAME]",
        purpose="end running turns: all, one, or a member's; /retry runs one again; a queue waits for /continue",
        takes=Which,
        read=read_which,
        run=command_effects.cancel,
    ),
    Command(
        name="continue",
        purpose="continue after a pause",
        run=command_effects.continue_turns,
        aliases=("go",),
    ),
    Command(
        name="raise",
        argument="[once | always] [NAME]",
        purpose="raise a budget that is used up: by the same amount again, or for good in this conversation",
        example="/raise once, or /raise always max",
        takes=Raise,
        read=read_raise,
        run=command_effects.raise_budgets,
    ),
    Command(
        name="retry",
        argument="[TURN | NAME]",
        purpose="rerun a turn that ended without a reply",
        takes=Which,
        read=read_which,
        run=command_effects.retry,
    ),
    Command(
        name="skip",
        argument="[TURN | NAME]",
        purpose="continue without a turn that ended without a reply",
        takes=Which,
        read=read_which,
        run=command_effects.skip,
    ),
    Command(
        name="hand",
        argument="NAME [TURN]",
        purpose="let another agent answer in place of one that did not",
        example="/hand max",
        takes=Member,
        read=read_hand,
        run=command_effects.hand_over,
        action="hand-over",
        aliases=("hand-over",),
    ),
    Command(
        name="drop",
        argument="[TURN | NAME]",
        purpose="remove waiting turns: all, some, or a member's",
        example="/drop max, or /drop 3 4",
        takes=Which,
        read=read_which,
        run=command_effects.drop,
    ),
    Command(
        name="reorder",
        argument="TURNS",
        purpose="move waiting turns to the front, in this order",
        example="/reorder 5 3",
        takes=Turns,
        read=read_turns,
        run=command_effects.reorder,
    ),
    Command(
        name="allow",
        argument="[TURN | NAME]",
        purpose="say yes to a hand-over to a member with full permissions, or keep files that make programs run",
        takes=Which,
        read=read_which,
        run=command_effects.allow,
    ),
    Command(
        name="yes",
        argument="[turn | conversation | always] [TURN]",
        purpose="let a running agent do what it asks for: once, or whenever it asks for exactly the same",
        example="/yes, or /yes conversation",
        takes=OneAnswer,
        read=read_answer,
        run=command_effects.say_yes,
    ),
    Command(
        name="no",
        argument="[TURN] [REASON]",
        purpose="do not let a running agent do what it asks for, and tell it why",
        example="/no use the test database",
        takes=OneAnswer,
        read=read_refusal,
        run=command_effects.say_no,
    ),
    Command(
        name="stop",
        argument="[TURN] [REASON]",
        purpose="do not let a running agent do what it asks for, and end its turn",
        takes=OneAnswer,
        read=read_refusal,
        run=command_effects.say_stop,
    ),
    Command(
        name="instead",
        argument="COMMAND",
        purpose="let a running agent run another command than the one it asks for, where its CLI can",
        example="/instead pytest -q tests",
        takes=OneAnswer,
        read=read_instead,
        run=command_effects.say_yes,
    ),
    Command(
        name="tell",
        argument="NAME TEXT",
        purpose="give a working agent words in this turn; if it cannot take any, they are queued for its next",
        example="/tell max look at the tests, too",
        takes=Told,
        read=read_told,
        run=command_effects.tell,
    ),
    Command(
        name="dismiss",
        argument="[TURN | NAME]",
        purpose="say no to a hand-over or to what an undo asks, or put files back that make programs run",
        takes=Which,
        read=read_which,
        run=command_effects.dismiss,
    ),
    Command(
        name="task",
        argument="[TEXT | -]",
        purpose="show the team's task, set it, or remove it with -",
        example="/task build the login",
        takes=Task,
        read=read_task,
        run=command_effects.set_task,
    ),
    Command(
        name="rename",
        argument="[TITLE | -]",
        purpose="show what the conversation is called, rename it, or remove its title with -",
        example="/rename the login",
        takes=Title,
        read=read_title,
        run=command_effects.rename,
    ),
    Command(
        name="forget",
        argument="NAME",
        purpose="let an agent's next turn begin a new session, built from the conversation",
        example="/forget max",
        takes=Member,
        read=read_forget,
        run=command_effects.forget,
    ),
    Command(
        name="sumup",
        argument="[NAME]",
        purpose="let an agent sum up what agents are no longer shown",
        takes=summaries.Summarizer,
        read=summaries.read_summarizer,
        run=summaries.sum_up,
        action="sum-up",
        aliases=("sum-up", "compact"),
    ),
    Command(name="summaries", purpose="show what was summed up, and the summary that agents are given"),
    Command(
        name="drop-summary",
        argument="[NUMBER]",
        purpose="take a summary out of all prompts; without a number, the one that is used",
        example="/drop-summary 41",
        takes=summaries.Numbered,
        read=summaries.read_number,
        run=summaries.drop_summary,
    ),
    Command(
        name="who",
        purpose="show who is in the team, with which model, and what each agent remembers and has used",
        read=read_who,
        aliases=("cost", "usage", "model", "agents"),
    ),
    Command(
        name="open",
        argument="[WORDS]",
        purpose="open another conversation of this folder, or a new one; this one is kept",
        takes=Text,
        read=read_text,
        aliases=("sessions", "resume"),
    ),
    Command(name="new", purpose="begin a new conversation with the same team; this one is kept", aliases=("clear",)),
    Command(
        name="prompt",
        argument="NAME",
        purpose="show what an agent would be given now, word for word",
        takes=Member,
        read=read_member,
    ),
    Command(
        name="explain",
        argument="[TURN]",
        purpose="show what an agent was given in a turn; without a number, in the last one",
        takes=Text,
        read=read_text,
    ),
    Command(
        name="diff",
        argument="[TURN | A..B]",
        purpose="show what a turn changed in the files; without a number, the latest that did; all: everything as one",
        example="/diff 14",
        takes=Text,
        read=read_text,
    ),
    Command(
        name="changes", purpose="show everything that was changed in the files: per turn, per member, all together"
    ),
    Command(
        name="checks",
        argument="[TURN]",
        purpose="show what checks said after a turn, with their output; without a number, after the latest",
        example="/checks 14",
        takes=Text,
        read=read_text,
    ),
    Command(
        name="take",
        argument="[TURN]",
        purpose="in a conflict or collision, take what a turn made of the files; without a number, the last conflict's",
        example="/take 14",
        takes=OneTurn,
        read=read_conflict,
        run=command_effects.take,
    ),
    Command(
        name="keep",
        argument="[TURN]",
        purpose="in a conflict, keep the versions of the shared folder; all else that the agent did is brought there",
        example="/keep 14",
        takes=OneTurn,
        read=read_conflict,
        run=command_effects.keep,
    ),
    Command(
        name="resolve",
        argument="NAME [TURN]",
        purpose="put both versions into the files of a conflict, and let an agent resolve it",
        example="/resolve max",
        takes=Member,
        read=read_resolve,
        run=command_effects.resolve,
    ),
    Command(
        name="apart",
        argument="[TURN]",
        purpose="leave the work of a conflict in the agent's own workspace",
        example="/apart 14",
        takes=OneTurn,
        read=read_conflict,
        run=command_effects.apart,
    ),
    Command(
        name="merge",
        argument="NAME",
        purpose="bring what an agent did in its own workspace into the shared folder, if it is not there yet",
        example="/merge max",
        takes=Member,
        read=read_merge,
        run=command_effects.merge,
    ),
    Command(
        name="compare",
        argument="[TURN]",
        purpose="show the results of best of several side by side",
        takes=Text,
        read=read_text,
    ),
    Command(
        name="pick",
        argument="NAME|TURN",
        purpose="of several results, bring one into the shared folder",
        example="/pick max",
        takes=Member,
        read=read_pick,
        run=command_effects.pick,
    ),
    Command(
        name="discard",
        argument="NAME|TURN|all",
        purpose="drop one of several results that was not picked, or all that are left; their worktrees are removed",
        example="/discard max",
        takes=Leftover,
        read=read_leftover,
        run=command_effects.discard,
    ),
    Command(
        name="again",
        argument="[NAME]",
        purpose="let a review continue for one more round, when it has none left or its verdict is not clear",
        takes=Reviewed,
        read=read_reviewed,
        run=command_effects.continue_review,
    ),
    Command(
        name="end-review",
        argument="[NAME]",
        purpose="end a review without an approval",
        takes=Reviewed,
        read=read_reviewed,
        run=command_effects.end_review,
    ),
    Command(
        name="undo",
        argument="[TURN] [all]",
        purpose="take back what a turn changed in the files; without a number, the last one that changed any; "
        "all: also what a person perhaps changed meanwhile, which is asked about otherwise",
        example="/undo 14",
        takes=Undone,
        read=read_undone,
        run=command_effects.undo,
    ),
    Command(
        name="redo",
        argument="[TURN]",
        purpose="bring back what was taken back; without a number, what was taken back last",
        example="/redo 14",
        takes=OneTurn,
        read=read_one_turn,
        run=command_effects.redo,
    ),
    Command(
        name="rewind",
        argument="TURN",
        purpose="put the files into the state that they had after a turn",
        example="/rewind 14",
        takes=ThatTurn,
        read=read_that_turn,
        run=command_effects.rewind,
    ),
    Command(
        name="search",
        argument="WORDS",
        purpose="find what was said",
        takes=Text,
        read=read_words,
    ),
    Command(
        name="export",
        argument="[FILE]",
        purpose="write the conversation to a file: .md, .html or .json",
        takes=Text,
        read=read_text,
    ),
    Command(
        name="help",
        argument="[all]",
        purpose="show what you can do now, and the commands that matter; all: every command",
        takes=Text,
        read=read_text,
    ),
    Command(name="quit", purpose="leave; everything is stored", aliases=("exit",)),
)

COMMANDS = {command.name: command for command in _ALL}
ACTIONS = {command.action or command.name: command for command in _ALL if command.run is not None}
"""The commands that change something, by their names in the API."""
SHOWN = tuple(command for command in _ALL if command.run is None)
"""The commands that show something, which every door must know how to do."""
_BY_NAME = COMMANDS | {alias: command for command in _ALL for alias in command.aliases}
