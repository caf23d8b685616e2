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
from bullpen.errors import BullpenError, NothingRuns, NothingToDecide, UnknownCommand
from bullpen.team.team import Team
from bullpen.text.names import nearest, normalized
from bullpen.view.command_arguments import Member, Names, Nothing, Task, Text, Title, Turns, Which, read_which
from bullpen.view.listing import title_of, typed_title

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


REMOVE = "-"
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


def read_form(kind: type[Struct], values: dict[str, Any]) -> Struct:
    """Return the values of a form as what a command takes; ValidationError says what is wrong."""
    filled = {name: value for name, value in values.items() if value not in ("", [])}
    return msgspec.convert(filled, kind, strict=False)


def help_lines(commands: Iterable[Command]) -> Iterable[tuple[str, str]]:
    """Yield every command with what it takes, and what it is for."""
    for command in commands:
        example = f", for example {command.example}" if command.example else ""
        yield f"/{command.name} {command.argument}".rstrip(), f"{command.purpose}{example}"


def command_table(commands: Iterable[Command]) -> str:
    """Return the commands as a table in Markdown, for the docs."""
    # A bar would end the cell of a table.
    rows = [
        f"| `{typed}` | {words} |" for typed, words in ((a.replace("|", "\\|"), b) for a, b in help_lines(commands))
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *rows, ""])


# What the commands do


async def _note(conversation: Conversation, given: Text, person: str | None) -> str:
    await conversation.note(given.text, sender=person)
    return ""


async def _ask(conversation: Conversation, given: Names, person: str | None) -> str:
    await conversation.ask(given.names, by=person)
    return ""


async def _cancel(conversation: Conversation, given: Which, person: str | None) -> str:
    if given.is_empty:
        await conversation.cancel(by=person)
        return ""
    running = {running.turn.id: running.turn.member for running in conversation.running.values()}
    members = [conversation.member(name).name for name in given.all_members]
    idle = [name for name in members if name not in running.values()]
    if idle:
        raise NothingRuns(members=idle)
    turns = [turn for turn, member in running.items() if member in members]
    await conversation.cancel(*given.all_turns, *turns, by=person)
    return ""


async def _continue(conversation: Conversation, _: Nothing, person: str | None) -> str:
    await conversation.continue_turns(by=person)
    return ""


async def _drop(conversation: Conversation, given: Which, person: str | None) -> str:
    if await conversation.drop(members=given.all_members, turn_ids=given.all_turns, by=person):
        return ""
    members = ", ".join(conversation.member(name).name for name in given.all_members)
    return f"No turn of {members} is waiting." if members else "No turn is waiting."


async def _allow(conversation: Conversation, given: Which, person: str | None) -> str:
    await conversation.allow(*_meant(conversation, given, _unallowed(conversation)), by=person)
    return ""


async def _retry(conversation: Conversation, given: Which, person: str | None) -> str:
    # Each goes before all others, so the last one goes first.
    for turn in reversed(_meant(conversation, given, _undecided(conversation))):
        await conversation.retry(turn, by=person)
    return ""


async def _skip(conversation: Conversation, given: Which, person: str | None) -> str:
    for turn in _meant(conversation, given, _undecided(conversation)):
        await conversation.skip(turn, by=person)
    return ""


def _undecided(conversation: Conversation) -> dict[str, str]:
    """Return whose turns ended without a reply and wait for a decision, by turn."""
    return {turn.id: turn.member for turn in conversation.undecided}


def _unallowed(conversation: Conversation) -> dict[str, str]:
    """Return whose turns begin only if a person allows them, by turn."""
    return {turn.id: turn.member for turn in conversation.unallowed}


