"""Write the tables of the docs that come from the code: `make docs`. The tests check that they are up to date."""

import re
from pathlib import Path

from bullpen.tui.slash_commands import SCREEN_COMMANDS
from bullpen.view.commands import ACTIONS, COMMANDS, command_table

DOCS = Path(__file__).parent


def tables() -> dict[str, str]:
    """Return every generated table by the page and the heading before it."""
    actions = ["| action | what it does |", "|---|---|"]
    actions += [f"| `{name}` | {command.purpose} |" for name, command in ACTIONS.items()]
    return {
        "command-line.md#In a chat": command_table(COMMANDS.values()),
        "terminal.md#Every command": command_table([*COMMANDS.values(), *SCREEN_COMMANDS]),
        "web.md#Every action": "\n".join([*actions, ""]),
    }


def with_table(text: str, heading: str, table: str) -> str:
    """Return a page with the first table after a heading replaced."""
    start = text.index(f"## {heading}\n")
    found = re.compile(r"^\| .+\n\|---.+\n(?:\|.+\n)*", re.MULTILINE).search(text, start)
    if found is None:
        raise ValueError(f"there is no table after {heading!r}")
    return text[: found.start()] + table + text[found.end() :]


def main() -> None:
    """Write every table into its page."""
    for place, table in tables().items():
        page, _, heading = place.partition("#")
        path = DOCS / page
        path.write_text(with_table(path.read_text(encoding="utf-8"), heading, table), encoding="utf-8")


if __name__ == "__main__":
    main()
