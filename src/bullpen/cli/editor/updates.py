"""Updates: the events of a conversation, as an editor shows them. Members speak with their names.

An editor knows one agent, and shows one text after the other. So of turns that run at the same time one is followed,
and what each of the others says is written as soon as it ends; what they do is shown at once.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from bullpen.cli.editor.questions import answered_update
from bullpen.cli.editor.tool_calls import Update, call_began, call_changed, call_ended, lacks_lines, plan_of
from bullpen.conversation.events import (
    Answered,
    Checked,
    ConversationEvent,
    FilesChanged,
    Lagged,
    Queued,
    Renamed,
    Said,
    Trouble,
    TurnBegan,
    TurnEnded,
    TurnEvent,
)
from bullpen.messages import ConversationMessage
from bullpen.team.team import Team
from bullpen.turn_events import Event, TextDelta, Thinking, TodoItem, ToolStarted, Usage
from bullpen.view.changes import change_summary, record_words
from bullpen.view.checks import SIGNS, check_light, check_line
from bullpen.view.diff import FileDiff
from bullpen.view.happened import happened
from bullpen.view.messages import kind_words, was_streamed
from bullpen.view.replay import ReplayedTurn
from bullpen.view.state import Spent
from bullpen.view.steps import Step, Steps
from bullpen.view.unanswered import ENDED

US = ""
"""Who speaks, if it is bullpen itself."""


class _Turn(Struct):
    """A turn while it runs."""

    member: str
    steps: Steps = field(default_factory=Steps)
    streamed: list[str] = field(default_factory=list)
    later: list[TextDelta | Said] = field(default_factory=list)
    """What it said while another one was followed."""
    is_interrupted: bool = False
    """Whether it did something since it last wrote."""


class Updates:
    """Makes updates of events, for one session."""

    def __init__(self, team: Team, root: Path, spent: Callable[[], Spent] = Spent) -> None:
        """Make updates for a team in a folder; `spent` says what the conversation has used so far."""
        self.own: list[str] = []
        """What was said in this editor, which shows it already."""
        self.usage = Usage()
        """What turns have used that ended since somebody set it back."""
        self._folders = {agent.name: str(root / agent.cwd) for agent in team.agents}
        self._spent = spent
        self._shows_people = len(team.people) > 1
        self._turns: dict[str, _Turn] = {}
        self._live = ""
        """The turn that is followed."""
        self._speaker: str | None = None
        """Who has written the last text; None: nobody yet."""
        self._plans: dict[str, tuple[str, tuple[TodoItem, ...]]] = {}
        self._lineless: dict[str, list[tuple[str, str, Step]]] = {}
        """Calls by their turns, each with its folder, that name the files they changed, and no lines."""

    def of(self, event: ConversationEvent) -> Iterator[Update]:
        """Yield what an editor is told of an event."""
        match event:
            case TurnBegan(turn=turn):
                self._turns[turn.id] = _Turn(turn.member)
                self._live = self._live or turn.id
            case TurnEvent(turn_id=turn_id, event=done) if turn_id in self._turns:
                yield from self._event(turn_id, self._turns[turn_id], done)
            case Said(turn_id=str(turn_id)) if turn_id in self._turns:
                yield from self._say_or_keep(turn_id, event)
            case Said():
                yield from self._said(event)
            case TurnEnded():
                yield from self._ended(event)
            case Answered(was_waiting=True):
                yield answered_update(event)
            case Lagged(missed=0):
                # How they continue may be lost. What they say is shown when it is complete.
                self._turns.clear()
                self._lineless.clear()
                self._live = ""
            case Renamed(title=title):
                yield {"sessionUpdate": "session_info_update", "title": title}
            case _:
                yield from self._remark(event)

    def message(self, message: ConversationMessage) -> Iterator[Update]:
        """Yield a message that is stored."""
        match message.speaker.type:
            case "human":
                who = f"**{message.speaker.role_name}:**\n\n" if self._shows_people else ""
                self._speaker = None
                yield _text("user_message_chunk", f"{who}{message.content}")
            case "ai":
                self._speaker = None if self._speaker is None else US
                yield from self._write(message.speaker.role_name, message.content)
            case _:
                yield from self.note(message.content)

    def replayed(self, turn: ReplayedTurn) -> Iterator[Update]:
        """Yield the calls of a turn that is over, each with what came of it."""
        again = _Turn(turn.member)
        for event in turn.calls:
            yield from self._event(turn.turn, again, event)
        yield from self.changed(turn.turn, turn.changed)

    def lacks_lines(self, turn_id: str) -> bool:
        """Return whether a call of a turn was shown without the lines that it changed."""
        return turn_id in self._lineless

    def changed(self, turn_id: str, files: Mapping[str, FileDiff]) -> Iterator[Update]:
        """Yield what calls of a turn have really changed that were shown without."""
        for call, folder, step in self._lineless.pop(turn_id, ()):
            if (update := call_changed(call, step, files, folder)) is not None:
                yield update

    def note(self, text: str) -> Iterator[Update]:
        """Yield something that bullpen says, set apart from what agents say."""
        yield from self._write(US, "\n".join(f"> {line}" for line in text.splitlines()), is_apart=True)

    def block(self, text: str) -> Iterator[Update]:
        """Yield something that bullpen says in Markdown."""
        yield from self._write(US, text, is_apart=True)

    def begin(self) -> None:
        """Begin with the answer to a prompt: nothing is above it."""
        self._speaker = None

    def _event(self, turn_id: str, turn: _Turn, event: Event) -> Iterator[Update]:
        match event:
            case TextDelta():
                yield from self._say_or_keep(turn_id, event)
                return
            case Thinking(text=text):
                if turn_id == self._live and text:
                    yield _text("agent_thought_chunk", text)
                return
        step = turn.steps.add(event)
        if step is None:
            return
        turn.is_interrupted = True
        call, folder = f"{turn_id}/{step.key}", self._folders.get(turn.member, "")
        match step.kind:
            case "tool" if isinstance(event, ToolStarted):
                yield call_began(call, turn.member, step, event, folder)
            case "tool":
                yield call_ended(call, step, folder)
                if lacks_lines(step):
                    self._lineless.setdefault(turn_id, []).append((call, folder, step))
            case "plan":
                self._plans[turn_id] = (turn.member, step.items)
                yield plan_of(self._plans)
            case "notice" if step.attempts > 1:
                pass
            case "notice":
                yield from self.note(f"{turn.member}: {step.output}")
            case _:
                pass

    def _say_or_keep(self, turn_id: str, event: TextDelta | Said) -> Iterator[Update]:
        if turn_id == self._live:
            yield from self._say(self._turns[turn_id], event)
        else:
            self._turns[turn_id].later.append(event)

    def _say(self, turn: _Turn, event: TextDelta | Said) -> Iterator[Update]:
        """Yield a piece of what an agent writes, or what is left to show of its reply."""
        if isinstance(event, TextDelta):
            turn.streamed.append(event.text)
            yield from self._write(turn.member, event.text, is_apart=turn.is_interrupted)
            turn.is_interrupted = turn.is_interrupted and not event.text
            return
        if not was_streamed(event.message, turn.streamed):
            yield from self._write(turn.member, event.message.content, is_apart=True)
        yield from self._notes(event)

    def _said(self, said: Said) -> Iterator[Update]:
        """Yield what a person said, unless it was here."""
        if said.message.content in self.own:
            self.own.remove(said.message.content)
        else:
            yield from self.message(said.message)
        yield from self._notes(said)

    def _notes(self, said: Said) -> Iterator[Update]:
        if kind := kind_words(said.message):
            yield from self.note(kind)
        for note in said.notes:
            yield from self.note(note)

    def _ended(self, ended: TurnEnded) -> Iterator[Update]:
        turn = self._turns.pop(ended.turn_id, None)
        if turn is None:
            return
        for event in turn.later:
            yield from self._say(turn, event)
        if ended.state != "done":
            again = f" `/retry {ended.turn_id}` runs it again." if ended.state == "cancelled" else ""
            yield from self.note(f"{turn.member}: turn {ended.turn_id} {ENDED[ended.state]}.{again}")
        if ended.turn_id == self._live:
            yield from self._follow_next()
        if self._plans.pop(ended.turn_id, None) is not None:
            yield plan_of(self._plans)
        if ended.usage is not None:
            yield from self._used(ended.usage)

    def _follow_next(self) -> Iterator[Update]:
        self._live = next(iter(self._turns), "")
        if self._live:
            turn = self._turns[self._live]
            later, turn.later = turn.later, []
            for event in later:
                yield from self._say(turn, event)

    def _used(self, usage: Usage) -> Iterator[Update]:
        before = self.usage
        costs = [cost for cost in (before.cost_usd, usage.cost_usd) if cost is not None]
        self.usage = Usage(
            input_tokens=before.input_tokens + usage.input_tokens,
            output_tokens=before.output_tokens + usage.output_tokens,
            cached_tokens=before.cached_tokens + usage.cached_tokens,
            cost_usd=sum(costs) if costs else None,
        )
        if usage.context_window:
            used = usage.input_tokens + usage.output_tokens
            known = _cost(self._spent())
            yield {"sessionUpdate": "usage_update", "used": used, "size": usage.context_window, **known}

    def _remark(self, event: ConversationEvent) -> Iterator[Update]:
        match event:
            case FilesChanged(record=record) if change_summary(record.changes):
                yield from self.note(f"± {record_words(record)}")
            case Checked(result=result) if result.state != "running":
                yield from self.note(f"{SIGNS[check_light(result)]} {check_line(result)}")
            case Queued():
                pass  # who is asked is seen when they begin
            case Trouble():
                yield from self.note(f"! {happened(event)}")
            case _ if text := happened(event):
                yield from self.note(text)

    def _write(self, speaker: str, text: str, *, is_apart: bool = False) -> Iterator[Update]:
        """Yield a text, below what was written before if somebody else wrote that, and with a name."""
        if not text:
            return
        is_new = speaker != self._speaker
        space = "\n\n" if self._speaker is not None and (is_new or is_apart) else ""
        # On a line of its own: what follows may begin with a heading, a list or a block of code.
        name = f"**{speaker}:**\n\n" if is_new and speaker != US else ""
        self._speaker = speaker
        yield _text("agent_message_chunk", f"{space}{name}{text}")


def _cost(spent: Spent) -> Update:
    """Return what was spent. An editor shows it as what it is, so an estimate goes where it shows nothing of it."""
    if spent.cost_usd is None:
        return {}
    cost = {"amount": spent.cost_usd, "currency": "USD"}
    return {"_meta": {"estimatedCost": cost}} if spent.is_estimate else {"cost": cost}


def _text(kind: str, text: str) -> Update:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
