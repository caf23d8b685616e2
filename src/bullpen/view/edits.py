"""Edits: the diff of a tool that edits files, made from what it was given. Each CLI names its arguments its own way."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bullpen.file_changes import FileKind
from bullpen.view.diff import FileDiff, Hunk, Row, counts, text_hunks

MOST_ROWS = 300
"""Of one tool that are kept; the diff of the turn has all of them."""
MOST_COLUMNS = 500
MOST_CHARACTERS = 200_000
"""Of the texts that are compared."""


class EditTool(Struct, frozen=True, kw_only=True):
    """How a tool names what it is given."""

    path: str = "file_path"
    old: str = ""
    new: str
    """The new text, or all of the file if there is no old one."""
    edits: str = ""
    """A list of edits of one file, each with an old and a new text."""


_REPLACES = EditTool(old="old_string", new="new_string")
_WRITES = EditTool(new="content")

EDIT_TOOLS: dict[str, EditTool] = {
    # claude
    "Edit": _REPLACES,
    "MultiEdit": EditTool(old="old_string", new="new_string", edits="edits"),
    "Write": _WRITES,
    "NotebookEdit": EditTool(path="notebook_path", new="new_source"),
    # gemini, qwen
    "replace": _REPLACES,
    "edit": _REPLACES,
    "write_file": _WRITES,
}
PATCH_TOOLS: dict[str, tuple[str, ...]] = {
    # codex
    "apply_patch": ("input", "patch"),
}
LISTING_TOOLS: dict[str, str] = {
    # codex, which does not say more than the path and the kind
    "file_change": "changes",
}
_KINDS: dict[str, FileKind] = {"add": "added", "delete": "deleted"}
_PATCH_FILES: dict[str, FileKind] = {
    "*** Add File: ": "added",
    "*** Update File: ": "changed",
    "*** Delete File: ": "deleted",
}
_MOVED = "*** Move to: "


def edits_of(tool: str, given: Mapping[str, Any]) -> tuple[FileDiff, ...]:
    """Return what a tool is to change, file by file, bounded; nothing if it does not edit or cannot be understood."""
    if (names := EDIT_TOOLS.get(tool)) is not None:
        found = _replaced(names, given)
    elif tool in LISTING_TOOLS:
        found = tuple(_listed(given.get(LISTING_TOOLS[tool])))
    else:
        patches = (given.get(name) for name in PATCH_TOOLS.get(tool, ()))
        found = next((tuple(_patched(patch)) for patch in patches if isinstance(patch, str)), ())
    return tuple(_bounded(found))


def _replaced(names: EditTool, given: Mapping[str, Any]) -> tuple[FileDiff, ...]:
    path = given.get(names.path)
    edits = given.get(names.edits) if names.edits else [given]
    if not isinstance(path, str) or not isinstance(edits, list):
        return ()
    hunks = [hunk for edit in edits if isinstance(edit, Mapping) for hunk in _hunks(names, edit)]
    added, removed = counts(hunks)
    return (FileDiff(path=path, added=added, removed=removed, hunks=tuple(hunks)),) if hunks else ()


def _hunks(names: EditTool, edit: Mapping[str, Any]) -> tuple[Hunk, ...]:
    old, new = edit.get(names.old, "") if names.old else "", edit.get(names.new)
    if not isinstance(old, str) or not isinstance(new, str):
        return ()
    return text_hunks(old[:MOST_CHARACTERS], new[:MOST_CHARACTERS])


def _listed(changes: object) -> Iterator[FileDiff]:
    """Yield the files that a tool names, with their lines if it says them."""
    for change in changes if isinstance(changes, list) else ():
        match change:
            case {"path": str(path), **more}:
                kind, patch = _KINDS.get(str(more.get("kind")), "changed"), more.get("diff")
                hunks = _hunks_in(patch) if isinstance(patch, str) else ()
                added, removed = counts(hunks)
                yield FileDiff(path=path, kind=kind, added=added, removed=removed, hunks=hunks)


def _patched(patch: str) -> Iterator[FileDiff]:
    """Yield the files of a patch as Codex writes it: "*** Update File: path", and lines with their signs."""
    path, source, kind = "", "", "changed"
    lines: list[str] = []
    for line in [*patch[:MOST_CHARACTERS].split("\n"), "*** End Patch"]:
        if path and line.startswith(_MOVED):
            path, source = line.removeprefix(_MOVED), path
        elif line.startswith("*** "):
            if path:
                yield _one_patched(path, source, _PATCH_FILES[kind], lines)
            begins = next((word for word in _PATCH_FILES if line.startswith(word)), "")
            path, source, kind, lines = line.removeprefix(begins) if begins else "", "", begins, []
        else:
            lines.append(line)


def _one_patched(path: str, source: str, kind: FileKind, lines: Sequence[str]) -> FileDiff:
    hunks = _hunks_in("\n".join(lines))
    added, removed = counts(hunks)
    renamed: FileKind = "renamed" if source else kind
    return FileDiff(path=path, renamed_from=source, kind=renamed, added=added, removed=removed, hunks=hunks)


def _hunks_in(patch: str) -> tuple[Hunk, ...]:
    """Return the lines of a patch that have a sign, without numbers; "@@" begins another place in the file."""
    hunks: list[list[Row]] = [[]]
    for line in patch.split("\n"):
        if line.startswith("@@"):
            hunks.append([])
        elif line[:1] == "+" and not line.startswith("+++ "):
            hunks[-1].append(Row("added", None, None, line[1:]))
        elif line[:1] == "-" and not line.startswith("--- "):
            hunks[-1].append(Row("removed", None, None, line[1:]))
        elif line[:1] == " ":
            hunks[-1].append(Row("context", None, None, line[1:]))
    return tuple(Hunk(heading="", rows=tuple(rows)) for rows in hunks if rows)


def _bounded(files: Sequence[FileDiff]) -> Iterator[FileDiff]:
    """Yield files with no more rows than are shown, and how many more there are."""
    room = MOST_ROWS
    for file in files[:MOST_ROWS]:
        hunks, left = [], 0
        for hunk in file.hunks:
            rows = tuple(_shortened(row) for row in hunk.rows[:room])
            room, left = room - len(rows), left + len(hunk.rows) - len(rows)
            hunks += [Hunk(heading=hunk.heading, rows=rows)] if rows else []
        more = (Hunk(heading="", rows=(Row("note", None, None, f"… {left:,} more lines"),)),) if left else ()
        yield replace(file, hunks=(*hunks, *more))


def _shortened(row: Row) -> Row:
    return row if len(row.text) <= MOST_COLUMNS else replace(row, text=f"{row.text[:MOST_COLUMNS]}…")
