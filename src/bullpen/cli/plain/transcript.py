"""Show: a conversation on a page, as it happens.

Of turns that run at the same time one is followed live, and each of the others is written whole as soon as it ends:
two streams mixed line by line would be two streams that nobody can read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from bullpen.check_results import CheckResult
from bullpen.cli.plain.turn import TurnView
from bullpen.conversation.budget_events import BudgetRaised, BudgetReached
from bullpen.conversation.events import (
    Answered,
    Asked,
    Checked,
    Conflicted,
    Continued,
    ConversationEvent,
    Decided,
    Dropped,
    FilesChanged,
    HandOverMissed,
    Held,
    Lagged,
    LeftByUndo,
    Offered,
    Paused,
    ProgramsChanged,
    Queued,
    Reordered,
    Said,
    TaskSet,
    Trouble,
    TroubleOver,
    TurnBegan,
    TurnEnded,
    TurnEvent,
    Unallowed,
    Unapproved,
    Undecided,
    Unpicked,
)
from bullpen.file_changes import ChangeRecord
from bullpen.messages import ConversationMessage
from bullpen.terminal.cells import width
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import Page
from bullpen.terminal.tables import safe_line
from bullpen.terminal.wrapping import NARROWEST, wrapped
from bullpen.text.numbers import clock
from bullpen.view.activity import FAILED, Light
from bullpen.view.answers import answered_words
from bullpen.view.changes import change_summary, record_words
from bullpen.view.checks import SIGNS, check_light, check_line
from bullpen.view.choices import ASK, Choice, Decision, Kind
from bullpen.view.happened import happened
from bullpen.view.messages import kind_words
from bullpen.view.unanswered import UnansweredTurn

INDENT = "  "
MOST_OUTPUT_LINES = 20
"""Of the output of a red check, its last ones."""
LIGHTS: dict[Light, str] = {"green": "green", "red": "red", "yellow": "yellow", "grey": "dim"}


class Show:
    """Writes events; and in a chat also what people can type now."""

    def __init__(
        self,
        page: Page,
        colours: Colours,
        decisions: Callable[[], Sequence[Decision]],
        *,
        in_chat: bool,
        repeats_people: bool = True,
    ) -> None:
        self._page = page
        self._colours = colours
        self._decisions = decisions
        """What a person is asked to decide now."""
        self._in_chat = in_chat
        self._repeats_people = repeats_people
        """Whether what people say is written; where they have just typed it, it is there already."""
        self._live = ""
        """The turn that is followed."""
        self._view: TurnView | None = None
        self._later: dict[str, list[ConversationEvent]] = {}
        """Events of the other running turns, until those end or are followed."""
        self._running: dict[str, str] = {}
        """Who is working, by turn."""
        self._reply: list[ConversationEvent] = []
        """The reply that ends the turn we follow, and what follows from it."""
        self._previous: ConversationEvent | None = None
        self._ending = ""
        """The turn whose reply is stored: events up to its end belong to it."""
        self._new_decisions: set[tuple[Kind, str]] = set()
        """The keys of decisions that have come up and are not written yet."""
        self._refused: set[str] = set()
        """What was answered with no without people, as it was written."""
        self._written: set[tuple[Kind, str]] = set()
        """The keys of the decisions that are written."""

    def asked(self) -> list[Decision]:
        """Return what is written here, still open, and answered with a key."""
        return [one for one in self._decisions() if one.key in self._written and one.choices and one.choices[0].key]

    def tell(self, event: ConversationEvent) -> None:
        """Write one event, and what a person is asked to decide, if this is the moment for it."""
        if isinstance(event, TurnEvent) and event.turn_id == self._live and self._view is not None:
            # Nearly every event is a word of the turn that is followed, and people wait for it.
            self._view.event(event.event)
            self._previous = event
            return
        if isinstance(event, Answered):
            # At once, whichever turn is followed: everybody knows then who decided.
            self._answered(event)
            return
        turn_id = self._turn_of(event)
        if new := self._decision_in(event):
            self._new_decisions |= new
        elif turn_id and self._live not in ("", turn_id):
            self._later.setdefault(turn_id, []).append(event)
        else:
            self._write(event)
        match event:
            case TurnBegan(turn=turn):
                self._running[turn.id] = turn.member
            case TurnEnded(turn_id=ended):
                self._running.pop(ended, None)
                self._write_whole(ended)
                self._write_who_is_left()
                self._follow_next()
        if self._is_time_to_ask(event):
            self._write_decisions()

    def catch_up(self) -> None:
        """Write what was held back in case more would come soon."""
        if self._view is not None:
            self._view.catch_up()

    def interrupt(self) -> None:
        """Make room for a line between the lines of the turn that is followed."""
        if self._view is not None:
            self._view.interrupt()

    def message(self, message: ConversationMessage, sequence: int) -> None:
        """Write a message that is stored."""
        name = message.speaker.role_id
        who = self._colours.member(name, safe_line(message.speaker.role_name))
        details = " · ".join(filter(None, [f"#{sequence}", clock(message.timestamp), kind_words(message)]))
        text = wrapped(message.content, self._page.columns)
        self._block(f"\n{who}{_arrow(message)}  {self._colours.paint(details, 'dim')}\n{text}")

    def heading(self, member: str, details: str) -> None:
        """Write whose work follows."""
        who = self._colours.member(member, safe_line(member))
        self._block(f"\n{who}  {self._colours.paint(safe_line(details), 'dim')}\n")

    def unanswered(self, turn: UnansweredTurn) -> None:
        """Write a turn that ended without a reply: how it ended, what it did, and what it had said."""
        who = self._colours.member(turn.member, safe_line(turn.member))
        self._block(f"\n{who}  {self._colours.paint(safe_line(f'{turn.signed} · {clock(turn.at)}'), 'dim')}\n")
        for line in turn.done:
            self.note(f"{INDENT}{line}")
        if turn.said:
            self._block(wrapped(turn.said, self._page.columns))

    def decision(self, decision: Decision) -> None:
        """Write what a person is asked to decide, and in a chat what they can type."""
        self._written.add(decision.key)
        match decision.kind:
            case "failed" | "trouble":
                self.note(f"{FAILED.sign} {decision.text}", "red")
            case "paused":
                self.note(f"‖ Paused: {decision.text}", "yellow")
            case "held":
                self.note(f"‖ {decision.text}", "yellow")
            case "missed" | "allow" | "conflict" | "pick" | "budget" | "programs" | "left":
                self.note(f"? {decision.text}", "yellow")
            case "question":
                self.interrupt()
                self.note(f"? {decision.text}", "yellow")
                self.text("".join(f"{INDENT}{line}\n" for line in decision.shown.splitlines()))
                # The sentence above it may have left the screen.
                if decision.length:
                    self.note(f"? {decision.length}", "yellow")
        if self._in_chat:
            self.table(map(_choice_row, decision.choices), "yellow", INDENT)
        elif decision.kind == "missed":
            names = decision.choices[0].given["names"]
            self.note(f"{INDENT}It was not handed over. To do that, say: [NEXT: {names}]", "yellow")

    def text(self, text: str) -> None:
        """Write a text of several lines, made safe, without a colour."""
        lines = [(line[: len(line) - len(line.lstrip(" "))], line.lstrip(" ")) for line in text.split("\n")]
        self._block("".join(wrapped(line, self._page.columns, indent) or "\n" for indent, line in lines))

    def lines(self, painted: Callable[[Colours], Iterator[str]], *, most: int) -> bool:
        """Write lines that are made safe and coloured already; return whether there are more than these."""
        lines = painted(self._colours)
        self._block("".join(f"{line}\n" for line in islice(lines, most)))
        return next(lines, None) is not None

    def table(self, rows: Iterable[tuple[str, str]], style: str = "", indent: str = "") -> None:
        """Write rows of two columns, made safe and wrapped; the first one takes at most half of a line."""
        safe = [(safe_line(left), safe_line(right)) for left, right in rows]
        columns = self._page.columns
        margin = len(indent) + max((width(left) for left, _ in safe), default=0) + 2
        if columns is not None:
            margin = min(margin, max(columns // 2, NARROWEST + 2))
        for left, right in safe:
            beginnings = wrapped(left, columns and margin - 2, indent).splitlines()
            ends = [line[margin:] for line in wrapped(right, columns, " " * margin).splitlines()]
            for beginning, end in zip_longest(beginnings, ends, fillvalue=""):
                line = f"{beginning}{' ' * (margin - width(beginning))}{end}".rstrip()
                self._block(self._colours.paint(line, style) + "\n")

    def note(self, text: str, style: str = "dim") -> None:
        """Write a remark of ours, each line of it safe."""
        lines = wrapped(text, self._page.columns, "").splitlines()
        self._block("".join(self._colours.paint(line, style) + "\n" for line in lines))

    def _turn_of(self, event: ConversationEvent) -> str:
        """Return the turn that an event belongs to, or nothing."""
        match event:
            case TurnBegan(turn=turn):
                return turn.id
            case TurnEvent(turn_id=turn_id):
                return turn_id
            case TurnEnded(turn_id=turn_id):
                self._ending = ""
                return turn_id
            case Said(turn_id=str(turn_id)):
                self._ending = turn_id
                return turn_id
            case _:
                return self._ending

    def _decision_in(self, event: ConversationEvent) -> set[tuple[Kind, str]]:
        """Return which decision an event brings up, if it does."""
        match event:
            case Undecided(turn=turn):
                return {("failed", turn.id)}
            case Asked(turn_id=turn_id, question=question):
                return {("question", f"{turn_id}/{question.id}")}
            case Offered(turn_id=turn_id):
                return {("question", f"{turn_id}/{ASK}")}
            case Unallowed(turn=turn):
                return {("allow", turn.id)}
            case Conflicted(turn_id=turn_id):
                return {("conflict", turn_id)}
            case ProgramsChanged(turn_id=turn_id):
                return {("programs", turn_id)}
            case LeftByUndo(turn_id=turn_id):
                return {("left", turn_id)}
            case Unapproved(turn_id=turn_id):
                return {("review", turn_id)}
            case Unpicked(round=key):
                return {("pick", key)}
            case BudgetReached(member=member):
                return {("budget", member)}
            case Paused():
                return {("paused", "")}
            case Held():
                return {("held", "")}
            case HandOverMissed():
                return {("missed", "")}
            case _:
                return set()

    def _answered(self, answered: Answered) -> None:
        """Write who answered what people were asked; and, once, what was answered with no without them."""
        words = answered_words(answered)
        is_refused = answered.answer.verdict != "yes" and words not in self._refused
        if answered.was_waiting or is_refused:
            self._refused.add(words)
            self.note(f"  {words}")

    def _is_time_to_ask(self, event: ConversationEvent) -> bool:
        """Return whether decisions are written after an event: between turns, or when one that is written needs it."""
        match event:
            case Undecided(turn=turn):
                return turn.id != self._live and turn.id not in self._later
            case Asked():
                # Its agent waits for the answer.
                return True
            case TurnEnded(state=state) if state != "done":
                # The next event asks about this turn, and that comes first.
                return False
            case _:
                return not self._live

    def _write_decisions(self) -> None:
        """Write the decisions that have come up, those of them that are still open."""
        for decision in self._decisions() if self._new_decisions else ():
            if decision.key in self._new_decisions:
                self._new_decisions.remove(decision.key)
                self.decision(decision)

    def _write(self, event: ConversationEvent) -> None:
        self._write_one(event)
        self._previous = event

    def _write_one(self, event: ConversationEvent) -> None:
        match event:
            case TurnBegan():
                self._live = event.turn.id
                self._view = TurnView(self._page, self._colours, event)
            case TurnEvent() if self._view is not None:
                self._view.event(event.event)
            case Said() if event.turn_id is not None and self._view is not None:
                self._view.said(event)
                self._reply = [event]
            case TurnEnded() if self._view is not None:
                self._view.ended(event)
                self._view = None
                self._live = ""
                self._write_what_followed()
            case _ if self._reply:
                # What follows from a reply is written below the line that says what the turn used.
                self._reply.append(event)
            case _:
                self._remark(event)

    def _write_what_followed(self) -> None:
        reply, self._reply = self._reply, []
        for event in reply:
            self._notes(event) if isinstance(event, Said) else self._remark(event)
            self._previous = event

    def _write_whole(self, turn_id: str) -> None:
        """Write a turn that has ended while another one is followed."""
        if events := self._later.pop(turn_id, None):
            self.interrupt()
            followed = self._live, self._view, self._reply
            self._live, self._view, self._reply = "", None, []
            for event in events:
                self._write(event)
            self._live, self._view, self._reply = followed

    def _write_who_is_left(self) -> None:
        if names := list(dict.fromkeys(self._running.values())):
            self.note(f"  ({_listed(names)} {'is' if len(names) == 1 else 'are'} still working.)")

    def _follow_next(self) -> None:
        """Follow a running turn that had to wait to be read, from its beginning."""
        if self._later and not self._live:
            for event in self._later.pop(next(iter(self._later))):
                self._write(event)

    def changed(self, record: ChangeRecord) -> None:
        """Write what was changed in the files, and in a chat how to see it line by line."""
        if change_summary(record.changes):
            see = f"  /diff {record.turn_id}" if self._in_chat and record.kind == "turn" else ""
            self.note(f"  ± {record_words(record)}{see}", "cyan")

    def checked(self, result: CheckResult) -> None:
        """Write what a check said, and how to see its output; where nobody can ask for it, its end if it is red."""
        if result.state == "running":
            return
        light = check_light(result)
        see = f"  /checks {result.turn_id}" if self._in_chat and result.output and result.state != "green" else ""
        self.note(f"  {SIGNS[light]} {check_line(result)}{see}", LIGHTS[light])
        if result.is_broken and not self._in_chat:
            self._end_of(result)

    def _end_of(self, result: CheckResult) -> None:
        lines = result.output.rstrip("\n").split("\n")
        shown = lines[-MOST_OUTPUT_LINES:]
        cut = ["…"] if len(lines) > len(shown) or result.left_out else []
        for line in [*cut, *shown]:
            self.note(f"    {line}")

    def _remark(self, event: ConversationEvent) -> None:
        match event:
            case Checked(result=result):
                self.checked(result)
            case FilesChanged(record=record):
                self.changed(record)
            case Said() if self._repeats_people or event.message.speaker.type == "system":
                self.message(event.message, event.sequence)
                self._notes(event)
            case Said():
                self.note(f"  #{event.sequence}{_arrow(event.message)}")
                self._notes(event)
            case Queued():
                if not isinstance(self._previous, Said | Dropped):
                    # The line of a message says already whom it asks.
                    self.note(f"  {happened(event)}")
            case Dropped() | Reordered() | TaskSet() | TroubleOver():
                self.note(f"  {happened(event)}")
            case Decided() | Continued() | BudgetRaised():
                self.note(happened(event))
            case Trouble():
                self.note(f"! {happened(event)}", "red")
            case Lagged():
                self.note(f"  {happened(event)}")
                # One of those may have brought up a decision.
                self._new_decisions |= {decision.key for decision in self._decisions()}
            case _:
                pass

    def _notes(self, said: Said) -> None:
        if said.reason:
            self.note(f"  ({said.reason})")
        for note in said.notes:
            self.note(f"  ! {note}", "yellow")

    def _block(self, text: str) -> None:
        """Write whole lines, between the lines of the turn that is followed."""
        self.interrupt()
        self._page.write(text)


def _arrow(message: ConversationMessage) -> str:
    to = _listed(message.routing.resolved_addressees) if message.routing else ""
    return f" → {to}" if to else ""


def _listed(names: Iterable[str]) -> str:
    return safe_line(", ".join(names))


def _choice_row(choice: Choice) -> tuple[str, str]:
    """Return the key of a choice with its label, and what can be typed instead; else that, and what it does."""
    if choice.key:
        return f"{choice.key} {choice.label}", choice.typed
    return choice.typed, choice.purpose
