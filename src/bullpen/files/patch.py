"""The patch from one tree to another, as git writes it: bounded, and as text that gives every byte."""

from collections.abc import Generator, Iterator
from contextlib import nullcontext
from io import BytesIO

import msgspec
from msgspec import Struct

from bullpen.file_changes import MOST_PATCH_BYTES, FileChange
from bullpen.files import as_binary
from bullpen.files.compare import DIFF, Compared
from bullpen.files.git import Git
from bullpen.files.paths import path_before, path_of
from bullpen.files.repository import Repository

MOST_BINARY_BYTES = 4 * MOST_PATCH_BYTES
MOST_READ_BYTES = 64 * MOST_PATCH_BYTES
CHUNK_BYTES = 64 * 1024
START = b"diff --git "
PATCH = ("-p", "--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
TYPE = 3
"""How many characters of a mode tell a file from a symbolic link."""


class Patch(Struct, frozen=True):
    """A patch, and the files it is for."""

    text: str
    files: tuple[FileChange, ...]
    """As given; those whose contents are not UTF-8 are binary now."""
    is_cut: bool


def write_patch(repository: Repository, before: str, after: str, compared: Compared) -> Patch:
    """Return the patch for what compare_folders() returned, without what was beside; raises GitFailed."""
    parts = _parts(repository.git(), before, after, "--find-renames" if compared.has_renames else "--no-renames")
    alone = frozenset(compared.beside)
    read = [(file, [next(parts, None) for _ in range(_part_count(file))]) for file in compared.differing]
    parts.close()
    files = [file for file, _ in read if path_of(file) not in alone]
    texts = dict(enumerate(some for file, some in read if path_of(file) not in alone))
    binary = set()
    for number, file in enumerate(files):
        texts[number] = [part and _with_plain_names(file, part) for part in texts[number]]
        if any(part is not None and not _is_text(part) for part in texts[number]):
            binary.add(number)
            texts[number] = [part and _without_lines(repository.git(), part) for part in texts[number]]
    kept, room = [], MOST_PATCH_BYTES
    for some in texts.values():
        whole = [part for part in some if part is not None]
        if len(whole) == len(some) and (length := sum(map(len, whole))) <= room:
            room -= length
            kept += whole
    is_cut = len(kept) < sum(map(len, texts.values()))
    told = [_as_binary(file) if number in binary else file for number, file in enumerate(files)]
    return Patch(b"".join(kept).decode(), tuple(told), is_cut)


def _part_count(file: FileChange) -> int:
    """Return of how many parts a file's patch is: what becomes a link is removed and made."""
    is_remade = file.old is not None and file.new is not None and file.old.mode[:TYPE] != file.new.mode[:TYPE]
    return 2 if is_remade else 1


def _as_binary(file: FileChange) -> FileChange:
    return msgspec.structs.replace(file, is_binary=True, added=0, removed=0)


def _with_plain_names(file: FileChange, part: bytes) -> bytes:
    paths = (path_before(file), path_of(file))
    is_plain = not any(as_binary.is_ambiguous(path) or not _is_text(path) for path in paths)
    return part if is_plain else as_binary.requoted(part, *paths)


def _without_lines(git: Git, part: bytes) -> bytes | None:
    blobs = as_binary.blobs_of(part)
    if blobs is None:
        return part
    contents = []
    for blob in blobs:
        with git.started("cat-file", "blob", blob) if blob.strip("0") else nullcontext(BytesIO()) as output:
            contents.append(output.read(MOST_BINARY_BYTES + 1))
    return None if max(map(len, contents)) > MOST_BINARY_BYTES else as_binary.without_lines(part, *contents)


def _parts(git: Git, before: str, after: str, detect: str) -> Generator[bytes | None, None, None]:
    """Yield the patch file by file; None for what is too large."""
    with git.started("-c", "core.quotePath=false", *DIFF, *PATCH, detect, before, after) as output:
        yield from _split(iter(lambda: output.read(CHUNK_BYTES), b""))


def _split(chunks: Iterator[bytes]) -> Iterator[bytes | None]:
    """Yield what begins with the words of a file's first line."""
    part, is_large, total = b"", False, 0
    for chunk in chunks:
        total += len(chunk)
        part += chunk
        *whole, part = part.split(b"\n" + START) if part else [b""]
        for number, one in enumerate(whole):
            is_first = number == 0
            yield None if is_first and is_large else _begun(one, is_first=is_first) + b"\n"
            is_large = False
        if whole:
            part = START + part
        if len(part) > MOST_PATCH_BYTES:
            # Only its end may still matter, where the next one begins.
            is_large, part = True, part[-len(START) :]
        if total > MOST_READ_BYTES:
            return
    if part:
        yield None if is_large else part


def _begun(part: bytes, *, is_first: bool) -> bytes:
    return part if is_first else START + part


def _is_text(part: bytes) -> bool:
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True
