"""What a sandbox has refused to let a program write, as far as the program's own words tell."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from bullpen.sandbox.profile import Profile

MOST_PATHS = 5
_REFUSED = "ead-only file system"
_BEFORE = re.compile(r""": [Rr]ead-only file system""")
_BESIDE_A_PATH = re.compile(r"""[\s'"`‘’:]""")
_LONGEST_PATH = 4096
_AFTER = re.compile(r"""[Rr]ead-only file system[^\n'"]{0,40}['"]([^'"\n]+)['"]""")


def refused_paths(output: str, profile: Profile) -> tuple[str, ...]:
    """Return the paths that a program says it may not write, and that the profile does not let it write."""
    if _REFUSED not in output:
        return ()
    found = dict.fromkeys(_absolute(path, profile.folder) for path in _paths(output))
    return tuple(path for path in found if profile.access_to(path) != "write")[:MOST_PATHS]


def refusal(path: str, profile: Profile) -> str:
    """Return what a person is told of a path that was refused, with what allows it."""
    whole, said = PurePosixPath(path), f"The sandbox did not let it write {path}."
    if not whole.is_relative_to(profile.folder):
        return f'{said} To allow that, write in its entry in the team file: writable = ["{whole.parent}"]'
    if profile.permission == "read-only":
        return f"{said} Its permissions are read-only."
    above = [place.path for place in profile.places if whole.is_relative_to(place.path)][-1]
    name = PurePosixPath(above).relative_to(profile.folder)
    return f'{said} It makes programs run. To allow that, write in its entry in the team file: writable = ["{name}"]'


def _paths(output: str) -> Iterator[str]:
    for line in output.splitlines():
        if _REFUSED in line:
            yield from _AFTER.findall(line) or _named_before(line)


def _named_before(line: str) -> Iterator[str]:
    for found in _BEFORE.finditer(line):
        said = line[max(0, found.start() - _LONGEST_PATH) : found.start()]
        if path := _BESIDE_A_PATH.split(said.rstrip("'\"`’"))[-1]:
            yield path


def _absolute(path: str, folder: str) -> str:
    return str(PurePosixPath(folder, path))
