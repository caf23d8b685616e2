"""The steps of a turn as folds: a tool with its input, its answer and the files it changed; a thought; the plan."""

from collections.abc import Awaitable, Callable, Iterable

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from bullpen.text.numbers import duration
from bullpen.tui.edits import edits_content
from bullpen.tui.fold import Fold
from bullpen.tui.text import beginning, one_line, shown
from bullpen.view.steps import Step, Steps

LoadSteps = Callable[[], Awaitable[Steps]]

MOST_CHARACTERS = 4_000
MOST_LINES = 60
# Each one column wide in every terminal, so that nothing after it is shifted.
SIGNS = {"thinking": "✻", "notice": "!", "plan": "☑"}


def title_of(step: Step) -> Content:
    """Return a step on one line."""
    title = one_line(step.title, 40)
    if step.kind != "tool":
        summary = one_line(step.summary or step.output, 100)
        return Content.assemble((f"{SIGNS[step.kind]} {title} ", "bold"), summary)
    sign, style = (
        ("✗", "$text-error") if step.failed else ("…", "$text-accent") if step.is_open else ("✓", "$text-success")
    )
    files = f"  ± {one_line(', '.join(step.changed_files), 60)}" if step.changed_files else ""
    return Content.assemble(
        (f"{sign} ", style), (f"{title} ", "bold"), one_line(step.summary, 100), (files, "$text-accent")
    )


def inside_of(step: Step) -> Iterable[Widget]:
    """Yield everything that is known about a step."""
    if step.input:
        yield _text(step.input, "input")
    if step.edits:
        yield Static(edits_content(step.edits, MOST_LINES), classes="edits", markup=False)
    if step.output:
        yield _text(step.output, "thought" if step.kind == "thinking" else "output")
    elif step.kind == "tool" and not step.is_open:
        yield _text("(no output)", "thought")
    if step.changed_files:
        yield _text("\n".join(f"± {shown(path)}" for path in step.changed_files), "files")


class StepFold(Fold):
    """One step."""

    DEFAULT_CSS = """
    StepFold .input { color: $text-accent; }
    StepFold .output { color: $text-muted; background: $boost; padding: 0 1; }
    StepFold .thought { color: $text-muted; text-style: italic; }
    StepFold .files { color: $text-accent; }
    """

    def __init__(self, step: Step) -> None:
        super().__init__(title_of(step), lambda: inside_of(step))
        self.step = step

    async def show_change(self) -> None:
        """Show what has changed about the step."""
        self.set_title(title_of(self.step))
        await self.renew()


class StepsFold(Fold):
    """Everything that an agent did before it answered, on one line that opens into the steps."""

    def __init__(self, steps: Steps, seconds: float) -> None:
        title = f"{steps.summary} · {duration(seconds)}" if seconds else steps.summary
        super().__init__(Content(title), lambda: [StepFold(step) for step in steps])


class RecordedFold(Fold):
    """The same for a turn that nobody followed here: its record is read when somebody opens it."""

    def __init__(self, load: LoadSteps) -> None:
        super().__init__(Content("what it did"), self._folds)
        self._load = load
        self._steps: Steps | None = None

    async def toggle(self) -> None:
        """Open or close; the first time, read the record."""
        if self._steps is None:
            self._steps = await self._load()
            self.set_title(Content(self._steps.summary if self._steps else "nothing but the answer"))
        await super().toggle()

    def _folds(self) -> Iterable[Widget]:
        return [StepFold(step) for step in self._steps or ()]


def _text(text: str, kind: str) -> Static:
    part = beginning(text, MOST_CHARACTERS, MOST_LINES)
    more = f"\n… {part.left_out:,} more characters" if part.left_out else ""
    return Static(Content(f"{part.text.rstrip()}{more}"), classes=kind, markup=False)
