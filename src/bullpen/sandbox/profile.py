"""Profile: what a program sees of the file system, and what it may write. Everything else it may only read.

Pure: what is there has been looked up by layout.py, and bubblewrap.py or seatbelt.py say it to the system.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from bullpen.permissions import Permission

Access = Literal["write", "read", "nothing", "instead"]
"""May be written; may be read; is an empty folder or file that nobody can write; is another folder or file."""


class Place(Struct, frozen=True, kw_only=True):
    """A folder or a file, and all below it, as far as no place below says otherwise."""

    path: str
    """Absolute, with links resolved: a link leads to where its target is."""
    access: Access
    is_folder: bool = True
    source: str = ""
    """Where that is, if it is not there."""


class Profile(Struct, frozen=True, kw_only=True):
    """What a program and all that it starts may do."""

    folder: str
    """Where it begins."""
    permission: Permission = "read-only"
    places: tuple[Place, ...] = ()
    """Those above come first."""
    network: bool = True
    must_stay: tuple[tuple[str, str | None], ...] = ()
    """Paths that cannot be held, since nothing is there (None) or a link is, and to where that leads: looked at and put
    back after the turn."""

    def access_to(self, path: str) -> Access:
        """Return what may be done with an absolute path, with links resolved."""
        above = [place for place in self.places if _is_at_or_below(path, place.path)]
        return above[-1].access if above else "read"


class Layout(Struct, frozen=True, kw_only=True):
    """What is there of what a profile is made of. All paths are absolute, with links resolved."""

    folder: str
    home: str
    temporary: tuple[str, ...] = ()
    """Where all programs of the system keep temporary files, and sockets."""
    private: str = ""
    """What this program gets instead."""
    shown: tuple[tuple[str, str], ...] = ()
    """What is below one of these and may be read nevertheless, and where that really is."""
    repository: tuple[str, ...] = ()
    """What a commit writes in the folder's repository."""
    written: tuple[str, ...] = ()
    """What its CLI keeps, and what the team file adds."""
    read_only: tuple[str, ...] = ()
    """What makes programs run, below what is written."""
    hidden_folders: tuple[str, ...] = ()
    hidden_files: tuple[str, ...] = ()
    placeholders: tuple[str, ...] = ()
    """Empty folders where folders with settings could be made."""
    copies: tuple[tuple[str, str], ...] = ()
    """Files of which it gets copies, and these."""
    must_stay: tuple[tuple[str, str | None], ...] = ()


def profile_for(layout: Layout, permission: Permission, *, network: bool = True) -> Profile:
    """Return what a program may do with these permissions. Those that may do everything have none."""
    if permission == "full":
        raise ValueError("a program with full permissions is not held")
    # Of several words on one path the last counts: a person's own, in the team file, wins over what is usual.
    places = {path: Place(path=path, access="instead", source=layout.private) for path in layout.temporary}
    places |= _all(layout.hidden_folders, "nothing")
    places |= _all(layout.hidden_files, "nothing", is_folder=False)
    places |= {path: Place(path=path, access="read", source=real) for path, real in layout.shown}
    if permission != "read-only":
        places |= _all((layout.folder, *layout.repository), "write")
        places |= _all(layout.placeholders, "nothing")
    places |= {path: Place(path=path, access="instead", source=copy) for path, copy in layout.copies}
    places |= _all(layout.written, "write")
    places |= _all(layout.read_only, "read")
    return Profile(
        folder=layout.folder,
        permission=permission,
        places=tuple(_needed(sorted(places.values(), key=_order))),
        network=network,
        must_stay=layout.must_stay,
    )


def _all(paths: Iterable[str], access: Access, *, is_folder: bool = True) -> dict[str, Place]:
    return {path: Place(path=path, access=access, is_folder=is_folder) for path in paths}


def _order(place: Place) -> tuple[str, ...]:
    return PurePosixPath(place.path).parts


def _needed(places: Iterable[Place]) -> Iterable[Place]:
    """Leave out what may only be read where that is so anyway: each place takes time at the start."""
    line: list[Place] = []
    for place in places:
        while line and not _is_at_or_below(place.path, line[-1].path):
            line.pop()
        around: Access = line[-1].access if line else "read"
        if place.access == "read" and around == "read":
            continue
        line.append(place)
        yield place


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
