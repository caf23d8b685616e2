"""Keys: from the bytes that a terminal sends to the keys that were pressed."""

import codecs
import re
from collections.abc import Iterator

from msgspec import Struct

PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"

NAMES = {
    "\n": "enter",
    "\r": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x01": "home",
    "\x02": "left",
    "\x04": "end of input",
    "\x05": "end",
    "\x06": "right",
    "\x0b": "cut to end",
    "\x0c": "redraw",
    "\x0e": "down",
    "\x10": "up",
    "\x15": "cut to start",
    "\x17": "cut word",
    "\x19": "yank",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b[7~": "home",
    "\x1b[8~": "end",
    "\x1b[3~": "delete",
    "\x1bb": "word left",
    "\x1bf": "word right",
    "\x1b[1;5D": "word left",
    "\x1b[1;5C": "word right",
    "\x1b[1;3D": "word left",
    "\x1b[1;3C": "word right",
    "\x1b\n": "new line",
    "\x1b\r": "new line",
    "\x1b\x7f": "cut word",
    "\x1b[13;2u": "new line",
    "\x1b[I": "focus in",
    "\x1b[O": "focus out",
    "\x1b": "escape",
}
ESCAPE_SECONDS = 0.05
"""After which an escape is the key, and not the beginning of another one that comes in two pieces."""

_KEY = re.compile(r"\x1b(?:\[[0-9;<>?]*[ -/]*[@-~]|O.|[^\[O])|\x1b|.", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;<>?]*[ -/]*|O)?\Z")


class Pressed(Struct, frozen=True):
    """A key with a name."""

    name: str


class Typed(Struct, frozen=True):
    """Text that goes into the line as it is: a letter, or all that was pasted."""

    text: str
    is_pasted: bool = False


Key = Pressed | Typed


class KeyReader:
    """Reads pieces of input, and joins sequences and characters that are split over two pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._pasted: list[str] | None = None
        """What was pasted so far, while something is being pasted."""

    def feed(self, data: bytes) -> Iterator[Key]:
        """Yield what was pressed."""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        while text:
            if self._pasted is None:
                typed, begins, text = text.partition(PASTE_BEGINS)
                yield from self._keys(typed, is_all=not begins)
                self._pasted = [] if begins else None
                continue
            inside, ends, after = text.partition(PASTE_ENDS)
            if not ends:
                self._rest = _begun_end(text)
                self._pasted.append(text.removesuffix(self._rest))
                return
            yield Typed(_lines("".join([*self._pasted, inside])), is_pasted=True)
            self._pasted, text = None, after

    @property
    def may_be_escape(self) -> bool:
        """Whether an escape has come that may be the key, or the beginning of another one."""
        return self._pasted is None and self._rest == "\x1b"

    def flush(self) -> Iterator[Key]:
        """Yield the escape that nothing has followed."""
        if self.may_be_escape:
            self._rest = ""
            yield Pressed(NAMES["\x1b"])

    def _keys(self, text: str, *, is_all: bool) -> Iterator[Key]:
        if is_all and (unfinished := _UNFINISHED.search(text)):
            self._rest = unfinished[0]
            text = text[: unfinished.start()]
        plain = _lines(text)
        # Nobody types several lines at once: this is a paste from a terminal without paste marks. Pasting never sends.
        if "\n" in plain[:-1] and "\x1b" not in plain:
            yield Typed(plain, is_pasted=True)
            return
        for found in _KEY.finditer(text):
            yield from _key(found[0])


def _begun_end(text: str) -> str:
    """Return the end of a pasted text if it may become the end of the paste."""
    begun = text.rfind("\x1b", -len(PASTE_ENDS))
    return text[begun:] if begun >= 0 and PASTE_ENDS.startswith(text[begun:]) else ""


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _key(text: str) -> Iterator[Key]:
    if text in NAMES:
        yield Pressed(NAMES[text])
    elif text.isprintable():
        yield Typed(text)
