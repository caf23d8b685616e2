"""What a person may have changed while an agent had a turn: files that changed when no tool could have changed them."""

import os
from bisect import bisect
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bullpen.clock import milliseconds
from bullpen.conversation.tool_reach import NOTHING, Reach, named, reach_of
from bullpen.file_changes import FileChange, FolderChanges
from bullpen.files.paths import path_of
from bullpen.turn_events import Event, ToolFinished, ToolStarted

SLACK_MILLISECONDS = 2_000
"""What a CLI says of a tool may come so much sooner or later than what the tool does."""
MOST_TOOLS = 10_000
ANY_FILE = ""
"""The path under which tools are noted that could change any file."""
FEW = 3
BACKGROUND = ("run_in_background", "is_background", "background")
"""With one of these a tool ends at once, and its program continues."""


class _Use(Struct):
    """A tool that runs, or has run."""

    reach: Reach
    began: int
    ended: int | None = None
    continues: bool = False
    """Whether its program may continue when it has ended."""


class ToolTimes:
    """When the tools of one turn ran, and which files each could change. Only of a program that tells its tools."""

    def __init__(self, root: str, folder: str) -> None:
        self._root = root
        self._folder = folder
        self._began = milliseconds()
        self._uses: dict[str, _Use] = {}

    def on_event(self, event: Event) -> None:
        """Note that a tool begins, or has ended."""
        match event:
            case ToolStarted() if len(self._uses) < MOST_TOOLS:
                reach = reach_of(event.name, event.input, self._root, self._folder)
                if reach != NOTHING:
                    continues = any(event.input.get(key) for key in BACKGROUND)
                    self._uses[event.id] = _Use(reach, milliseconds(), continues=continues)
            case ToolFinished(changed_files=paths):
                use = self._uses.get(event.id)
                if paths:
                    also = named(paths, self._root, self._folder)
                    begun = self._began if use is None else use.began
                    self._uses[f"{event.id} changed"] = _Use(also, begun, milliseconds())
                if use is not None and not use.continues:
                    use.ended = milliseconds()
            case _:
                pass

    def told_apart(self, changes: FolderChanges, turn_id: str, member: str, root: Path) -> FolderChanges:
        """Return changes with those files marked that the turn has probably not changed. Blocks."""
        if len(self._uses) >= MOST_TOOLS:
            return changes
        now = milliseconds()
        spans = _Spans(self._uses.values(), now=now)
        turn = [(self._began - SLACK_MILLISECONDS, now + SLACK_MILLISECONDS)]

        def may_have_changed(file: FileChange) -> bool:
            at = _changed_at(root, file)
            # Before the turn it was changed by an attempt before it, or the clock of the files is another one.
            return spans.have(file, at) or (at is not None and not _is_in(turn, at))

        files = tuple(
            file if may_have_changed(file) else replace(file, is_perhaps_a_persons=True) for file in changes.files
        )
        note = _note([file.path for file in files if file.is_perhaps_a_persons], turn_id, member)
        return replace(changes, files=files, note=f"{changes.note} {note}".strip())


class _Spans:
    """When each file could be changed: by tools that name it, and by those that could change any."""

    def __init__(self, uses: Iterable[_Use], now: int) -> None:
        named: dict[str, list[tuple[int, int]]] = {}
        for use in uses:
            span = use.began - SLACK_MILLISECONDS, (now if use.ended is None else use.ended) + SLACK_MILLISECONDS
            for path in (ANY_FILE,) if use.reach is None else use.reach:
                named.setdefault(path, []).append(span)
        self._spans = {path: _merged(spans) for path, spans in named.items()}

    def have(self, file: FileChange, at: int | None) -> bool:
        """Return whether a tool could change a file at a time; None: nobody knows when it changed."""
        found = [
            self._spans[path] for path in {ANY_FILE, file.path, file.renamed_from or file.path} & self._spans.keys()
        ]
        return bool(found) if at is None else any(_is_in(spans, at) for spans in found)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, none of which overlap."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def _is_in(spans: list[tuple[int, int]], at: int) -> bool:
    place = bisect(spans, at, key=lambda span: span[0])
    return place > 0 and at <= spans[place - 1][1]


def _changed_at(root: Path, file: FileChange) -> int | None:
    """Return when a file was written or got its name; None if nobody knows, as of one that is not there any more."""
    try:
        # Not when it was modified: a file that is moved keeps that time.
        return os.lstat(os.path.join(os.fsencode(root), path_of(file))).st_ctime_ns // 1_000_000  # noqa: PTH118
    except OSError:
        return None


def _note(paths: Sequence[str], turn_id: str, member: str) -> str:
    if not paths:
        return ""
    more = f" and {len(paths) - FEW:,} more" if len(paths) > FEW else ""
    was, it = ("was", "it") if len(paths) == 1 else ("were", "them")
    return (
        f"{', '.join(paths[:FEW])}{more} {was} perhaps changed by a person: no tool of {member} ran then that could. "
        f"/undo {turn_id} asks before it takes {it} back."
    )
