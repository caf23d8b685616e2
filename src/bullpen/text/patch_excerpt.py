"""A patch of any size for a prompt: file by file, of each at most so much, and the names of what did not fit."""

import re
from collections.abc import Iterator

from msgspec import Struct

from bullpen.text.clean import truncate_to_bytes

_FILE = re.compile(r"^(?=diff --(?:git|cc) )", re.MULTILINE)
_NAME = re.compile(r'diff --(?:git|cc) (?:"?a/.*? "?b/)?(.*?)"?$', re.MULTILINE)


class PatchExcerpt(Struct, frozen=True, kw_only=True):
    """What is kept of a patch."""

    text: str
    cut: tuple[str, ...] = ()
    """Files of which only the beginning is in it."""
    left_out: tuple[str, ...] = ()
    """Files that are not in it."""


def patch_excerpt(patch: str, *, most_of_each: int, most: int) -> PatchExcerpt:
    """Return a patch with at most this many bytes of each file, and of all together.

    One generated file must not take the room of all others, which is why each has a limit of its own.
    """
    kept, cut, left_out = list[str](), list[str](), list[str]()
    room = most
    for name, part in _files(patch):
        size = len(part.encode())
        if min(size, most_of_each) > room:
            left_out.append(name)
            continue
        if size > most_of_each:
            part = f"{_beginning(part, most_of_each)}[… the rest of this file's change is left out …]\n"
            cut.append(name)
        room -= min(size, most_of_each)
        kept.append(part)
    return PatchExcerpt(text="".join(kept), cut=tuple(cut), left_out=tuple(left_out))


def _files(patch: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, _FILE.split(patch)):
        name = _NAME.match(part)
        yield (name[1] if name else "?"), part


def _beginning(part: str, most: int) -> str:
    """Return whole lines from the beginning, or what fits of the first one."""
    beginning = truncate_to_bytes(part, most)
    end = beginning.rfind("\n") + 1
    return beginning[:end] or f"{beginning}\n"
