"""Show: a conversation on a page, as it happens.

Of turns that run at the same time one is followed live, and the others come whole when it is their turn to be read: two
streams mixed line by line would be two streams that nobody can read.
"""

from collections.abc import Iterable

from bullpen.cli.plain.turn import TurnView
from bullpen.conversation.events import (
    Continued,
    ConversationEvent,
    Decided,
    Dropped,
    HandOverMissed,
    Held,
    Lagged,
    Paused,
    Queued,
    Quiet,
    Reordered,
    Said,
    TaskSet,
    Trouble,
    TurnBegan,
    TurnEnded,
    TurnEvent,
    Undecided,
)
from bullpen.messages import ConversationMessage
from bullpen.routing.queue import WaitingTurn
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import Page
from bullpen.terminal.tables import local_time, safe_line
from bullpen.terminal.wrapping import wrapped


class Show:
    """Writes news; and in a chat also what people can type now."""

    def __init__(self, page: Page, colours: Colours, *, in_chat: bool, repeats_people: bool = True) -> None:
        self._page = page
        self._colours = colours
        self._in_chat = in_chat
        self._repeats_people = repeats_people
        """Whether what people say is written; where they have just typed it, it stands there already."""
        self._live = ""
        """The turn that is followed."""
        self._view: TurnView | None = None
        self._later: dict[str, list[ConversationEvent]] = {}
        """ConversationEvent of the other turns that run, until they are followed."""
        self._reply: list[ConversationEvent] = []
        """The reply that ends the turn we follow, and what it sets in motion."""
        self._previous: ConversationEvent | None = None
        self._ending = ""
        """The turn whose reply is stored: news up to its end belong to it."""

    def tell(self, news: ConversationEvent) -> None:
        """Write one news."""
        turn_id = self._turn_of(news)
        if turn_id and self._live not in ("", turn_id):
            self._later.setdefault(turn_id, []).append(news)
        else:
            self._write(news)

    def catch_up(self) -> None:
        """Write what was held back in case that more would come soon."""
        if self._view is not None:
            self._view.catch_up()

    def message(self, message: ConversationMessage, sequence: int) -> None:
        """Write a message that is stored."""
        name = message.speaker.role_id
        to = ", ".join(message.routing.resolved_addressees) if message.routing else ""
        who = self._colours.member(name, safe_line(message.speaker.role_name))
        details = f"#{sequence} · {local_time(message.timestamp)[-5:]}"
        arrow = f" → {safe_line(to)}" if to else ""
        text = wrapped(message.content, self._page.columns)
        self._block(f"\n{who}{arrow}  {self._colours.paint(details, 'dim')}\n{text}")

    def text(self, text: str) -> None:
        """Write a text of several lines, made safe, in no colour."""
        lines = [(line[: len(line) - len(line.lstrip(" "))], line.lstrip(" ")) for line in text.split("\n")]
        self._block("".join(wrapped(line, self._page.columns, indent) or "\n" for indent, line in lines))

    def note(self, text: str, style: str = "dim") -> None:
        """Write a remark of ours, each line of it safe."""
        lines = wrapped(text, self._page.columns, "").splitlines()
        self._block("".join(self._colours.paint(line, style) + "\n" for line in lines))

    def _turn_of(self, news: ConversationEvent) -> str:
        """Return the turn that news belong to, or nothing."""
        match news:
            case TurnBegan(turn=turn) | Undecided(turn=turn):
                # What is undecided after its turn was shown belongs to nobody who is still shown.
                is_over = isinstance(news, Undecided) and turn.id not in self._later
                return "" if is_over else turn.id
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

    def _write(self, news: ConversationEvent) -> None:
        self._write_one(news)
        self._previous = news

    def _write_one(self, news: ConversationEvent) -> None:
        match news:
            case TurnBegan():
                self._live = news.turn.id
                self._view = TurnView(self._page, self._colours, news)
            case TurnEvent() if self._view is not None:
                self._view.event(news.event)
            case Said() if news.turn_id is not None and self._view is not None:
                self._view.said(news)
                self._reply = [news]
            case TurnEnded() if self._view is not None:
                self._view.ended(news)
                self._view = None
                self._live = ""
                self._tell_what_followed()
                self._follow_next()
            case _ if self._reply:
                # What a reply sets in motion is told below the line that says what it took.
                self._reply.append(news)
            case _:
                self._remark(news)

    def _tell_what_followed(self) -> None:
        reply, self._reply = self._reply, []
        for news in reply:
            self._notes(news) if isinstance(news, Said) else self._remark(news)
            self._previous = news

    def _follow_next(self) -> None:
        """Go on with a turn that had to wait to be read, from its beginning."""
        while self._later and not self._live:
            turn_id = next(iter(self._later))
            for news in self._later.pop(turn_id):
                self._write(news)

    def _remark(self, news: ConversationEvent) -> None:
        match news:
            case Said() if self._repeats_people:
                self.message(news.message, news.sequence)
                self._notes(news)
            case Said():
                routing = news.message.routing
                to = ", ".join(routing.resolved_addressees) if routing else ""
                self.note(f"  #{news.sequence}" + (f" → {to}" if to else ""))
                self._notes(news)
            case Queued(turns=turns):
                if not isinstance(self._previous, Said | Dropped | Held):
                    # What a message asks for stands in its own line.
                    self.note(f"  asked: {_names(turns)}")
            case Dropped(turns=turns):
                self.note(f"  dropped: {_names(turns)}")
            case Reordered(turns=turns):
                self.note(f"  the queue is now: {_names(turns)}")
            case HandOverMissed():
                self._missed(news)
            case Undecided():
                self.undecided(news.text)
            case Decided(turn_id=turn_id, choice=choice):
                self.note(f"turn {turn_id}: {choice}")
            case Paused(text=text):
                self.paused(text)
            case Continued():
                self.note("It goes on.")
            case Held(turns=turns):
                self.held(turns)
            case TaskSet(task=task, by=by):
                self.note(f"  {by} set the team's task: {task}" if task else f"  {by} took the team's task away.")
            case Trouble(text=text):
                self.note(f"! {text}", "red")
            case Lagged(missed=missed):
                self.note(f"  ({missed:,} pieces of what was said are left out here; the messages are whole.)")
            case Quiet() | _:
                pass

    def undecided(self, text: str) -> None:
        """Write that a turn ended without a reply, and what can be done."""
        self.note(f"! {text}", "red")
        if self._in_chat:
            self.note(
                "  /retry does it again · /skip goes on without it · /hand NAME lets another one answer", "yellow"
            )

    def paused(self, text: str) -> None:
        """Write why nothing goes on, and what can be done."""
        self.note(f"‖ Paused: {text}", "yellow")
        if self._in_chat:
            self.note("  /go goes on · /drop takes what waits away · or just say what to do", "yellow")

    def held(self, turns: Iterable[WaitingTurn]) -> None:
        """Write what stands still because a person spoke during a pause."""
        self.note(f"‖ On hold since the pause: {_names(turns)}", "yellow")
        if self._in_chat:
            self.note("  /go lets them go on · /drop takes them away", "yellow")

    def _missed(self, news: HandOverMissed) -> None:
        names = ", ".join(news.names)
        self.note(f"? {news.text}", "yellow")
        if self._in_chat:
            self.note(f"  Enter (or y, or /next {names}) asks {names} now; anything else goes on without.", "yellow")
        else:
            self.note(f"  It was not handed over. To do it, say: [NEXT: {names}]", "yellow")

    def _notes(self, said: Said) -> None:
        if said.reason:
            self.note(f"  ({said.reason})")
        for note in said.notes:
            self.note(f"  ! {note}", "yellow")

    def _block(self, text: str) -> None:
        """Write whole lines, between the lines of what is followed."""
        if self._view is not None:
            self._view.interrupt()
        self._page.write(text)


def _names(turns: Iterable[WaitingTurn]) -> str:
    return ", ".join(safe_line(turn.member) for turn in turns)
