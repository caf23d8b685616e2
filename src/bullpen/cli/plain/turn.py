"""TurnView: one turn on the page, from its first word to what it took."""

from collections.abc import Iterator

from bullpen.cli.plain.tool_lines import TODO_TOOLS, result_line, todo_line, tool_line
from bullpen.conversation.events import Said, TurnBegan, TurnEnded
from bullpen.terminal.cells import clusters, cut
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import Page
from bullpen.terminal.tables import local_time, safe_line
from bullpen.terminal.wrapping import Wrapper, wrapped
from bullpen.text.clean import clean_text
from bullpen.text.safe import printable
from bullpen.turn_events import Event, Notice, TextDelta, Thinking, TodoItem, TodoList, ToolFinished, ToolStarted, Usage

THINKING = "  ~ "
MOST_THOUGHT = 100
"""Columns of a thought that are shown; the rest is folded."""


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
        self._tools: dict[str, str] = {}
        self._last_tool = ""
        self._todo: tuple[TodoItem, ...] = ()
        self._changed: dict[str, None] = {}
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
            case ToolStarted():
                self._tool(event)
            case ToolFinished():
                self._result(event)
            case TodoList(items) if items and items != self._todo:
                self._todo = items
                self._line(todo_line(items), "dim")
            case Notice():
                style = "yellow" if event.kind in ("retry", "warning") else "dim"
                self._line(f"· {cut(safe_line(event.text), 2 * MOST_THOUGHT)}", style)
            case _:
                pass

    def said(self, said: Said) -> None:
        """Write what is left to write of the reply."""
        self._said = said
        self.end_line()
        reply = said.message.content.strip()
        streamed = clean_text("".join(self._streamed)).strip()
        if not streamed.endswith(reply):
            self._write(wrapped(said.message.content, self._page.columns))

    def ended(self, ended: TurnEnded) -> None:
        """Write how it ended and what it took."""
        self.end_line()
        self._interrupted = False
        parts = [part for part in self._how(ended) if part]
        style = "dim" if ended.state == "done" else "yellow"
        self._line(" · ".join(parts), style)

    def end_line(self) -> None:
        """End a line that is begun, so that something else can be written."""
        self._end_thought()
        if rest := self._wrapper.end_line():
            self._page.write(rest)

    def catch_up(self) -> None:
        """Write what was held back, since nothing more comes for a while."""
        self._write(self._wrapper.flush())

    def interrupt(self) -> None:
        """Make room for something else; what comes next says whose it is."""
        self.end_line()
        # After its reply only what it took is left to say, and that needs no name.
        self._interrupted = self._said is None

    def _begin(self, began: TurnBegan) -> None:
        details = f"turn {began.turn.id} · {local_time(began.at)[-5:]} · given {began.prompt_bytes:,} bytes"
        name = self._colours.member(self.member, safe_line(self.member))
        self._page.write(f"\n{name}  {self._colours.paint(safe_line(details), 'dim')}\n")
        for cut_out in began.cuts:
            self._line(f"! Not everything fitted: {cut_out}.", "yellow")

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

    def _tool(self, tool: ToolStarted) -> None:
        self._tools[tool.id] = tool.name
        if tool.name not in TODO_TOOLS:
            self._last_tool = tool.id
            self._line(f"▸ {tool_line(tool)}", "blue")

    def _result(self, result: ToolFinished) -> None:
        name = self._tools.pop(result.id, "")
        self._changed |= dict.fromkeys(result.changed_files)
        if name in TODO_TOOLS and not result.failed:
            return
        whose = "" if result.id == self._last_tool or not name else f"{safe_line(name)}: "
        mark, style = ("✗", "red") if result.failed else ("✓", "dim")
        self._line(f"{mark} {whose}{result_line(result)}", style, indent="    ")

    def _how(self, ended: TurnEnded) -> Iterator[str]:
        if self._said is not None:
            routing = self._said.message.routing
            to = ", ".join(routing.resolved_addressees) if routing else ""
            yield f"#{self._said.sequence}" + (f" → {safe_line(to)}" if to else "")
        elif ended.state != "done":
            yield f"✗ {ended.state}"
        yield f"{ended.seconds:,.1f} s"
        yield usage_words(ended.usage)
        if self._changed:
            yield f"changed {safe_line(', '.join(self._changed))}"
        if ended.state != "done" and self._streamed:
            yield "what it said so far is kept, and is no message"

    def _line(self, text: str, style: str, indent: str = "  ") -> None:
        lines = wrapped(text, self._page.columns, indent).splitlines()
        self._write("".join(self._colours.paint(line, style) + "\n" for line in lines))

    def _write(self, text: str) -> None:
        if self._interrupted and text.strip():
            self._interrupted = False
            name = self._colours.member(self.member, safe_line(self.member))
            self._page.write(f"\n{name} {self._colours.paint('goes on', 'dim')}\n")
        if text:
            self._page.write(text)


def usage_words(usage: Usage | None) -> str:
    """Return what a turn took, in a few words; nothing, if its program does not say."""
    if usage is None or not (usage.input_tokens or usage.output_tokens):
        return ""
    cost = "" if usage.cost_usd is None else f" · ${usage.cost_usd:,.4f}"
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{cost}"