def _meant(conversation: Conversation, given: Which, known: dict[str, str]) -> list[str]:
    """Return the turns that are meant, all of them known; without any, the latest."""
    if given.is_empty and not known:
        raise NothingToDecide(None)
    if given.is_empty:
        return list(known) if given.everything else list(known)[-1:]
    # Who has left the team can still have a turn to decide about.
    names = {normalized(member): member for member in known.values()}
    members = [names.get(normalized(name)) or conversation.member(name).name for name in given.all_members]
    for turn in given.all_turns:
        if turn not in known:
            raise NothingToDecide(turn)
    for name in members:
        if name not in known.values():
            raise BullpenError(f"No turn of {name} is waiting for a decision.")
    return list(dict.fromkeys([*given.all_turns, *(turn for turn, member in known.items() if member in members)]))


async def _hand_over(conversation: Conversation, given: Member, person: str | None) -> str:
    await conversation.hand_over(given.member, given.turn, by=person)
    return ""


async def _reorder(conversation: Conversation, given: Turns, person: str | None) -> str:
    await conversation.reorder(given.turns, by=person)
    return ""


async def _task(conversation: Conversation, given: Task | Nothing, person: str | None) -> str:
    if isinstance(given, Nothing):
        task = conversation.team_task
        return f"The team's task: {task}" if task else "The team has no task. Set one: /task build the login"
    await conversation.set_task(None if given.task in (None, "", REMOVE) else given.task, by=person)
    return ""


async def _rename(conversation: Conversation, given: Title | Nothing, person: str | None) -> str:
    if isinstance(given, Title):
        title = None if given.title in (None, REMOVE) else typed_title(given.title)
        await conversation.rename(title, by=person)
    return f"This conversation is called: {title_of(conversation.title, conversation.first_words)}"


async def _forget(conversation: Conversation, given: Member, person: str | None) -> str:
    await conversation.forget(given.member, by=person)
    name = conversation.member(given.member).name
    return f"{name} begins a new session in its next turn, built from the conversation."


async def _dismiss(conversation: Conversation, given: Which, person: str | None) -> str:
    unallowed = _unallowed(conversation)
    if unallowed or not given.is_empty:
        await conversation.drop(turn_ids=_meant(conversation, given, unallowed), by=person)
    else:
        await conversation.dismiss_missed_hand_over(by=person)
    return ""


# How their arguments are read


def _read_names(text: str, _: Team) -> Names:
    if not text:
        raise BullpenError("/next needs a name, for example: /next sarah, or /next sarah & max")
    return Names(names=text)


def _read_hand(text: str, team: Team) -> Member:
    which = read_which(text, team)
    if len(which.members) != 1 or len(which.turns) > 1:
        raise BullpenError("/hand needs one name, for example: /hand max, or /hand max 14 for turn 14")
    return Member(member=which.members[0], turn=which.turns[0] if which.turns else None)


def _read_turns(text: str, team: Team) -> Turns:
    which = read_which(text, team)
    if not which.turns or which.members:
        raise BullpenError("/reorder needs the numbers of waiting turns, for example: /reorder 5 3")
    return Turns(turns=which.turns)


def _read_task(text: str, _: Team) -> Task | Nothing:
    return Task(task=text) if text else Nothing()


def _read_title(text: str, _: Team) -> Title | Nothing:
    return Title(title=text) if text else Nothing()


def _read_member(text: str, _: Team) -> Member:
    if not text:
        raise BullpenError("/prompt needs a name, for example: /prompt sarah")
    return Member(member=text)


def _read_forget(text: str, _: Team) -> Member:
    if not text:
        raise BullpenError("/forget needs a name, for example: /forget max")
    return Member(member=text)


def _read_text(text: str, _: Team) -> Text:
    return Text(text=text)


def _read_note(text: str, _: Team) -> Text:
    if not text:
        raise BullpenError("/note needs a text, for example: /note the deadline is Friday")
    return Text(text=text)


def _read_words(text: str, _: Team) -> Text:
    if not text:
        raise BullpenError("/search needs words, for example: /search cookie")
    return Text(text=text)


