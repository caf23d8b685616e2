"""Diff: a patch as rows of files, one below the other or side by side, for every door."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.file_changes import FileChange, FileKind, FolderChanges

RowKind = Literal["context", "added", "removed", "note"]
SIGNS: dict[str, str] = {"context": " ", "added": "+", "removed": "−", "note": ""}
"""The sign before a row."""
NOT_SHOWN = "Too large: its lines are not kept."
NO_LINES = "Its lines are not known."
CONTEXT = 3
MOST_COMPARED = 400
"""Lines of each of two texts that are compared line by line; of longer ones, what is between equal ends is replaced."""

_LINE = r"(\d{1,9})(?:,(\d{1,9}))?"
_HUNK = re.compile(rf"@@ -{_LINE} \+{_LINE} @@ ?(.*)", re.DOTALL)
_ESCAPED = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"')
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_KINDS: dict[str, RowKind] = {" ": "context", "+": "added", "-": "removed"}


class Row(Struct, frozen=True, gc=False):
    """One line of a diff. Its text is as it is in the file: a door makes it safe."""

    kind: RowKind
    old: int | None
    """Its number in the old file, if it is in there."""
    new: int | None
    text: str


class Pair(Struct, frozen=True, gc=False):
    """What stands side by side in a split diff; one side may be empty."""

    left: Row | None
    right: Row | None


class Hunk(Struct, frozen=True):
    """Lines that follow each other."""

    heading: str
    """Where it is: "@@ -1,4 +1,6 @@ def login():"; empty for a small text without line numbers."""
    rows: tuple[Row, ...]

    @property
    def pairs(self) -> list[Pair]:
        """The same side by side: what was removed beside what was added in its place."""
        return list(_pairs(self.rows))


class FileDiff(Struct, frozen=True, kw_only=True):
    """One file in a patch."""

    path: str
    renamed_from: str = ""
    kind: FileKind = "changed"
    is_binary: bool = False
    added: int = 0
    removed: int = 0
    hunks: tuple[Hunk, ...] = ()
    note: str = ""
    """Why there are no lines, or what else has changed."""

    @property
    def rows(self) -> Iterator[Row]:
        """Every row, without the headings of hunks."""
        return (row for hunk in self.hunks for row in hunk.rows)

    @property
    def title(self) -> str:
        """Its path, and the one it had before."""
        return f"{self.renamed_from} → {self.path}" if self.renamed_from else self.path

    @property
    def about(self) -> str:
        """What became of it, in a few words: "new, +12", "+3 −1", "renamed", "binary"."""
        return file_words(self.kind, self.added, self.removed, is_binary=self.is_binary)


_KIND_WORDS = {"added": "new", "deleted": "deleted", "renamed": "renamed", "mode": "mode changed"}


def file_words(kind: FileKind, added: int, removed: int, *, is_binary: bool = False) -> str:
    """Return what became of a file, in a few words."""
    parts = [_KIND_WORDS.get(kind, ""), "binary" if is_binary else "", plus_minus(added, removed)]
    return ", ".join(part for part in parts if part) or "changed"


def plus_minus(added: int, removed: int) -> str:
    """Return how many lines were added and removed: "+24 −7"; nothing if there were none."""
    return " ".join(part for part in (f"+{added:,}" if added else "", f"−{removed:,}" if removed else "") if part)


def file_diffs(changes: FolderChanges) -> list[FileDiff]:
    """Return every file that was changed, with its lines as far as the patch has them."""
    found: dict[str, list[FileDiff]] = {}
    for diff in read_patch(changes.patch):
        found.setdefault(diff.path, []).append(diff)
    return [_known(file, found.get(file.path, [])) for file in changes.files]


def read_patch(patch: str) -> list[FileDiff]:
    """Return the files of a patch as git writes it. What is not a patch is left out; the end of one may be missing."""
    lines = patch.split("\n")
    return list(_Reader(lines).files())


def text_hunks(old: str, new: str, *, numbered: bool = False) -> tuple[Hunk, ...]:
    """Return what is different between two texts; without numbers, if it is not known where in a file they are."""
    left, right = _lines(old), _lines(new)
    hunks = []
    for group in _grouped(_changed_runs(left, right)):
        rows = [row for run in group for row in _rows(run, left, right)]
        first = group[0]
        heading = f"@@ -{first[1] + 1} +{first[3] + 1} @@" if numbered else ""
        shown = rows if numbered else [replace(row, old=None, new=None) for row in rows]
        hunks.append(Hunk(heading=heading, rows=tuple(shown)))
    return tuple(hunks)


def counts(hunks: Iterable[Hunk]) -> tuple[int, int]:
    """Return how many rows were added and removed."""
    kinds = [row.kind for hunk in hunks for row in hunk.rows]
    return kinds.count("added"), kinds.count("removed")


class _Reader:
    """Reads a patch from its first line to its last, each once."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> Iterator[FileDiff]:
        while self._at < len(self._lines):
            line = self._next()
            if line.startswith("diff --git "):
                yield self._file(line)

    def _next(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def _file(self, first: str) -> FileDiff:
        head: dict[str, str] = {}
        hunks: list[Hunk] = []
        while self._at < len(self._lines) and not self._lines[self._at].startswith("diff --git "):
            line = self._next()
            if (at := _HUNK.match(line)) is not None:
                hunks.append(self._hunk(line, at))
            elif not hunks:
                _read_header(line, head)
        added, removed = counts(hunks)
        path = head.get("to") or head.get("from") or _path_in_both(first.removeprefix("diff --git "))
        source = head.get("source", "")
        return FileDiff(
            path=path,
            renamed_from=source if source != path else "",
            kind=_kind(head, bool(hunks)),
            is_binary="binary" in head,
            added=added,
            removed=removed,
            hunks=tuple(hunks),
            note=_mode_note(head.get("old mode", ""), head.get("new mode", "")),
        )

    def _hunk(self, heading: str, at: re.Match[str]) -> Hunk:
        old, new = int(at[1]), int(at[3])
        old_end = old + (1 if at[2] is None else int(at[2]))
        new_end = new + (1 if at[4] is None else int(at[4]))
        rows: list[Row] = []
        while self._at < len(self._lines) and (old < old_end or new < new_end or self._is_note()):
            line = self._lines[self._at]
            sign = line[:1] or " "
            # What was cut off ends here, and so does what never was a hunk.
            if (sign not in _KINDS and sign != "\\") or (not line and self._at == len(self._lines) - 1):
                break
            self._at += 1
            if sign == "\\":
                rows.append(Row("note", None, None, line[1:].strip()))
                continue
            kind = _KINDS[sign]
            rows.append(Row(kind, None if kind == "added" else old, None if kind == "removed" else new, line[1:]))
            old, new = old + (kind != "added"), new + (kind != "removed")
        return Hunk(heading=heading, rows=tuple(rows))

    def _is_note(self) -> bool:
        return self._lines[self._at].startswith("\\")


def _read_header(line: str, head: dict[str, str]) -> None:
    """Take what a line before the hunks says about a file."""
    for word, name in (("--- ", "from"), ("+++ ", "to")):
        if line.startswith(word):
            path = _unquoted(line[len(word) :].removesuffix("\t"))
            if path != "/dev/null":
                head[name] = path[2:]
            return
    for word, name in (("rename from ", "source"), ("copy from ", "source"), ("rename to ", "to"), ("copy to ", "to")):
        if line.startswith(word):
            head[name] = _unquoted(line[len(word) :])
            head[word.split(" ", 1)[0]] = "yes"
            return
    for word in ("new file mode", "deleted file mode", "old mode", "new mode"):
        if line.startswith(word):
            head[word] = line[len(word) :].strip()
            return
    if line.startswith(("Binary files ", "GIT binary patch")):
        head["binary"] = "yes"


def _kind(head: dict[str, str], has_lines: bool) -> FileKind:
    if "new file mode" in head or "copy" in head:
        return "added"
    if "deleted file mode" in head:
        return "deleted"
    if "rename" in head:
        return "renamed"
    return "mode" if "old mode" in head and not has_lines and "binary" not in head else "changed"


def _mode_note(old: str, new: str) -> str:
    """Return what a change of the mode means, if it is one that people know."""
    if old == new or not old or not new:
        return ""
    if new == "120000":
        return "It is a symbolic link now."
    if old == "120000":
        return "It is not a symbolic link any more."
    return "It can be executed now." if new == "100755" else "It cannot be executed any more."


def _path_in_both(names: str) -> str:
    """Return the path in "a/path b/path", which git does not quote if there are spaces in it."""
    if (quoted := _QUOTED.match(names)) is not None:
        return _unquoted(quoted[0])[2:]
    middle = len(names) // 2
    if names[2:middle] == names[middle + 3 :]:
        return names[2:middle]
    return names.rpartition(" b/")[2]


def _unquoted(name: str) -> str:
    """Return a path as it is, if git has written it in quotes."""
    if not _QUOTED.fullmatch(name):
        return name
    raw = name[1:-1].encode(errors="replace")
    return _ESCAPED.sub(_byte, raw).decode(errors="replace")


def _byte(escaped: re.Match[bytes]) -> bytes:
    said = escaped[1]
    return bytes([int(said, 8)]) if len(said) == 3 else _LETTERS.get(said, said)


def _known(file: FileChange, diffs: Sequence[FileDiff]) -> FileDiff:
    """Return a file with its lines. Git writes two parts about one that became a link: it went, and it came."""
    hunks = tuple(hunk for diff in diffs for hunk in diff.hunks)
    modes = _mode_note(file.old.mode if file.old else "", file.new.mode if file.new else "")
    missing = "" if diffs or file.is_binary else NOT_SHOWN if file.added or file.removed else NO_LINES
    return FileDiff(
        path=file.path,
        renamed_from=file.renamed_from,
        kind=file.kind,
        is_binary=file.is_binary,
        added=file.added,
        removed=file.removed,
        hunks=hunks,
        note=modes or missing,
    )


def _pairs(rows: Sequence[Row]) -> Iterator[Pair]:
    left: list[Row] = []
    right: list[Row] = []
    before: RowKind = "context"
    for row in rows:
        if row.kind == "removed" and right and before != "removed":
            yield from _beside(left, right)
        if row.kind == "context" or (row.kind == "note" and before == "context"):
            yield from _beside(left, right)
            yield Pair(row, row)
        elif row.kind == "removed" or (row.kind == "note" and before == "removed"):
            left.append(row)
        else:
            right.append(row)
        before = before if row.kind == "note" else row.kind
    yield from _beside(left, right)


def _beside(left: list[Row], right: list[Row]) -> Iterator[Pair]:
    for number in range(max(len(left), len(right))):
        yield Pair(left[number] if number < len(left) else None, right[number] if number < len(right) else None)
    left.clear()
    right.clear()


# Two texts compared

_Run = tuple[str, int, int, int, int]
"""A kind, and the lines that it is about in the one and the other, as difflib tells them."""


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _changed_runs(left: list[str], right: list[str]) -> list[_Run]:
    """Return runs of lines that are equal or not, in the order of the text."""
    shorter = min(len(left), len(right))
    head = next((n for n in range(shorter) if left[n] != right[n]), shorter)
    rest = shorter - head
    tail = next((n for n in range(rest) if left[-1 - n] != right[-1 - n]), rest)
    ends = len(left) - tail, len(right) - tail
    middle: list[_Run] = [("replace", head, ends[0], head, ends[1])]
    if max(ends[0] - head, ends[1] - head) <= MOST_COMPARED:
        # Nothing else needs it, and a chat is ready for input sooner.
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, left[head : ends[0]], right[head : ends[1]], autojunk=False)
        middle = [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in matcher.get_opcodes()]
    runs = [("equal", 0, head, 0, head), *middle, ("equal", ends[0], len(left), ends[1], len(right))]
    return [run for run in runs if run[1] < run[2] or run[3] < run[4]]


