"""Instruction files with what they import: a line such as `@docs/style.md` is replaced by that file's text."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bullpen.errors import InstructionFileProblem
from bullpen.markers.code import hide_code
from bullpen.team.instruction_files import MAX_BYTES, InstructionFile, read_instruction_file
from bullpen.text.clean import byte_length
from bullpen.text.patterns import pattern

DEEPEST = 5
"""How often an imported file may import another one."""
MOST_FILES = 100
"""Of one reader."""
MOST_MENTIONS = 1_000
"""Of one reader: what may be an import is looked for on the disk."""
TOO_MUCH = "would be too much text"
TEXT_ENDINGS = (".md", ".mdc", ".txt")
"""A name with one of these is meant to be a file; others may be the names of people or packages."""
HOME = "~/"
# No longer than a path can be: to resolve one takes longer with each of its parts.
_MENTION = pattern(r"(?<!\S)@(?P<path>[^\s\0`]{1,4096}+)(?![^\s\0`])")
_ALONE = pattern(r"\s*(?:[-*+]\s+)?@\S+\s*")
"""A line that only imports."""
_AFTER = ".,;:!?)]}'\""


class ReadInstructions(Struct, kw_only=True):
    """The instruction files of one agent, read one after another; each file is in them once."""

    outside_allowed: bool
    texts: list[str] = []
    names: list[str] = []
    """The files whose text it is."""
    problems: list[str] = []
    """Why others could not be read."""
    room: int = MAX_BYTES
    """How many bytes may still be imported."""
    looked_for: int = 0
    """How many mentions may have been imports so far."""
    seen: set[Path] = set()

    def add(self, file: InstructionFile) -> None:
        """Read a file with all that it imports."""
        path = _resolved(file.folder, file.name)
        if path in self.seen:
            return
        try:
            text = self._read(file, path)
        except InstructionFileProblem as problem:
            self.problems.append(str(problem))
            return
        self.texts.append(self._with_imports(text, path, file, 0))

    def _read(self, file: InstructionFile, path: Path | None) -> str:
        text = read_instruction_file(file.folder, file.name, outside_allowed=self.outside_allowed)
        if path is not None:
            self.seen.add(path)
        self.names.append(file.name)
        return text

    def _with_imports(self, text: str, path: Path | None, file: InstructionFile, depth: int) -> str:
        """Return a text with what it imports: in the place of a line that says nothing else, else below its line."""
        if path is None or "@" not in text:
            return text
        pieces, done = list[str](), 0
        for start, end, found_names in mentions(text):
            found = [self._imported(name, path, file, depth) for name in found_names]
            imported = "\n\n".join(one.strip("\n") for one in found if one is not None)
            if imported:
                line = text[start:end]
                pieces += (text[done:start], imported if _ALONE.fullmatch(line) else f"{line}\n\n{imported}\n")
                done = end
        return "".join((*pieces, text[done:]))

    def _imported(self, name: str, path: Path, file: InstructionFile, depth: int) -> str | None:
        """Return the text of a file that another one imports; None if it is not one, or may not be read."""
        self.looked_for += 1
        if self.looked_for > MOST_MENTIONS:
            if self.looked_for == MOST_MENTIONS + 1:
                rest = f"{name!r} in {file.name} and all that follows"
                self.problems.append(f"{rest} is not imported: there are {MOST_MENTIONS:,} mentions before it.")
            return None
        target = _target(name, path.parent)
        if target is None or target in self.seen:
            return None
        is_file = target.suffix.lower() in TEXT_ENDINGS or name.startswith(HOME)
        if (why := self._why_not(target, file, depth)) is not None:
            if is_file:
                self.problems.append(f"{name!r} in {file.name} is not imported: it {why}.")
            return None
        shown = str(target) if Path(file.name).is_absolute() else str(target.relative_to(file.folder.resolve()))
        imported = InstructionFile(name=shown, folder=file.folder)
        try:
            text = self._read(imported, target)
        except InstructionFileProblem as problem:
            if is_file:
                self.problems.append(str(problem))
            return None
        self.room -= byte_length(text)
        if self.room < 0:
            self.names.pop()
            self.problems.append(f"{name!r} in {file.name} is not imported: it {TOO_MUCH}.")
            return None
        return self._with_imports(text, target, imported, depth + 1)

    def _why_not(self, target: Path, file: InstructionFile, depth: int) -> str | None:
        """Return why a file is not imported, in words that follow "it"; None: it may be."""
        folder = file.folder.resolve()
        if not target.is_relative_to(folder):
            return f"is outside {folder}"
        if target.name.startswith(".") or _is_hidden(target.relative_to(folder)):
            return "is a hidden file, which may hold secrets"
        if not _exists(target):
            return "does not exist"
        if depth >= DEEPEST:
            return f"is imported over more than {DEEPEST} files"
        if self.room < 0:
            return TOO_MUCH
        return f"would be one of more than {MOST_FILES} files" if len(self.names) >= MOST_FILES else None


def mentions(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the lines that mention files outside of code: where a line begins and ends, and what it mentions."""
    seen, end = hide_code(text), 0
    while (at := seen.find("@", end)) >= 0:
        begin = seen.rfind("\n", 0, at) + 1
        end = seen.find("\n", at) % (len(seen) + 1)
        names = [found["path"] for found in _MENTION.finditer(seen, begin, end)]
        if names:
            yield begin, end, names


def _target(name: str, folder: Path) -> Path | None:
    """Return the file that a mention means, without what ends a sentence after it."""
    if name.startswith(HOME):
        name = os.path.expanduser(name)  # noqa: PTH111 - Path.expanduser raises an error if there is no home
    target = _resolved(folder, name)
    if target is not None and _exists(target):
        return target
    return _resolved(folder, name.rstrip(_AFTER))


def _is_hidden(path: Path) -> bool:
    """Return whether a file in a hidden folder may hold secrets: a text, such as .github/style.md, does not."""
    is_text = path.suffix.lower() in TEXT_ENDINGS
    return any(part == ".git" or (part.startswith(".") and not is_text) for part in path.parts[:-1])


def _resolved(folder: Path, name: str) -> Path | None:
    try:
        return (folder / name).resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def _exists(path: Path) -> bool:
    # Path.exists raises an error for a name that is too long.
    return os.path.exists(path)  # noqa: PTH110
