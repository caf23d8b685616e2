"""Excerpts of patches: one large file does not take the room of the others, and what is missing is named."""

from hypothesis import given
from hypothesis import strategies as st

from bullpen.text.patch_excerpt import PatchExcerpt, patch_excerpt


def change(name: str, lines: int, line: str = "+x") -> str:
    return f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@\n" + f"{line}\n" * lines


def test_what_fits_is_whole() -> None:
    patch = change("a.py", 3) + change("my notes.txt", 2)

    assert patch_excerpt(patch, most_of_each=1_000, most=2_000) == PatchExcerpt(text=patch)


def test_a_generated_file_is_cut_and_what_comes_after_it_is_whole() -> None:
    patch = change("lock.json", 100_000) + change("a.py", 3, "+diff --git a/x b/x")

    found = patch_excerpt(patch, most_of_each=1_000, most=5_000)

    assert found.cut == ("lock.json",)
    assert found.left_out == ()
    assert found.text.endswith(
        f"+x\n[… the rest of this file's change is left out …]\n{change('a.py', 3, '+diff --git a/x b/x')}"
    )


def test_what_does_not_fit_at_all_is_named() -> None:
    patch = "".join(change(f"{number}.py", 100) for number in range(10))

    found = patch_excerpt(patch, most_of_each=1_000, most=1_000)

    assert (found.cut, found.left_out) == ((), tuple(f"{number}.py" for number in range(2, 10)))


@given(lengths=st.lists(st.integers(min_value=0, max_value=300), max_size=8), most=st.integers(200, 2_000))
def test_every_file_is_there_or_named(lengths: list[int], most: int) -> None:
    patch = "".join(change(f"{number}.py", length, "+文字") for number, length in enumerate(lengths))

    found = patch_excerpt(patch, most_of_each=500, most=most)

    assert len(found.text.encode()) <= most + 60 * len(lengths)
    for number in range(len(lengths)):
        assert (f"diff --git a/{number}.py " in found.text) != (f"{number}.py" in found.left_out)
