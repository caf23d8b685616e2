"""NoticeBar: the most urgent decision, with its choices on digits, as commands and for the mouse."""

import asyncio
from collections.abc import Iterable
from itertools import count

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from bullpen.text.numbers import counted
from bullpen.tui.text import lines_of, one_line, shown
from bullpen.view.choices import Choice, Decision

MOST_LINES, MOST_LINES_WHERE_SHORT = 6, 2
AROUND_LABEL, BETWEEN = 4, 2
"""Columns that a button has besides its label, and between two."""


class NoticeBar(Vertical):
    """Only visible while a decision is needed."""

    DEFAULT_CSS = """
    NoticeBar { height: auto; max-height: 16; display: none; padding: 0 1; border-left: thick $warning;
        background: $warning 12%; margin: 0 1; }
    NoticeBar.failure { border-left: thick $error; background: $error 12%; }
    NoticeBar > Static { height: auto; max-height: 6; }
    NoticeBar > #asked { height: auto; max-height: 8; display: none; }
    NoticeBar > #asked > Static { height: auto; background: $panel; padding: 0 1; }
    NoticeBar > #choices { height: auto; }
    NoticeBar #choices > Horizontal { height: 1; }
    NoticeBar Button { height: 1; min-width: 6; width: auto; border: none; margin: 0 2 0 0; padding: 0 1;
        background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__(id="notice")
        self._decisions: tuple[Decision, ...] = ()
        self._text = Static(markup=False)
        self._asked = Static(markup=False)
        self._choices = Vertical(id="choices")
        self._rows: list[list[Choice]] = []
        self._changing = asyncio.Lock()

    @property
    def decision(self) -> Decision | None:
        """The decision that is shown."""
        return self._decisions[0] if self._decisions else None

    @property
    def shown(self) -> tuple[Decision, ...]:
        """Everything that waited when this was shown."""
        return self._decisions

    def compose(self) -> ComposeResult:
        """Yield the text and the place for the choices."""
        yield self._text
        with VerticalScroll(id="asked"):
            yield self._asked
        yield self._choices

    async def show(self, decisions: tuple[Decision, ...]) -> None:
        """Show the first decision and how many others there are, or nothing."""
        if decisions == self._decisions:
            return
        self._decisions = decisions
        self.display = bool(decisions)
        self.screen.set_class(bool(decisions), "with-card")
        if not decisions:
            return
        self.set_class(decisions[0].is_failure, "failure")
        self._show_text()
        # All of it can be scrolled to: nobody is asked about something that they cannot see.
        self._asked.update(Content(decisions[0].shown))
        self.query_one("#asked").display = bool(decisions[0].shown)
        await self._arrange()

    async def on_resize(self) -> None:
        """Let no choice be where nobody sees it."""
        self._show_text()
        await self._arrange()

    def _show_text(self) -> None:
        if self.decision is not None:
            width = self.content_size.width or self.app.size.width
            most = MOST_LINES_WHERE_SHORT if self.screen.has_class("-short") else MOST_LINES
            self._text.update(_text(self.decision.text, len(self._decisions) - 1, width, most))

    async def _arrange(self) -> None:
        async with self._changing:
            # Another decision may have come while the buttons of the last one went away.
            rows = _rows(self.decision.choices if self.decision else (), self.content_size.width)
            if rows != self._rows:
                self._rows = rows
                await self._choices.remove_children()
                numbers = count()
                await self._choices.mount_all(
                    [Horizontal(*(_button(choice, next(numbers)) for choice in row)) for row in rows]
                )


def _rows(choices: Iterable[Choice], width: int) -> list[list[Choice]]:
    """Return choices in as many rows as they need in this width; it is 0 until it is known."""
    rows: list[list[Choice]] = []
    room = 0
    for choice in choices:
        wanted = _label(choice).cell_length + AROUND_LABEL
        if not rows or (width and wanted > room):
            rows.append([])
            room = width
        rows[-1].append(choice)
        room -= wanted + BETWEEN
    return rows


def _text(text: str, others: int, width: int, most_lines: int) -> Content:
    """Return what it is about; of a long text the beginning and the end, which says what to do."""
    more = f" ({counted(others, 'more decision')})" if others else ""
    said = shown(text)
    words, half = " ".join(said.split()), min(len(said), most_lines * width) // 2
    while lines_of(said + more, width) > most_lines and half > 1:
        half -= 1
        said = f"{words[:half]} … {words[-half:]}"
    return Content.assemble(said, (more, "dim"))


def _label(choice: Choice) -> Content:
    """Return the key of a choice and what it does; without a key, how it is typed."""
    typed = "" if choice.key else f" {one_line(choice.typed, 40)}"
    key = f"{choice.key} " if choice.key else ""
    return Content.assemble((key, "bold"), one_line(choice.label, 40), (typed, "dim"))


def _button(choice: Choice, number: int) -> Button:
    # Its question is in it, too: another one may be on the screen when the button is pressed.
    action = f"screen.choose('{choice.action}', {number}, {question_of(choice)!r})"
    return Button(_label(choice), action=action, compact=True)


def question_of(choice: Choice) -> str:
    """Return what a choice is about, as far as that tells it from one about another question."""
    return f"{choice.given.get('turn', '')}/{choice.given.get('question', '')}"
