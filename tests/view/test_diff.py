"""A patch as rows: whatever git writes, and whatever somebody makes up."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.file_changes import FileChange, FileState, FolderChanges
from bullpen.view.diff import FileDiff, Row, file_diffs, read_patch, text_hunks


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode(errors="replace")


def patch_of(folder: Path, *words: str) -> str:
    git(folder, "add", "-A")
    return git(folder, "diff", "--cached", "-M", *words)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x", "--allow-empty")


def only(patch: str) -> FileDiff:
    (diff,) = read_patch(patch)
    return diff


def both_sides(diff: FileDiff) -> tuple[list[str], list[str]]:
    rows = list(diff.rows)
    old = [row.text for row in rows if row.kind in ("context", "removed")]
    return old, [row.text for row in rows if row.kind in ("context", "added")]


def test_rows_have_their_numbers_on_both_sides(repository: Path) -> None:
    (repository / "a.py").write_text("one\ntwo\nthree\n")
    commit(repository)
    (repository / "a.py").write_text("one\nzwei\nthree\nfour\n")

    diff = only(patch_of(repository))

    assert (diff.path, diff.kind, diff.added, diff.removed) == ("a.py", "changed", 2, 1)
    assert list(diff.rows) == [
        Row("context", 1, 1, "one"),
        Row("removed", 2, None, "two"),
        Row("added", None, 2, "zwei"),
        Row("context", 3, 3, "three"),
        Row("added", None, 4, "four"),
    ]
    assert [(pair.left and pair.left.text, pair.right and pair.right.text) for pair in diff.hunks[0].pairs] == [
        ("one", "one"),
        ("two", "zwei"),
        ("three", "three"),
        (None, "four"),
    ]


@pytest.mark.parametrize("quotes", ["core.quotePath=true", "core.quotePath=false"])
@pytest.mark.parametrize(
    "name",
    ["plain.txt", "with space b/x.txt", "深/文件.py", "tab\there", "line\nbreak", 'quo"te', "back\\slash", "a b/a b"],
)
def test_every_name_is_read_as_it_is(repository: Path, name: str, quotes: str) -> None:
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x\n")
    new = only(_quoted_patch(repository, quotes))
    commit(repository)
    path.chmod(0o755)
    mode = only(_quoted_patch(repository, quotes))

    assert (new.path, new.kind) == (name, "added")
    assert (mode.path, mode.kind, mode.note) == (name, "mode", "It can be executed now.")


def _quoted_patch(folder: Path, quotes: str) -> str:
    git(folder, "add", "-A")
    return git(folder, "-c", quotes, "diff", "--cached", "-M")


def test_renamed_binary_deleted_and_unended_files_are_told(repository: Path) -> None:
    (repository / "old name.txt").write_text("".join(f"line {n}\n" for n in range(50)))
    (repository / "gone.txt").write_text("bye\n")
    (repository / "picture.png").write_bytes(bytes(range(256)))
    (repository / "end.txt").write_text("a\nb")
    commit(repository)
    (repository / "old name.txt").rename(repository / "new name.txt")
    (repository / "gone.txt").unlink()
    (repository / "picture.png").write_bytes(bytes(range(255, -1, -1)))
    (repository / "end.txt").write_text("a\nc")

    found = {diff.path: diff for diff in read_patch(patch_of(repository))}

    assert found["new name.txt"].renamed_from == "old name.txt"
    assert (found["new name.txt"].kind, found["gone.txt"].kind) == ("renamed", "deleted")
    assert found["picture.png"].is_binary
    assert [row.kind for row in found["end.txt"].rows] == ["context", "removed", "note", "added", "note"]
    pairs = found["end.txt"].hunks[0].pairs
    assert [(pair.left and pair.left.kind, pair.right and pair.right.kind) for pair in pairs] == [
        ("context", "context"),
        ("removed", "added"),
        ("note", "note"),
    ]


def test_lines_that_look_like_a_patch_are_lines(repository: Path) -> None:
    old = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n\\ no\n"
    (repository / "evil.patch").write_text(old)
    commit(repository)
    new = "-- a/y\n++ b/y\ndiff --git a/z b/z\n@@ -9 +9 @@\n\x0c\x1c\u2028 in one line\r\n"
    (repository / "evil.patch").write_bytes(new.encode())

    diff = only(patch_of(repository))

    assert both_sides(diff) == (old[:-1].split("\n"), new[:-1].split("\n"))


def test_a_patch_that_was_cut_is_shown_as_far_as_it_goes(repository: Path) -> None:
    (repository / "a").write_text("".join(f"{n}\n" for n in range(200)))
    patch = patch_of(repository)

    for end in range(0, len(patch), 7):
        rows = [row for diff in read_patch(patch[:end]) for row in diff.rows]
        assert all(row.kind == "added" for row in rows)


@given(st.text(st.sampled_from('ab-+ @\\\n"0,'), max_size=300))
def test_nothing_that_is_called_a_patch_is_an_error(noise: str) -> None:
    read_patch(noise)
    read_patch(f"diff --git {noise}")
    read_patch(f'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n{noise}\nBinary files "\n{noise}')


def test_a_megabyte_of_hostile_lines_is_read_without_effort() -> None:
    size = 250_000
    hostile = "diff --git " + '"\\' * size + "\n" + "@@ -1,999999999 +1,999999999 @@\n" + "+\n-\n" * size

    (diff,) = read_patch(hostile)

    # In quadratic time, it would take longer than any test may.
    assert len(diff.hunks[0].rows) == 2 * size
    assert len(diff.hunks[0].pairs) == size + 1


def test_a_file_without_lines_says_why() -> None:
    state = FileState(blob="1")
    files = (
        FileChange(path="big", kind="changed", old=state, new=FileState(blob="2"), added=9, removed=1),
        FileChange(path="link", kind="changed", old=state, new=FileState(blob="3", mode="120000")),
        FileChange(path="listed", kind="changed"),
        FileChange(path="b.png", kind="added", is_binary=True, new=state),
    )

    diffs = file_diffs(FolderChanges(folder="/x", files=files, patch_is_cut=True))

    assert [(diff.path, diff.note) for diff in diffs] == [
        ("big", "Too large: its lines are not kept."),
        ("link", "It is a symbolic link now."),
        ("listed", "Its lines are not known."),
        ("b.png", ""),
    ]
    assert [diff.about for diff in diffs] == ["+9 −1", "changed", "changed", "new, binary"]


def test_a_file_that_became_a_link_is_one_file(repository: Path) -> None:
    (repository / "a").write_text("text\n")
    commit(repository)
    (repository / "a").unlink()
    (repository / "a").symlink_to("elsewhere")
    change = FileChange(path="a", kind="changed", added=1, removed=1)

    (diff,) = file_diffs(FolderChanges(folder="/x", files=(change,), patch=patch_of(repository)))

    assert both_sides(diff) == (["text"], ["elsewhere"])


lines = st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), max_size=40)


@given(lines, lines)
def test_two_texts_differ_in_what_the_rows_say(left: list[str], right: list[str]) -> None:
    old, new = "".join(f"{line}\n" for line in left), "".join(f"{line}\n" for line in right)

    hunks = text_hunks(old, new, numbered=True)

    rows = [row for hunk in hunks for row in hunk.rows]
    # What the rows leave out is the same in both.
    removed = {row.old for row in rows if row.kind == "removed"}
    added = {row.new for row in rows if row.kind == "added"}
    kept = [line for number, line in enumerate(left, start=1) if number not in removed]
    assert kept == [line for number, line in enumerate(right, start=1) if number not in added]
    assert all(left[row.old - 1] == row.text for row in rows if row.old)
    assert all(right[row.new - 1] == row.text for row in rows if row.new)
    assert bool(rows) == (left != right)


def test_long_texts_are_compared_without_effort() -> None:
    old = "".join(f"{n % 7}\n" for n in range(20_000))
    new = "".join(f"{n % 5}\n" for n in range(20_000))

    (hunk,) = text_hunks(old, new)

    assert len(hunk.rows) > 30_000
    assert {(row.old, row.new) for row in hunk.rows} == {(None, None)}
