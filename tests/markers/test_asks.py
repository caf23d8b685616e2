"""[ASK: yes | no | later]: the answers that an agent offers, however it writes them."""

import pytest

from bullpen.markers.grammar import LONGEST_CHOICE, MOST_CHOICES, read_markers
from bullpen.markers.stripping import strip_all_markers


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("Shall I? [ASK: yes | no | later]", ("yes", "no", "later")),
        ("[ask:yes|no]", ("yes", "no")),
        ("［ASK：好｜不好］", ("好", "不好")),
        ("[ASK: one]", ("one",)),
        ("[ASK: yes | | yes |  | no ]", ("yes", "no")),
        ("[ASK: a\nb | c]", ("a b", "c")),
        ("[ASK: keep [x] | drop it, please & soon]", ("keep [x]", "drop it, please & soon")),
        ("[ASK: a | b] and [ASK: c | d]", ("c", "d")),
        ("[ASK: a | b] and [ASK: | ]", ("a", "b")),
        ("[ASK: ]", ()),
        ("[ASK]", ()),
        ("[ASK: a | b", ()),
        ("`[ASK: a | b]`", ()),
        ("> [ASK: a | b]", ()),
        ("```\n[ASK: a | b]\n```", ()),
        (r"\[ASK: a | b\]", ()),
        ("[ASK: a | [NEXT: max]]", ()),
    ],
)
def test_choices(text: str, choices: tuple[str, ...]) -> None:
    assert read_markers(text).ask == choices


def test_too_many_and_too_long_ones_are_bounded() -> None:
    many = read_markers(f"[ASK: {' | '.join(map(str, range(1_000)))}]")
    long = read_markers(f"[ASK: {'x' * 1_000_000} | y]")
    same = read_markers(f"[ASK: {'a|' * 100_000}]")

    assert many.ask == tuple(map(str, range(MOST_CHOICES)))
    assert many.are_cut
    assert [len(choice) for choice in long.ask] == [LONGEST_CHOICE, 1]
    assert same.ask == ("a",)


def test_people_do_not_read_the_marker() -> None:
    assert strip_all_markers("Shall I? [ASK: yes | no]") == "Shall I?"
