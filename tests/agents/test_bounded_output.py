"""What is kept of the output of a program: its beginning and its end, masked, never half a character or half a key."""

import random

import pytest

from bullpen.agents.bounded_output import HEAD_BYTES, MARGIN_BYTES, TAIL_BYTES, BoundedOutput

MOST = HEAD_BYTES + TAIL_BYTES
KEY = "correct-horse-battery-staple-0123456789"


def kept(data: bytes, piece: int = 4096) -> tuple[str, int]:
    output = BoundedOutput()
    for start in range(0, len(data), piece):
        output.feed(data[start : start + piece])
    return output.text({"DEPLOY_TOKEN": KEY})


@pytest.mark.parametrize("length", [0, 1, HEAD_BYTES, MOST - 1, MOST])
def test_what_is_not_long_is_whole(length: int) -> None:
    text = ("x" * 79 + "\n") * (MOST // 80 + 1)
    assert kept(text[:length].encode()) == (text[:length], 0)


@pytest.mark.parametrize("length", [MOST + 1, MOST + MARGIN_BYTES + 7, 4 * MOST, 1_000_000])
@pytest.mark.parametrize("piece", [1_000, 64 * 1024, 2_000_000])
def test_of_more_the_beginning_and_the_end_are_kept_in_whole_lines(length: int, piece: int) -> None:
    lines = "".join(f"行 {number}\n" for number in range(length // 8))
    text, left_out = kept(lines.encode(), piece)
    head, mark, tail = text.partition("[…]\n")
    assert (lines.startswith(head), bool(mark), lines.endswith(tail)) == (True, len(lines.encode()) > MOST, True)
    assert len(text.encode()) <= MOST + len("[…]\n".encode())
    assert left_out == max(len(lines.encode()) - MOST, 0)
    assert "\ufffd" not in text


def test_keys_are_masked_wherever_the_output_is_cut() -> None:
    chance = random.Random(7)
    for place in [*range(HEAD_BYTES - 50, HEAD_BYTES + 10, 7), *(chance.randrange(200_000) for _ in range(10))]:
        noise = b"word " * 50_000
        text, _ = kept(noise[:place] + KEY.encode() + b" " + noise[place:], piece=1_000)
        assert not any(KEY[start : start + 12] in text for start in range(len(KEY) - 12)), place


def test_colours_and_what_a_terminal_would_obey_are_gone() -> None:
    assert kept(b"\x1b[31mred\x1b[0m\r\n\x1b]0;title\x07\xff\0ok") == ("red\n\ufffd\u2400ok", 0)


def test_a_key_is_masked_where_colours_make_the_beginning_short() -> None:
    colours = b"\x1b[38;5;200m\x1b[0m. "
    cuts = (HEAD_BYTES + MARGIN_BYTES, MOST + MARGIN_BYTES)
    for place in (cut - before for cut in cuts for before in range(5, 50, 7)):
        noise = (colours * (place // len(colours))).ljust(place)
        text, left_out = kept(noise + KEY.encode() + b" " + b"word " * 50_000, piece=1_000)
        assert left_out
        assert not any(KEY[start : start + 12] in text for start in range(len(KEY) - 12)), place
