"""TurnView: one turn on the page, from its first word to what it used."""

from collections.abc import Iterator

from bullpen.conversation.events import Said, TurnBegan, TurnEnded
from bullpen.terminal.cells import clusters, cut
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import Page
from bullpen.terminal.tables import safe_line
from bullpen.terminal.wrapping import Wrapper, wrapped
from bullpen.text.numbers import clock, counted, duration, used_by
from bullpen.text.safe import printable
from bullpen.turn_events import Event, TextDelta, Thinking, TodoItem
from bullpen.view.diff import SIGNS
from bullpen.view.messages import was_streamed
from bullpen.view.steps import Step, Steps
from bullpen.view.unanswered import ended_activity

THINKING = "  ~ "
MOST_THOUGHT = 100
"""Columns of a thought that are shown; the rest is left out."""
MOST_COLUMNS = 110
"""Of what a tool was asked, and of its result."""
MOST_ROWS = 12
"""Lines of an edit; /diff shows all of them."""
ROW_COLOURS = {"added": "green", "removed": "red", "context": "dim", "note": "dim"}


class TurnView:
    """Writes what an agent says and does, in the order in which it happens."""

    def __init__(self, page: Page, colours: Colours, began: TurnBegan) -> None:
        self.member = began.turn.member
        self._page = page
        self._colours = colours
        self._wrapper = Wrapper(page.columns)
        self._streamed: list[str] = []
        self._thought_room = -1
        """How much of a thought can still be shown; below 0 while the agent does not think."""
        self._steps = Steps()
        self._begun: list[str] = []
        """The tools whose beginning is written, by the keys of their steps."""
        self._plan: tuple[TodoItem, ...] = ()
        self._said: Said | None = None
        self._interrupted = False
        self._begin(began)

    def event(self, event: Event) -> None:
        """Write what the agent says or does."""
        if isinstance(event, TextDelta | Thinking) and not event.text:
            return
        if not isinstance(event, Thinking):
            self._end_thought()
        if not isinstance(event, TextDelta) and self._wrapper.column:
            self._write(self._wrapper.end_line())
        match event:
            case TextDelta(text):
                self._streamed.append(text)
                self._write(self._wrapper.feed(text))
            case Thinking(text):
                self._think(text)
            case _:
                step = self._steps.add(event)
                if step is not None:
                    self._step(step)

    def said(self, said: Said) -> None:
        """Write what is left to write of the reply."""
        self._said = said
        self.end_line()
        if not was_streamed(said.message, self._streamed):
            self._write(wrapped(said.message.content, self._page.columns))

    def ended(self, ended: TurnEnded) -> None:
        """Write how it ended and what it used."""
        self.end_line()
        self._say_whose("ended")
        parts = [part for part in self._how(ended) if part]
        style = "dim" if ended.state == "done" else "yellow"
        self._line(" · ".join(parts), style)

    def end_line(self) -> None:
        """End the current line, so that something else can be written."""
        self._end_thought()
        self._write(self._wrapper.end_line())

    def catch_up(self) -> None:
        """Write what was held back, since nothing more comes for a while."""
        self._write(self._wrapper.flush())

    def interrupt(self) -> None:
        """Make room for something else; what comes next says whose it is."""
        self._end_thought()
        if self._wrapper.column:
            # Half a word is still held back, and comes whole later.
            self._wrapper.column = 0
            self._page.write("\n")
        self._interrupted = True

    def _begin(self, began: TurnBegan) -> None:
        details = f"turn {began.turn.id} · {clock(began.at)} · given {began.prompt_bytes:,} bytes"
        name = self._colours.member(self.member, safe_line(self.member))
        self._page.write(f"\n{name}  {self._colours.paint(safe_line(details), 'dim')}\n")
        for cut_out in began.cuts:
            self._line(f"! Not everything fits: {cut_out}.", "yellow")

    def _think(self, text: str) -> None:
        if self._thought_room < 0:
            self._thought_room = min(MOST_THOUGHT, (self._page.columns or MOST_THOUGHT) - len(THINKING) - 1)
            self._write(self._colours.paint(THINKING, "dim"))
            text = text.lstrip()
        shown = ""
        for cluster, size in clusters(printable(text.replace("\n", " ").replace("\t", " ").replace("\r", " "))):
            if self._thought_room <= 0:
                break
            self._thought_room -= size
            shown += cluster if self._thought_room > 0 else "…"
            self._thought_room = max(self._thought_room, 0)
        if shown:
            self._write(self._colours.paint(shown, "dim"))

    def _end_thought(self) -> None:
        if self._thought_room >= 0:
            self._thought_room = -1
            self._page.write("\n")

    def _step(self, step: Step) -> None:
        match step.kind:
            case "tool" if step.is_open:
                self._begun.append(step.key)
                self._line(f"▸ {_cut(f'{step.title}  {step.summary}'.rstrip())}", "blue")
                self._edits(step)
            case "tool":
                self._result(step)
            case "plan" if step.items and step.items != self._plan:
                self._plan = step.items
                items = (f"{'☑' if item.done else '☐'} {safe_line(item.text)}" for item in step.items)
                self._line("  ".join(items), "dim")
            case "notice" if step.attempts > 1:
                # A line that is written cannot count; the status does.
                pass
            case "notice":
                self._line(f"· {cut(safe_line(step.output), 2 * MOST_THOUGHT)}", "yellow")
            case _:
                pass

    def _edits(self, step: Step) -> None:
        """Write the first lines of what a tool changes."""
        rows = [row for file in step.edits for row in file.rows]
        for row in rows[:MOST_ROWS]:
            line = f"    {SIGNS[row.kind] or ' '} {cut(printable(row.text.expandtabs(4)), MOST_COLUMNS)}".rstrip()
            self._write(self._colours.paint(line, ROW_COLOURS[row.kind]) + "\n")
        if len(rows) > MOST_ROWS:
            self._line(f"… {counted(len(rows) - MOST_ROWS, 'more line')}", "dim", indent="    ")

    def _result(self, step: Step) -> None:
        # Below another tool's line it says which tool it is about.
        is_elsewhere = step.key in self._begun[:-1]
        whose = f"{safe_line(step.title)}: " if is_elsewhere else ""
        sign, style = ("✗", "red") if step.failed else ("✓", "dim")
        self._line(f"{sign} {whose}{_cut(step.result)}", style, indent="    ")

    def _how(self, ended: TurnEnded) -> Iterator[str]:
        if self._said is not None:
            routing = self._said.message.routing
            to = ", ".join(routing.resolved_addressees) if routing else ""
            yield f"#{self._said.sequence}" + (f" → {safe_line(to)}" if to else "")
        elif ended.state != "done":
            yield f"{ended_activity(ended.state).sign} {ended.state}"
        yield duration(ended.seconds)
        yield used_by(ended.usage)
        if changed := self._steps.changed_files:
            yield f"changed {safe_line(', '.join(changed))}"
        if ended.state != "done" and self._streamed:
            yield "what it said so far is kept, but is not a message"

    def _line(self, text: str, style: str, indent: str = "  ") -> None:
        lines = wrapped(text, self._page.columns, indent).splitlines()
        self._write("".join(self._colours.paint(line, style) + "\n" for line in lines))

    def _write(self, text: str) -> None:
        if text.strip():
            self._say_whose("continues")
        if text:
            self._page.write(text)

    def _say_whose(self, what: str) -> None:
        """Name the agent again if something else is above what comes next."""
        if self._interrupted:
            self._interrupted = False
            name = self._colours.member(self.member, safe_line(self.member))
            self._page.write(f"\n{name} {self._colours.paint(what, 'dim')}\n")


def _cut(text: str) -> str:
    return cut(safe_line(text), MOST_COLUMNS)
