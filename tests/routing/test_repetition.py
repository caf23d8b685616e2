"""Near-identical replies: what counts as saying the same again."""

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.routing.progress import LONGEST_TEXT, SKETCH_SIZE, alike, sketch


def same(one: str, other: str) -> bool:
    return alike(sketch(one), sketch(other))


REVIEW = """\
I have gone through the retry logic in the client once more. The back-off is exponential and has jitter now, as we
agreed, and the total time is bounded by the deadline of the caller. Two things are left before this can be merged:
the test for the deadline sleeps for a whole second, which it should not, and the name of the setting in the docs is
still the old one. Please correct both and ask me again.
"""
FIX = """\
Both are corrected. The test for the deadline uses a clock of its own and takes no time, and the docs name the setting
as the code does. While at it I found that the jitter was computed from the same seed in every process, so that all
clients came back at the same moment; it is seeded from the system now, and there is a test with two processes for it.
"""
BUG = """\
用户登录之后，会话在三十分钟以后会过期，但是刷新令牌的接口没有检查旧令牌是否已经作废，所以同一个令牌可以用很多次。
我建议在数据库里加一列，记录令牌是什么时候作废的，并且在刷新的时候检查这一列。
"""
REPAIR = """\
已经按照你说的加了一列，迁移脚本也写好了，刷新接口现在会拒绝作废的令牌。我还补了四个测试，覆盖了并发刷新的情况，
全部通过。文档里关于令牌有效期的那一节也更新了，请再看一遍有没有遗漏的地方。
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Done.", "Done!"),
        ("Done.", "  done\n"),
        ("step 3 of 10", "step 4 of 10"),
        ("Took 1.5 s, 12:30", "Took 12 s, 9"),
        ("Done. [NEXT: sarah]", "Done. [NEXT: max]"),
        ("完成了。", "完成了！"),
        ("ＤＯＮＥ", "done"),
        ("👍", " 👍 "),
        ("", " \n"),
        (REVIEW, REVIEW.replace(" ", "\n")),
        (REVIEW, f"{REVIEW}\n[NEXT: max]"),
        (REVIEW, REVIEW.replace("jitter", "noise")),
        (BUG, BUG.replace("三十", "四十")),
    ],
)
def test_replies_that_are_alike(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Done.", "Not done."),
        ("Yes", "No"),
        ("👍", "👎"),
        ("", "Done."),
        ("完成了。", "没有完成。"),
        ("I fixed it", "It fixed I"),
        (REVIEW, FIX),
        (BUG, REPAIR),
        (REVIEW, REVIEW + FIX),
        (REVIEW, " ".join(reversed(REVIEW.split()))),
        (REVIEW, REVIEW[:60]),
    ],
)
def test_replies_that_are_not(one: str, other: str) -> None:
    assert not same(one, other)


def _words(seed: int) -> list[str]:
    """Return two hundred words and more, each of them once."""
    random = Random(seed)
    words = {"".join(random.choices("abcdefghij", k=random.randint(2, 6))) for _ in range(400)}
    return sorted(words, key=lambda _: random.random())[: random.randint(200, 260)]


WORDS = st.integers(min_value=0).map(_words)


@given(text=st.text())
def test_every_text_is_like_itself(text: str) -> None:
    assert same(text, text)


@given(words=WORDS, place=st.integers(min_value=0, max_value=199))
def test_one_word_in_two_hundred_makes_no_difference(words: list[str], place: int) -> None:
    changed = [*words[:place], "something", *words[place + 1 :]]

    assert same(" ".join(words), " ".join(changed))


@given(words=WORDS)
def test_other_words_make_one(words: list[str]) -> None:
    other = [f"{word}x" if number % 4 == 0 else word for number, word in enumerate(words)]

    assert not same(" ".join(words), " ".join(other))


@given(text=st.text(max_size=400))
def test_a_sketch_is_small_sorted_and_fits_where_numbers_are_kept(text: str) -> None:
    found = sketch(text)

    assert len(found) in (1, SKETCH_SIZE)
    assert list(found) == sorted(set(found))
    assert all(0 <= number < 2**48 for number in found)


def test_only_the_beginning_of_a_very_long_text_is_looked_at() -> None:
    beginning = "".join(chr(0x4E00 + number % 20_000) for number in range(LONGEST_TEXT))

    assert sketch(beginning) == sketch(beginning + FIX * 10_000)


def test_a_long_text_without_a_space_has_a_full_sketch() -> None:
    blob = "".join(chr(ord("a") + (number * number) % 23 + number % 3) for number in range(2_000))

    assert len(sketch(blob)) == SKETCH_SIZE
    assert same(blob, f"{blob}!")


def test_a_sketch_is_the_same_in_every_process() -> None:
    program = f"from bullpen.routing.progress import sketch\nprint(*sketch({REVIEW!r}))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]

    assert printed[0].split() == printed[1].split() == [str(number) for number in sketch(REVIEW)]
