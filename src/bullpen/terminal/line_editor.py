"""LineEditor: the line that a person is writing: keys in, text out. Independent of the terminal."""

from collections.abc import Callable, Sequence

from bullpen.terminal.keys import Key, Typed

Complete = Callable[[str], tuple[str, Sequence[str]]]
"""From the text before the cursor to the piece of it that can be completed, and what it could become."""

CONTINUES = "\\"


class LineEditor:
    """A text with a cursor, a history and completion."""

    def __init__(self, history: Sequence[str] = (), complete: Complete = lambda _: ("", ())) -> None:
        self.text = ""
        self.cursor = 0
        self.choices: tuple[str, ...] = ()
        """The possible completions after the last Tab."""
        self._history = list(history)
        self._place = len(self._history)
        self._draft = ""
        self._cut = ""
        self._complete = complete

    def press(self, key: Key) -> str | None:
        """Handle a key. If it sends the text, return the text and start again with an empty line."""
        self.choices = ()
        if isinstance(key, Typed):
            self._insert(_writable(key.text))
            return None
        if key.name == "enter":
            return self._enter()
        action = _ACTIONS.get(key.name)
        if action is not None:
            action(self)
        return None

    def put(self, text: str) -> None:
        """Put a text into the line, so that it is not lost; what was in the line goes into the history."""
        self.remember(self.text)
        self._replace(text)

    def clear(self) -> str:
        """Empty the line; return its text."""
        text = self.text
        self._replace("")
        return text

    def remember(self, text: str) -> None:
        """Add a text to the history."""
        if text.strip() and self._history[-1:] != [text]:
            self._history.append(text)
        self._place = len(self._history)

    def _enter(self) -> str | None:
        if self.text[: self.cursor].endswith(CONTINUES):
            self.text = self.text[: self.cursor - 1] + self.text[self.cursor :]
            self.cursor -= 1
            self._insert("\n")
            return None
        text = self.clear()
        self.remember(text)
        return text

    def _insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def _replace(self, text: str) -> None:
        self.text = text
        self.cursor = len(text)

    def _backspace(self) -> None:
        if self.cursor:
            self._remove(self.cursor - 1, self.cursor, keep=False)

    def _delete(self) -> None:
        self._remove(self.cursor, self.cursor + 1, keep=False)

    def _cut_word(self) -> None:
        self._remove(self._word_start(), self.cursor)

    def _cut_to_start(self) -> None:
        self._remove(self._line_start(), self.cursor)

    def _cut_to_end(self) -> None:
        self._remove(self.cursor, self._line_end())

    def _remove(self, start: int, end: int, *, keep: bool = True) -> None:
        if keep and start < end:
            self._cut = self.text[start:end]
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _yank(self) -> None:
        self._insert(self._cut)

    def _left(self) -> None:
        self.cursor = max(0, self.cursor - 1)

    def _right(self) -> None:
        self.cursor = min(len(self.text), self.cursor + 1)

    def _home(self) -> None:
        self.cursor = self._line_start()

    def _end(self) -> None:
        self.cursor = self._line_end()

    def _word_left(self) -> None:
        self.cursor = self._word_start()

    def _word_right(self) -> None:
        rest = self.text[self.cursor :]
        word = rest.split(maxsplit=1)[:1]
        self.cursor += len(rest) - len(rest.lstrip()) + len("".join(word))

    def _up(self) -> None:
        start = self._line_start()
        if start:
            self._to_column(start - 1, self.cursor - start)
        elif self._place:
            self._go_to(self._place - 1)

    def _down(self) -> None:
        end = self._line_end()
        if end < len(self.text):
            self._to_column(self.text.find("\n", end + 1) % (len(self.text) + 1), self.cursor - self._line_start())
        elif self._place < len(self._history):
            self._go_to(self._place + 1)

    def _to_column(self, end: int, column: int) -> None:
        """Move into the line that ends there."""
        start = self.text.rfind("\n", 0, end) + 1
        self.cursor = min(start + column, end)

    def _go_to(self, place: int) -> None:
        if self._place == len(self._history):
            self._draft = self.text
        self._place = place
        self._replace(self._history[place] if place < len(self._history) else self._draft)

    def _tab(self) -> None:
        piece, choices = self._complete(self.text[: self.cursor])
        if not choices:
            return
        common = _common_beginning(choices)
        if len(common) > len(piece) or len(choices) == 1:
            self.text = self.text[: self.cursor - len(piece)] + common + self.text[self.cursor :]
            self.cursor += len(common) - len(piece)
        if len(choices) > 1:
            self.choices = tuple(choices)

    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.cursor) + 1

    def _line_end(self) -> int:
        end = self.text.find("\n", self.cursor)
        return len(self.text) if end < 0 else end

    def _word_start(self) -> int:
        before = self.text[: self.cursor].rstrip()
        word = before.rsplit(maxsplit=1)[-1:]
        return len(before) - len("".join(word))


_ACTIONS: dict[str, Callable[[LineEditor], None]] = {
    "backspace": LineEditor._backspace,
    "cut to end": LineEditor._cut_to_end,
    "cut to start": LineEditor._cut_to_start,
    "cut word": LineEditor._cut_word,
    "delete": LineEditor._delete,
    "down": LineEditor._down,
    "end": LineEditor._end,
    "home": LineEditor._home,
    "left": LineEditor._left,
    "new line": lambda editor: editor._insert("\n"),
    "right": LineEditor._right,
    "tab": LineEditor._tab,
    "up": LineEditor._up,
    "word left": LineEditor._word_left,
    "word right": LineEditor._word_right,
    "yank": LineEditor._yank,
}


def _writable(text: str) -> str:
    """Return as much of a typed or pasted text as fits into the line."""
    return text if text.isprintable() else "".join(filter(_is_writable, text))


def _is_writable(letter: str) -> bool:
    return letter in "\n\t" or letter.isprintable()


def _common_beginning(choices: Sequence[str]) -> str:
    """Return the common beginning of all, as the first one spells it."""
    first, *others = choices
    length = len(first)
    for other in others:
        same = 0
        while same < min(length, len(other)) and first[same].lower() == other[same].lower():
            same += 1
        length = same
    return first[:length]
