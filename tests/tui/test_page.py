"""docs/terminal.md names every key and every command, and no other."""

import re
from pathlib import Path

from bullpen.tui.app import BullpenApp
from bullpen.tui.bindings import rows
from bullpen.tui.chat import KEYS
from bullpen.tui.commands import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "terminal.md").read_text(encoding="utf-8")


def rows_after(heading: str) -> list[tuple[str, str]]:
    table = PAGE.split(heading, 1)[1].split("|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)


def test_the_list_of_keys_ends_with_those_of_the_app() -> None:
    assert KEYS["Everywhere"][-2:] == rows(BullpenApp.BINDINGS)


def test_the_page_has_every_key() -> None:
    for place, keys in KEYS.items():
        shown = [(" ".join(f"`{key}`" for key in row.split()), words) for row, words in keys]
        assert rows_after(f"\n{place}:\n") == shown


def test_the_page_has_every_command() -> None:
    assert rows_after("## Every command") == [(f"`/{name}`", words) for name, words in COMMANDS.items()]
