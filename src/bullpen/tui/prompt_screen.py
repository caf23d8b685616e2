"""PromptScreen: exactly what an agent was given in a turn, or would be given now, with a report."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.text.numbers import counted, duration, used_by
from bullpen.tui.text import one_line
from bullpen.tui.text_screen import LinesView, ReadingScreen
from bullpen.view.decided import decision_sentence
from bullpen.view.difference import Difference, difference
from bullpen.view.explanation import Explanation, SeenMessage, explain
from bullpen.view.turn_lookup import turn_before

BAR_CELLS = 24


class PromptScreen(ReadingScreen):
    """The report above, the text below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+d", "compare", "Compare with the turn before")]
    DEFAULT_CSS = """
    PromptScreen > .report { dock: top; height: auto; max-height: 60%; padding: 1 2; background: $panel; }
    PromptScreen > LinesView { width: 100%; padding: 1 2; }
    """

    def __init__(self, explanation: Explanation, conversation: Conversation) -> None:
        super().__init__()
        self._explanation = explanation
        self._conversation = conversation

    def compose(self) -> ComposeResult:
        """Yield the report and the text."""
        explanation = self._explanation
        system = f"===== system text =====\n{explanation.system}\n\n===== prompt =====\n"
        yield Static(report(explanation), classes="report", markup=False)
        yield LinesView(f"{system if explanation.system is not None else ''}{explanation.prompt}")

    async def action_compare(self) -> None:
        """Show what is different from what the same member was given in its turn before."""
        turn, member = self._explanation.turn, self._explanation.member
        try:
            before = await self._conversation.read(turn_before, member, turn.id if turn else None)
            if before is None:
                self.notify(f"{one_line(member, 40)} has not had a turn before.", markup=False)
                return
            left = await self._conversation.read(explain, before.id)
        except BullpenError as error:
            self.notify(one_line(str(error), 500), severity="warning", markup=False)
            return
        self.app.push_screen(DifferenceScreen(await asyncio.to_thread(difference, left, self._explanation)))


def report(explanation: Explanation) -> Content:
    """Return each section of a prompt with its size, what was left out and why, the command, and what it used."""
    name = one_line(explanation.member, 40)
    turn = explanation.turn
    title = f"What {name} was given in turn {turn.id}" if turn else f"What {name} would be given now"
    kept = sum(seen.fate != "dropped" for seen in explanation.context)
    context = len(explanation.context)
    kind = "new message" if explanation.known else "earlier message"
    lines = [
        Content.assemble((title, "bold"), ("   esc: back   ctrl+d: compare with the turn before", "dim")),
        Content(f"{explanation.total_bytes:,} of {explanation.max_bytes:,} bytes for {_reader(explanation)}"),
        *([Content(f"by {one_line(explanation.stand_in, 40)}, in the role of {name}")] if explanation.stand_in else []),
        *(_bar(section, size, explanation.total_bytes) for section, size in explanation.sections),
        *([Content(f"{kept:,} of {counted(context, kind)} kept")] if context else []),
        *([Content(explanation.summed_up)] if explanation.summed_up else []),
        *_session(explanation),
        *(Content.styled(f"! {one_line(remark, 200)}", "$text-warning") for remark in explanation.remarks),
        *(Content.styled(one_line(gap.sentence, 200), "dim") for gap in explanation.not_offered),
        *([Content(f"with tools: {one_line('; '.join(explanation.tool_uses), 400)}")] if explanation.tool_uses else []),
        *(Content(f"decided by {one_line(decision_sentence(one), 200)}") for one in explanation.decisions),
    ]
    if explanation.command:
        lines.append(Content.styled(f"$ {one_line(' '.join(explanation.command), 120)}", "dim"))
    if turn is not None and explanation.seconds is not None:
        took = [duration(explanation.seconds), used_by(turn.usage)]
        lines.append(Content.styled(" · ".join(part for part in took if part), "dim"))
    return Content("\n").join(lines)


def _session(explanation: Explanation) -> Iterator[Content]:
    use = explanation.session
    if explanation.rules:
        yield Content(f"rules: {one_line(explanation.rules, 300)}")
    if use is not None:
        style = "$text-warning" if use.reason else ""
        yield Content.styled(f"session: {one_line(explanation.in_session, 200)}", style)
    if explanation.known:
        yield Content(one_line(explanation.known_sentence, 300))


def _bar(section: str, size: int, whole: int) -> Content:
    cells = max(1, round(BAR_CELLS * size / whole)) if whole else 0
    return Content.assemble(
        f"{section:<13}", ("█" * cells, "$primary"), ("░" * (BAR_CELLS - cells), "dim"), f" {size:,}"
    )


def _reader(explanation: Explanation) -> str:
    """Return for whom a prompt was written; a program that is not one of the known CLIs gets plain text."""
    reader = explanation.agent_type
    return "any program" if reader in (None, "unknown") else one_line(reader or "", 40)


MOST_MESSAGES = 5
"""Of those that only one side has seen, named in the report."""


class DifferenceScreen(ReadingScreen):
    """The report above, the lines that are different below."""

    DEFAULT_CSS = """
    DifferenceScreen > .report { dock: top; height: auto; max-height: 60%; padding: 1 2; background: $panel; }
    DifferenceScreen > LinesView { width: 100%; padding: 1 2; }
    """

    def __init__(self, difference: Difference) -> None:
        super().__init__()
        self._difference = difference

    def compose(self) -> ComposeResult:
        """Yield the report and the lines."""
        yield Static(Content("\n").join(_report(self._difference)), classes="report", markup=False)
        yield LinesView("\n".join(_diffs(self._difference)) or "Both were given the same text.")


def _report(compared: Difference) -> Iterator[Content]:
    left, right = compared.left, compared.right
    title = f"{_name(right)} of {one_line(right.member, 40)}, compared with {_name(left).lower()}"
    yield Content.assemble((title, "bold"), ("   esc: back", "dim"))
    yield Content(f"{counted(compared.in_both, 'message')} in both")
    for side in (left, right):
        if side.known:
            yield Content(f"{_name(side).lower()}: {one_line(side.known_sentence, 300)}")
    yield from _messages(f"only in {_name(left).lower()}", compared.only_left)
    yield from _messages(f"only in {_name(right).lower()}", compared.only_right)
    for section in compared.sections:
        yield Content(f"{section.section.replace('_', ' ')}: {section.left_bytes:,} → {section.right_bytes:,} bytes")


def _messages(where: str, messages: tuple[SeenMessage, ...]) -> Iterator[Content]:
    if messages:
        more = f", and {len(messages) - MOST_MESSAGES:,} more" if len(messages) > MOST_MESSAGES else ""
        numbers = ", ".join(_number(seen) for seen in messages[:MOST_MESSAGES])
        yield Content(f"{counted(len(messages), 'message')} {where}: {numbers}{more}")


def _number(seen: SeenMessage) -> str:
    return f"#{seen.sequence} ({one_line(seen.speaker, 20)})" if seen.sequence is not None else one_line(seen.id, 20)


def _diffs(compared: Difference) -> Iterable[str]:
    if compared.system_diff:
        yield f"===== system text =====\n{compared.system_diff}\n"
    if compared.prompt_diff:
        yield f"===== prompt =====\n{compared.prompt_diff}"


def _name(side: Explanation) -> str:
    return one_line(side.title, 40)
