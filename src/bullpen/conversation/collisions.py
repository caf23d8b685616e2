"""Collisions: files that several turns changed which worked in one folder at the same time; pure.

What changed is found by looks at the folder. Who did it is found by what the turns were doing since the look before:
the tools that ran, and which files each could change. A program that does not tell its tools may change any file.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct

from bullpen.conversation.tool_reach import NOTHING, Reach, named, reach_of
from bullpen.file_changes import FileChange, FileState
from bullpen.turn_events import Event, ToolFinished, ToolStarted

MOST_OF_A_FILE = 10
"""How often collisions in one file are told."""


DONE, DOING, SEEN, ABLE = range(4)
"""How a turn is suspected of having changed a file: its tool names it and has ended, or runs, or could change any."""


class Collision(Struct, frozen=True, kw_only=True):
    """A file that was changed again, by another turn than before."""

    file: FileChange
    """From the version of the first to the version of the second."""
    first: str
    second: str
    """The ids of the turns."""
    is_sure: bool = True
    is_first_seen: bool = True
    """Whether there was a look at the first one's version; else the file's old state is what both began with."""
    base: FileState | None = None
    """What the file was before the first one changed it."""


class _Tool(Struct):
    """A tool that runs, or has run since the look before."""

    reach: Reach
    ended: int | None = None
    """How many looks had begun when it ended."""
    seen: set[str] = set()
    """The files that have changed since it began."""


class _Doing(Struct):
    """What one turn is doing."""

    folder: str
    tells_tools: bool
    tools: dict[str, _Tool] = {}


class _Touched(Struct):
    """Who may have made the present version of a file."""

    by: frozenset[str]
    base: FileState | None
    told: int = 0


class Overlap:
    """Turns that work in one folder at the same time."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._doings: dict[str, _Doing] = {}
        self._files: dict[str, _Touched] = {}
        self._unexplained: dict[str, FileChange] = {}
        """What the last look has found that nobody seemed to do: what an agent says may come a little later."""
        self._late: list[Collision] = []
        self._looks = 0
        self._have_met = False
        """Whether several turns have worked there at the same time: only then there are looks while they work."""

    @property
    def turns(self) -> Collection[str]:
        """The ids of the turns that run."""
        return self._doings.keys()

    def begins(self, turn_id: str, folder: str, *, tells_tools: bool) -> None:
        """Add a turn whose agent works in a folder below the root."""
        self._have_met = self._have_met or bool(self._doings)
        self._doings[turn_id] = _Doing(folder=folder, tells_tools=tells_tools)

    def ends(self, turn_id: str) -> None:
        """Remove a turn after the last look at what it did."""
        self._doings.pop(turn_id, None)

    def on_event(self, turn_id: str, event: Event) -> bool:
        """Note what a turn is doing; return whether it has just done what may have changed files."""
        doing = self._doings.get(turn_id)
        if doing is None:
            return False
        match event:
            case ToolStarted():
                reach = reach_of(event.name, event.input, self._root, doing.folder)
                if reach != NOTHING:
                    doing.tools[event.id] = _Tool(reach)
                    self._explain(turn_id, doing.tools[event.id])
            case ToolFinished(changed_files=paths):
                tool = doing.tools.get(event.id)
                if tool is None and paths:
                    tool = doing.tools[event.id] = _Tool(named(paths, self._root, doing.folder))
                if tool is not None:
                    self._ended(doing, event, tool)
                    return True
            case _:
                pass
        return False

    def _explain(self, turn_id: str, tool: _Tool) -> None:
        """Note what a tool had changed before its agent's words about it were read."""
        for path in sorted(self._unexplained.keys() & (tool.reach or ())):
            tool.seen.add(path)
            collision = self._made(self._unexplained.pop(path), frozenset([turn_id]), are_sure=True)
            self._late += [collision] if collision is not None else []

    def _ended(self, doing: _Doing, event: ToolFinished, tool: _Tool) -> None:
        tool.ended = self._looks
        # An edit that failed has changed nothing. And what a turn changes that was always alone is its own.
        if not self._have_met or (event.failed and tool.reach is not None):
            del doing.tools[event.id]

    def did(self, turn_id: str, files: Sequence[FileChange]) -> None:
        """Note what a turn has changed that was alone until now."""
        for file in files:
            self._files[file.path] = _Touched(by=frozenset([turn_id]), base=file.old)

    def begin_look(self) -> None:
        """Note that a look at the folder begins."""
        self._looks += 1

    def seen(self, files: Sequence[FileChange]) -> list[Collision]:
        """Note what a look has found that ends now, and return the collisions."""
        late, self._late, self._unexplained = self._late, [], {}
        found = [collision for file in files if (collision := self._changed(file)) is not None]
        found = [*late, *found]
        for doing in self._doings.values():
            ended = [name for name, tool in doing.tools.items() if tool.ended is not None and tool.ended < self._looks]
            for name in ended:
                del doing.tools[name]
        return found

    def told(self, files: Sequence[FileChange]) -> None:
        """Note that collisions in these files were told."""
        for file in files:
            touched = self._files[file.path]
            touched.told, touched.base = touched.told + 1, file.old

    def _changed(self, file: FileChange) -> Collision | None:
        by, are_sure = self._suspects(file.path)
        if not by:
            # A person, or another program.
            self._unexplained[file.path] = file
            return None
        return self._made(file, by, are_sure=are_sure)

    def _made(self, file: FileChange, by: frozenset[str], *, are_sure: bool) -> Collision | None:
        """Note who has changed a file, and return the collision if somebody else had before."""
        before = self._files.get(file.path)
        touched = self._files[file.path] = before or _Touched(by=by, base=file.old)
        if touched.told >= MOST_OF_A_FILE:
            return None
        if are_sure and len(by) > 1:
            first, second = sorted(by, key=_number)[:2]
            touched.by = frozenset([second])
            return Collision(file=file, first=first, second=second, is_first_seen=False)
        return self._changed_again(file, touched, by) if before is not None else None

    def _changed_again(self, file: FileChange, touched: _Touched, by: frozenset[str]) -> Collision | None:
        if len(touched.by | by) < 2:
            return None
        is_sure = len(touched.by) == len(by) == 1
        first, second = _pair(touched.by, by)
        # What nobody is sure of may hold what both have done.
        touched.by = by if is_sure else by | touched.by
        return Collision(file=file, first=first, second=second, is_sure=is_sure, base=touched.base)

    def _suspects(self, path: str) -> tuple[frozenset[str], bool]:
        """Return the turns that may have changed a file since the look before, and whether each of them surely has."""
        suspects: dict[int, set[str]] = {}
        for turn_id, doing in self._doings.items():
            naming = [tool for tool in doing.tools.values() if tool.reach is not None and path in tool.reach]
            if naming:
                suspects.setdefault(min(_rank(tool, path) for tool in naming), set()).add(turn_id)
            elif not doing.tells_tools or any(tool.reach is None for tool in doing.tools.values()):
                suspects.setdefault(ABLE, set()).add(turn_id)
            for tool in naming:
                tool.seen.add(path)
        rank = min(suspects, default=ABLE)
        return frozenset(suspects.get(rank, ())), rank == DONE


def _rank(tool: _Tool, path: str) -> int:
    """Return how likely it is that a tool has just changed a file that it names; the lowest number: surely."""
    if path in tool.seen:
        # What it did was there already, though perhaps only half of it.
        return SEEN
    return DOING if tool.ended is None else DONE


def is_lost(base: bytes, first: bytes | None, second: bytes | None) -> bool:
    """Return whether something of a first version is not in the second; None: there was no such file."""
    if first is None or second is None:
        return True
    new = set(first.splitlines()).difference(base.splitlines())
    return not new.issubset(second.splitlines())


def _pair(before: frozenset[str], after: frozenset[str]) -> tuple[str, str]:
    """Return two different turns, the one that was probably first and the one that was probably second."""
    first = min(before - after or before, key=_number)
    return first, min(after - {first}, key=_number) if after - {first} else min(before - {first}, key=_number)


def _number(turn_id: str) -> tuple[int, str]:
    return len(turn_id), turn_id