def _grouped(runs: Iterable[_Run]) -> Iterator[list[_Run]]:
    """Yield what belongs together: changes, with a few equal lines around them."""
    group: list[_Run] = []
    for tag, a, b, c, d in runs:
        if tag != "equal":
            group.append((tag, a, b, c, d))
        elif not group:
            group = [(tag, max(a, b - CONTEXT), b, max(c, d - CONTEXT), d)]
        elif b - a <= 2 * CONTEXT:
            group.append((tag, a, b, c, d))
        else:
            yield [*group, (tag, a, a + CONTEXT, c, c + CONTEXT)]
            group = [(tag, b - CONTEXT, b, d - CONTEXT, d)]
    if any(run[0] != "equal" for run in group):
        last = group[-1]
        if last[0] == "equal":
            group[-1] = (last[0], last[1], min(last[2], last[1] + CONTEXT), last[3], min(last[4], last[3] + CONTEXT))
        yield group


def _rows(run: _Run, left: Sequence[str], right: Sequence[str]) -> Iterator[Row]:
    tag, a, b, c, d = run
    if tag == "equal":
        for number in range(b - a):
            yield Row("context", a + number + 1, c + number + 1, left[a + number])
        return
    for number in range(a, b):
        yield Row("removed", number + 1, None, left[number])
    for number in range(c, d):
        yield Row("added", None, number + 1, right[number])
