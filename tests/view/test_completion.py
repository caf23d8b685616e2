"""What can follow what was typed."""

import pytest

from bullpen.team.reader import read_team
from bullpen.view.completion import names_of, options_for

NAMES = {"max": "Architect", "Mary Ann": "", "sarah": "Reviewer"}


def completed(before: str) -> list[str]:
    """Return the text before the cursor as each option would leave it."""
    return [f"{before[: len(before) - option.replaces]}{option.insert}" for option in options_for(before, NAMES)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", []),
        ("plain words", []),
        ("mail@sa", []),
        ("@sa", ["@sarah "]),
        ("first line\nask @MA", ["first line\nask @max ", "first line\nask @Mary Ann "]),
        ("@al", ["@all "]),
        ("请看，＠sa", ["请看，@sarah "]),
        ("Go @sarah.", []),
        ("请看 @sarah，", []),
        ("[NEXT: al", ["[NEXT: all] "]),
        ("/h", ["/hand ", "/help "]),
        ("/H", ["/hand ", "/help "]),
        ("/task s", []),
        # What is typed to its end needs nothing: Enter sends it.
        ("/who", []),
        ("/Hand", []),
        ("/go", []),
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


def test_agents_are_offered_before_people_who_hardly_ask_themselves() -> None:
    team = read_team('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n')
    names = names_of(team)

    assert [option.label for option in options_for("@", names)] == ["@max", "@kim", "@all"]
    assert [option.label for option in options_for("[FROM: ", names)] == ["kim", "max"]
