"""What help shows: what a person can do now, the few commands that matter, and on request all the others."""

from collections.abc import Iterable, Iterator, Mapping

from bullpen.view.activity import WAITS
from bullpen.view.commands import COMMANDS, Command
from bullpen.view.state import ConversationView

FEW = ("next", "cancel", "retry", "skip", "yes", "no", "diff", "undo", "pick", "who", "open", "new", "quit")
"""The commands that help shows first."""
MORE = ("/help all", "show every command")
WHILE_IT_WORKS = (
    ("queue", "what you say to a working agent waits in the queue for its next turn; /drop removes it there"),
    (
        "tell",
        "/tell gives a working agent words in this turn; if it cannot take any, they are queued, and you read that",
    ),
    ("cancel", "/cancel ends the turn of a working agent; what is queued stays, and waits for /continue or /drop"),
)
"""Three different things that people do with a working agent, in the words that every door has for them."""

Rows = list[tuple[str, str]]


def help_sections(view: ConversationView, more: Iterable[Command] = ()) -> dict[str, Rows]:
    """Return what help shows first, by headings. `more` are the door's own commands."""
    few = [COMMANDS[name] for name in FEW]
    return {"Now": list(_now(view)), "Commands": [*help_lines([*few, *more]), MORE]}


def all_sections(view: ConversationView, more: Iterable[Command] = ()) -> dict[str, Rows]:
    """Return everything that help can show, by headings, the same first."""
    others = [command for name, command in COMMANDS.items() if name not in FEW]
    first = help_sections(view, more)
    few = [row for row in first["Commands"] if row != MORE]
    return {
        "Now": first["Now"],
        "Commands": few,
        "More commands": list(help_lines(others)),
        "An agent that is working": list(WHILE_IT_WORKS),
    }


def section_lines(sections: Mapping[str, Rows]) -> list[str]:
    """Return sections as lines of text."""
    return [
        line
        for title, rows in sections.items()
        for line in (f"{title}:", *(": ".join(filter(None, row)) for row in rows), "")
    ][:-1]


def help_lines(commands: Iterable[Command]) -> Iterator[tuple[str, str]]:
    """Yield every command with what it takes, and what it is for."""
    for command in commands:
        example = f", for example {command.example}" if command.example else ""
        other = f"; also /{' /'.join(command.aliases)}" if command.aliases else ""
        yield f"/{command.name} {command.argument}".rstrip(), f"{command.purpose}{example}{other}"


def command_table(commands: Iterable[Command]) -> str:
    """Return the commands as a table in Markdown, for the docs."""
    # A bar would end the cell of a table.
    rows = [
        f"| `{typed}` | {words} |" for typed, words in ((a.replace("|", "\\|"), b) for a, b in help_lines(commands))
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *rows, ""])


def _now(view: ConversationView) -> Iterator[tuple[str, str]]:
    """Yield what waits for a person, then what can be done with those who work."""
    for decision in view.decisions:
        yield "", decision.text
        yield from ((choice.typed, choice.purpose) for choice in decision.choices)
    for one in view.working:
        yield f"/tell {one.member} TEXT", f"give {one.member} words in this turn"
        yield f"/cancel {one.member}", f"end the turn of {one.member}"
    if view.decisions or view.working:
        return
    if view.activity == WAITS:
        yield "", f"Nobody is working. It waits for you, {view.waits_for}: say what you want."
    else:
        yield "", "Nobody is working, and nothing waits for you: say what you want."
