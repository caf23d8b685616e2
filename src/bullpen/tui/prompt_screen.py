"""PromptScreen: exactly what an agent was given in a turn, and the account of it."""

from typing import ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from bullpen.context.report import PromptReport
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store, Turn
from bullpen.tui.line_view import LinesView
from bullpen.tui.text import duration, one_line, used
from bullpen.view.turn_lookup import find_turn, turn_that_said

BAR_CELLS = 24


class Given(Struct, frozen=True, kw_only=True):
    """What an agent was given, or would be given now."""

    member: str
    report: PromptReport
    system: str | None
    prompt: str
    turn: Turn | None = None
    command: tuple[str, ...] = ()


def given_for(store: Store, conversation_id: str, message: ConversationMessage) -> Given | None:
    """Return what was given to the agent that said a message, or None if nobody knows."""
    turn = turn_that_said(store, conversation_id, message)
    return None if turn is None else given_in(store, conversation_id, turn.id)


def given_as(store: Store, conversation_id: str, reference: str) -> Given | None:
    """Return what was given in the turn that a person means."""
    return given_in(store, conversation_id, find_turn(store, conversation_id, reference).id)


def given_in(store: Store, conversation_id: str, turn_id: str) -> Given | None:
    """Return what an agent was given in a turn, or None if it never began."""
    turn = store.turn(conversation_id, turn_id)
    record = store.record(conversation_id, turn_id)
    if record is None:
        return None
    return Given(
        member=turn.member,
        report=record.report,
        system=record.system,
        prompt=record.prompt,
        turn=turn,
        command=record.command,
    )


class PromptScreen(ModalScreen[None]):
    """The account above, the text below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,p", "leave", "Back")]
    DEFAULT_CSS = """
    PromptScreen > .report { dock: top; height: auto; max-height: 60%; padding: 1 2; background: $panel; }
    PromptScreen > LinesView { width: 100%; padding: 1 2; }
    """

    def __init__(self, given: Given) -> None:
        super().__init__()
        self._given = given

    def compose(self) -> ComposeResult:
        """Yield the account and the text."""
        given = self._given
        beside = f"===== system text, beside the prompt =====\n{given.system}\n\n===== prompt =====\n"
        yield Static(account(given), classes="report", markup=False)
        yield LinesView(f"{beside if given.system is not None else ''}{given.prompt}")

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)


def account(given: Given) -> Content:
    """Return the account of a prompt: each section with its size, what was left out, the command and what it took."""
    report, turn = given.report, given.turn
    name = one_line(given.member, 40)
    title = f"What {name} was given in turn {turn.id}" if turn else f"What {name} would be given now"
    lines = [
        Content.assemble((title, "bold"), ("   esc: back", "dim")),
        Content(f"{report.total_bytes:,} of {report.max_bytes:,} bytes for {_reader(report)}"),
        *(_bar(section, size, report.total_bytes) for section, size in report.section_bytes.items() if size),
        Content(f"{report.kept_messages} of {len(report.context_ids)} earlier messages kept"),
        *(Content.styled(f"! {one_line(cut, 200)}", "$text-warning") for cut in report.remarks),
    ]
    if given.command:
        lines.append(Content.styled(f"$ {one_line(' '.join(given.command), 120)}", "dim"))
    if turn is not None and turn.started_at is not None and turn.ended_at is not None:
        took = [duration((turn.ended_at - turn.started_at) / 1000), used(turn.usage)]
        lines.append(Content.styled(" · ".join(part for part in took if part), "dim"))
    return Content("\n").join(lines)


def _bar(section: str, size: int, whole: int) -> Content:
    cells = max(1, round(BAR_CELLS * size / whole)) if whole else 0
    return Content.assemble(
        f"{section:<11}", ("█" * cells, "$primary"), ("░" * (BAR_CELLS - cells), "dim"), f" {size:,}"
    )


def _reader(report: PromptReport) -> str:
    """Return for whom a prompt was written; a program that is none of the known CLIs gets plain text."""
    return "any program" if report.agent_type == "unknown" else one_line(report.agent_type, 40)
