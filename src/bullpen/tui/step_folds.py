"""The steps of a turn as folds: a tool with its input, its answer and the files it changed; a thought."""

from collections.abc import Awaitable, Callable, Iterable

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from bullpen.tui.fold import Fold
from bullpen.tui.text import beginning, duration, one_line, shown
from bullpen.tui.work import Step, Work

LoadWork = Callable[[], Awaitable[Work]]

MOST_CHARACTERS = 4_000
MOST_LINES = 60
SIGNS = {"thinking": "✻", "notice": "!", "todo": "☰"}


def title_of(step: Step) -> Content:
    """Return a step on one line."""
    if not step.is_tool:
        sign = SIGNS[step.name]
        return Content.assemble((f"{sign} {step.name} ", "bold"), (step.summary, "dim"))
    sign, style = (
        ("✗", "$text-error") if step.failed else ("✓", "$text-success") if step.is_done else ("…", "$text-accent")
    )
    files = f"  ± {one_line(', '.join(step.changed_files), 60)}" if step.changed_files else ""
    return Content.assemble((f"{sign} ", style), (f"{step.name} ", "bold"), step.summary, (files, "$text-accent"))


def inside_of(step: Step) -> Iterable[Widget]:
    """Yield all that is known of a step."""
    if step.input_text:
        yield _text(step.input_text, "input")
    if step.text:
        yield _text(step.text, "thought" if step.name == "thinking" else "output")
    elif step.is_tool and step.is_done:
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


class WorkFold(Fold):
    """All that an agent did before it answered, in one line that opens into the steps."""

    def __init__(self, work: Work) -> None:
        title = Content.assemble(work.summary, f" · {duration(work.seconds)}" if work.seconds else "")
        super().__init__(title, lambda: [StepFold(step) for step in work.steps])


class RecordedFold(Fold):
    """All that an agent did in a turn of another day: what its program wrote is read again when somebody looks."""

    def __init__(self, load: LoadWork) -> None:
        super().__init__(Content("what it did"), self._steps)
        self._load = load
        self._work: Work | None = None

    async def toggle(self) -> None:
        """Open or close; the first time, read."""
        if self._work is None:
            self._work = await self._load()
            self.set_title(Content(self._work.summary if self._work.steps else "nothing but the answer"))
        await super().toggle()

    def _steps(self) -> Iterable[Widget]:
        return [StepFold(step) for step in self._work.steps] if self._work else []


def _text(text: str, kind: str) -> Static:
    part = beginning(text, MOST_CHARACTERS, MOST_LINES)
    more = f"\n… {part.left_out:,} characters more" if part.left_out else ""
    return Static(Content(f"{part.text.rstrip()}{more}"), classes=kind, markup=False)
