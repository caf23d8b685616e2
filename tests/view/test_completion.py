"""What can follow what was typed."""

import pytest

from bullpen.tui.commands import Command, read_command
from bullpen.view.completion import options_for

NAMES = {"max": "Architect", "Mary Ann": "", "sarah": "Reviewer"}
COMMANDS = {"help": "", "hand": "", "quit": ""}


def completed(before: str) -> list[str]:
    """Return the text before the cursor as each option would leave it."""
    return [
        f"{before[: len(before) - option.replaces]}{option.insert}" for option in options_for(before, NAMES, COMMANDS)
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", []),
        ("plain words", []),
        ("mail@sa", []),
        ("@sa", ["[NEXT: sarah] "]),
        ("first line\nask @MA", ["first line\nask [NEXT: max] ", "first line\nask [NEXT: Mary Ann] "]),
        ("/h", ["/help ", "/hand "]),
        ("say /h", []),
        ("/hand s", ["/hand sarah"]),
        ("/hand sarah", []),
        ("/next max & sa", ["/next max & sarah"]),
        ("[NEXT: sa", ["[NEXT: sarah] "]),
        ("[next: max, sa", ["[next: max, sarah] "]),
        ("[NEXT: max & Mary", ["[NEXT: max & Mary Ann] "]),
        ("[DROP: AL", ["[DROP: ALL] "]),
        ("[NEXT: sarah] done", []),
        ("now [te", ["now [TEAM_TASK] "]),
        ("a[0", []),
    ],
)
def test_what_can_follow(before: str, after: list[str]) -> None:
    assert completed(before) == after


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", Command("help", "")),
        ("/task  Build it\nnow ", Command("task", "Build it\nnow")),
        ("/etc/hosts is gone", None),
        ("//", None),
        ("Use /help", None),
    ],
)
def test_only_a_word_after_a_slash_at_the_beginning_is_a_command(text: str, command: Command | None) -> None:
    assert read_command(text) == command
