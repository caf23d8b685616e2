"""docs/terminal.md names every key and no other."""

import re
from pathlib import Path

from bullpen.tui.all_keys import all_keys
from bullpen.tui.app import BullpenApp
from bullpen.tui.chat import ChatScreen
from bullpen.tui.key_names import rows
from bullpen.tui.slash_commands import HANDLERS, SCREEN_COMMANDS
from bullpen.view.commands import SHOWN

KEYS = all_keys(ChatScreen.BINDINGS)
PAGE = (Path(__file__).parents[2] / "docs" / "terminal.md").read_text(encoding="utf-8")


def rows_after(heading: str) -> list[tuple[str, str]]:
    table = PAGE.split(heading, 1)[1].split("|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)


def test_the_list_of_keys_ends_with_those_of_the_app() -> None:
    assert KEYS["Everywhere"][-3:] == rows(BullpenApp.BINDINGS)


def test_the_page_has_every_key() -> None:
    for place, keys in KEYS.items():
        shown = [(" ".join(f"`{key}`" for key in row.split()), words) for row, words in keys]
        assert rows_after(f"\n{place}:\n") == shown


def test_every_command_that_shows_something_has_a_handler() -> None:
    assert {command.name for command in (*SHOWN, *SCREEN_COMMANDS)} == set(HANDLERS)