_ALL = (
    Command(
        name="next",
        argument="NAMES",
        purpose="ask members to answer the last message",
        example="/next max, or /next max & sarah",
        takes=Names,
        read=_read_names,
        run=_ask,
        action="ask",
        aliases=("ask",),
    ),
    Command(
        name="note",
        argument="TEXT",
        purpose="store a note for everyone to read; it asks nobody",
        example="/note the deadline is Friday",
        takes=Text,
        read=_read_note,
        run=_note,
    ),
    Command(name="queue", purpose="show who is working, who is waiting, and what needs a decision"),
    Command(
        name="cancel",
        argument="[TURN | NAME]",
        purpose="stop running turns: all, one, or a member's; the queue then waits for /continue or /drop",
        takes=Which,
        read=read_which,
        run=_cancel,
    ),
    Command(
        name="continue",
        purpose="continue after a pause",
        run=_continue,
        aliases=("go",),
    ),
    Command(
        name="retry",
        argument="[TURN | NAME]",
        purpose="rerun a turn that ended without a reply",
        takes=Which,
        read=read_which,
        run=_retry,
    ),
    Command(
        name="skip",
        argument="[TURN | NAME]",
        purpose="continue without a turn that ended without a reply",
        takes=Which,
        read=read_which,
        run=_skip,
    ),
    Command(
        name="hand",
        argument="NAME [TURN]",
        purpose="let another agent answer in place of one that did not",
        example="/hand max",
        takes=Member,
        read=_read_hand,
        run=_hand_over,
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
        run=_drop,
    ),
    Command(
        name="reorder",
        argument="TURNS",
        purpose="move waiting turns to the front, in this order",
        example="/reorder 5 3",
        takes=Turns,
        read=_read_turns,
        run=_reorder,
    ),
    Command(
        name="allow",
        argument="[TURN | NAME]",
        purpose="say yes to a hand-over that needs it: to a member with full permissions",
        takes=Which,
        read=read_which,
        run=_allow,
    ),
    Command(
        name="dismiss",
        argument="[TURN | NAME]",
        purpose="say no to a hand-over that needs a yes, or that an agent probably meant",
        takes=Which,
        read=read_which,
        run=_dismiss,
    ),
    Command(
        name="task",
        argument="[TEXT | -]",
        purpose="show the team's task, set it, or remove it with -",
        example="/task build the login",
        takes=Task,
        read=_read_task,
        run=_task,
    ),
    Command(
        name="rename",
        argument="[TITLE | -]",
        purpose="show what the conversation is called, rename it, or remove its title with -",
        example="/rename the login",
        takes=Title,
        read=_read_title,
        run=_rename,
    ),
    Command(
        name="forget",
        argument="NAME",
        purpose="let an agent's next turn begin a new session, built from the conversation",
        example="/forget max",
        takes=Member,
        read=_read_forget,
        run=_forget,
    ),
    Command(name="who", purpose="show who is in the team, and what each agent remembers"),
    Command(
        name="prompt",
        argument="NAME",
        purpose="show what an agent would be given now, word for word",
        takes=Member,
        read=_read_member,
    ),
    Command(
        name="explain",
        argument="[TURN]",
        purpose="show what an agent was given in a turn; without a number, in the last one",
        takes=Text,
        read=_read_text,
    ),
    Command(
        name="diff",
        argument="[TURN | A..B]",
        purpose="show what a turn changed in the files; without a number, the latest that did; all: everything",
        example="/diff 14",
        takes=Text,
        read=_read_text,
    ),
    Command(
        name="search",
        argument="WORDS",
        purpose="find what was said",
        takes=Text,
        read=_read_words,
    ),
    Command(
        name="export",
        argument="[FILE]",
        purpose="write the conversation to a file: .md, .html or .json",
        takes=Text,
        read=_read_text,
    ),
    Command(name="help", purpose="show every command"),
    Command(name="quit", purpose="leave; everything is stored", aliases=("exit",)),
)

COMMANDS = {command.name: command for command in _ALL}
ACTIONS = {command.action or command.name: command for command in _ALL if command.run is not None}
"""The commands that change something, by their names in the API."""
SHOWN = tuple(command for command in _ALL if command.run is None)
"""The commands that show something, which every door must know how to do."""
_BY_NAME = COMMANDS | {alias: command for command in _ALL for alias in command.aliases}
