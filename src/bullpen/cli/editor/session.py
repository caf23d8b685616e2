"""EditorSession: one open conversation in an editor: what is said there, and what the editor is told."""

import asyncio
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from bullpen.cli.editor.modes import DEFAULT, addressed, check_mode, modes_of
from bullpen.cli.editor.prompt_text import fenced
from bullpen.cli.editor.questions import chosen, permission_request
from bullpen.cli.editor.tool_calls import Update
from bullpen.cli.editor.updates import Updates
from bullpen.cli.plain.transcript import Show
from bullpen.cli.plain.typed_line import ChatLines
from bullpen.cli.viewer import Follower
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import (
    Answered,
    Asked,
    ConversationEvent,
    FilesChanged,
    Lagged,
    TurnBegan,
    TurnEnded,
)
from bullpen.errors import BullpenError, NothingRuns
from bullpen.messages import ConversationMessage
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import StreamPage
from bullpen.text.clean import clean_text
from bullpen.text.numbers import counted
from bullpen.turn_events import Usage
from bullpen.view.choices import ASK, Decision
from bullpen.view.commands import COMMANDS, is_command_line, run_command, typed_choice
from bullpen.view.messages import plain_messages
from bullpen.view.replay import changed_files, replayed_turn
from bullpen.view.state import conversation_view

MOST_REPLAYED = 1_000
"""Messages that an editor is shown of a conversation that it loads, the latest."""
MOST_WITH_TOOLS = 50
"""Of these, the latest, those before which it is shown what their agents did."""
PAGE = 100
BUSY = "The team still answers your last message. Wait for that, or cancel it; commands such as /tell work meanwhile."
LEAVE = "Close this thread in your editor. Everything is stored."
OTHERS = "Begin a new thread in your editor, or open an earlier one in its list. This one is kept."
STILL_OPEN = "The question is still open. Answer it in another terminal with bullpen inbox, or stop the turn here."


class Client(Protocol):
    """The editor."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tell it something."""

    def ask(self, method: str, params: dict[str, Any]) -> tuple[int, "asyncio.Future[Any]"]:
        """Ask it something; return the number of the question, and its answer, None if there is none."""

    def take_back(self, number: int) -> None:
        """Take a question back."""


class EditorSession:
    """One conversation. What people decide in other doors is seen here, and the other way around."""

    def __init__(
        self, conversation: Conversation, root: Path, client: Client, sender: str | None, db: Path | None
    ) -> None:
        self.conversation = conversation
        self.mode = DEFAULT
        self._client = client
        self._sender = sender
        self._updates = Updates(conversation.team, root, lambda: conversation_view(conversation).total)
        self._doing = asyncio.Lock()
        self._written = io.StringIO()
        show = Show(StreamPage(self._written), Colours(None, on=False), self._decisions, in_chat=True)
        self._lines = ChatLines(conversation, show, sender, db, self._addressed, OTHERS)
        self._sending = ""
        """The message that is being said."""
        self._seen: Sequence[Decision] = ()
        """What people were asked here when they last could read it."""
        self._dialogs: dict[tuple[str, str], int] = {}
        """The questions that the editor shows, by turn and question."""
        self._asking: set[asyncio.Task[None]] = set()
        self._is_prompting = False
        self._is_cancelled = False
        self._is_closed = False
        self._title = ""
        self._follower = Follower(conversation, self._tell, lambda: None)

    async def begin(self) -> None:
        """Tell the editor what can be typed here."""
        commands = [
            {
                "name": command.name,
                "description": command.purpose,
                **({"input": {"hint": command.argument}} if command.argument else {}),
            }
            for command in COMMANDS.values()
            if command.name != "quit"
        ]
        await self._send({"sessionUpdate": "available_commands_update", "availableCommands": commands})

    async def replay(self) -> None:
        """Tell the editor what was said so far, and what a person is asked to decide."""
        self._updates.begin()
        first = max(0, self.conversation.message_count - MOST_REPLAYED)
        if first:
            way = f"bullpen sessions show {self.conversation.id} --all"
            await self._send(*self._updates.note(f"({counted(first, 'earlier message')}: {way})"))
        while messages := await self.conversation.read(plain_messages, after=first, limit=PAGE):
            for shown in messages:
                if shown.sequence > self.conversation.message_count - MOST_WITH_TOOLS:
                    await self._replay_tools(shown.message)
                await self._send(*self._updates.message(shown.message))
                for turn in shown.unanswered:
                    await self._send(*self._updates.note(f"{turn.member}: {turn.heading}"))
            first = messages[-1].sequence
        for asked in self.conversation.approvals.open.values():
            self._ask(asked)
        await self._send_decisions()

    async def _replay_tools(self, reply: ConversationMessage) -> None:
        if (turn := await self.conversation.read(replayed_turn, reply)) is not None:
            await self._send(*self._updates.replayed(turn))

    async def prompt(self, text: str) -> dict[str, Any]:
        """Do what a person typed, and return when nobody works any more. A message waits for no other one."""
        if self._is_prompting:
            if not is_command_line(text):
                raise BullpenError(BUSY)
            await self._take(text)
            return {"stopReason": "end_turn"}
        self._is_prompting, self._is_cancelled = True, False
        try:
            self._updates.begin()
            self._updates.usage = Usage()
            await self._take(text)
            await self._follower.until_quiet()
            await self._send_decisions()
            await self._send_title()
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
        finally:
            self._is_prompting = False
        usage = self._updates.usage
        counts = {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "cachedReadTokens": usage.cached_tokens,
            "totalTokens": usage.input_tokens + usage.output_tokens,
        }
        return {"stopReason": "cancelled" if self._is_cancelled else "end_turn", "usage": counts}

    async def cancel(self) -> None:
        """Stop what runs. What agents have done by then is kept, and the queue waits."""
        self._is_cancelled = self._is_prompting
        try:
            await self.conversation.cancel(by=self._sender)
        except NothingRuns:
            pass
        except BullpenError as error:
            await self._send(*self._updates.note(f"! {error}"))

    def set_mode(self, mode: str) -> None:
        """Let messages that name nobody ask somebody else from now on."""
        check_mode(self.conversation.team, mode)
        self.mode = mode

    @property
    def modes(self) -> dict[str, Any]:
        """Who can be asked, and who is."""
        return modes_of(self.conversation.team, self.mode)

    async def until_quiet(self) -> None:
        """Wait until no agent works."""
        await self.conversation.until_quiet()

    def leave(self) -> None:
        """Let a running prompt end as cancelled: its conversation is closed."""
        self._is_closed, self._is_cancelled = True, self._is_prompting

    async def close(self) -> None:
        """Tell the editor no more."""
        await self._follower.stop()
        for task in self._asking:
            task.cancel()

    async def _take(self, text: str) -> None:
        """Do what a line says, and show what there is to say about it."""
        written = await self.do(text)
        if "\n" in written:
            await self._send(*self._updates.block(fenced(written, "diff" if text.startswith("/diff") else "")))
        elif written:
            await self._send(*self._updates.note(written.strip()))

    async def do(self, text: str) -> str:
        """Do what a line says; return what there is to say about it."""
        async with self._doing:
            self._sending = ""
            await self._lines.take(text, self._seen)
            if self._lines.unsent and self._sending in self._updates.own:
                self._updates.own.remove(self._sending)
            if self._lines.wants_to_leave:
                self._lines.wants_to_leave = False
                self._written.write(f"{LEAVE}\n")
            written = self._written.getvalue().strip("\n")
            self._written.seek(0)
            self._written.truncate()
        return written

    def _addressed(self, text: str) -> str:
        """Return a message with whom it asks; the editor shows it already."""
        text = clean_text(addressed(self.conversation, text, self.mode, self._sender))
        self._sending = text
        self._updates.own.append(text)
        return text

    async def _tell(self, event: ConversationEvent) -> None:
        """Tell the editor of an event."""
        match event:
            case TurnBegan() if self._is_prompting and self._is_cancelled:
                # It was cancelled before there was anything to stop.
                await self.cancel()
            case Lagged():
                for asked in self.conversation.approvals.open.values():
                    self._ask(asked)
            case Asked():
                self._ask(event)
            case Answered(turn_id=turn_id, question=question):
                self._take_back(turn_id, question)
            case FilesChanged(record=record) if self._updates.lacks_lines(record.turn_id):
                files = await self.conversation.read(changed_files, record.turn_id)
                await self._send(*self._updates.changed(record.turn_id, files))
            case TurnEnded(turn_id=turn_id):
                for asking, question in list(self._dialogs):
                    if asking == turn_id:
                        self._take_back(turn_id, question)
        await self._send(*self._updates.of(event))

    def _ask(self, asked: Asked) -> None:
        """Let the editor ask, while everything continues."""
        key = (asked.turn_id, asked.question.id)
        decision = next((one for one in self._decisions() if one.key == ("question", "/".join(key))), None)
        if decision is None or key in self._dialogs:
            return
        self._seen = [*self._seen, decision]
        request = permission_request(self.conversation.id, asked, decision)
        self._dialogs[key], answer = self._client.ask("session/request_permission", request)
        task = asyncio.create_task(self._asked(key, decision, answer))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _asked(self, key: tuple[str, str], decision: Decision, answer: "asyncio.Future[Any]") -> None:
        outcome = await answer
        if self._dialogs.pop(key, None) is None:
            return
        if (choice := chosen(outcome, decision)) is None:
            if key in self.conversation.approvals.open and not self._is_cancelled:
                await self._send(*self._updates.note(STILL_OPEN))
            return
        try:
            await run_command(typed_choice(choice), self.conversation, self._sender)
            if choice.begins:
                # A dialog of an editor has no place for words.
                await self._send(*self._updates.note(f"Say why: /tell {decision.member} …"))
        except BullpenError as error:
            await self._send(*self._updates.note(f"! {error}"))

    def _take_back(self, turn_id: str, question: str) -> None:
        """Close a dialog: somebody answered in another door, or the agent does not wait any more."""
        # The last one stays, so that what is typed to it late is not taken for a message.
        self._seen = [one for one in self._seen if (one.turn, one.question) != (turn_id, question)] or self._seen
        if (number := self._dialogs.pop((turn_id, question), None)) is not None:
            self._client.take_back(number)

    def _decisions(self) -> Sequence[Decision]:
        return conversation_view(self.conversation).decisions

    async def _send_decisions(self) -> None:
        """Tell what a person is asked to decide, and what they can type. What running agents ask is in dialogs."""
        self._seen = self._decisions()
        for decision in self._seen:
            if decision.kind != "question" or decision.question == ASK:
                await self._send(*self._updates.block(_decision_text(decision)))

    async def _send_title(self) -> None:
        title = conversation_view(self.conversation).title
        if title != self._title:
            self._title = title
            await self._send({"sessionUpdate": "session_info_update", "title": title})

    async def _send(self, *updates: Update) -> None:
        for update in updates:
            await self._client.notify("session/update", {"sessionId": self.conversation.id, "update": update})


def _decision_text(decision: Decision) -> str:
    """Return a decision in Markdown, with what can be typed."""
    shown = f"\n\n{fenced(decision.shown)}" if decision.shown else ""
    choices = "".join(
        f"\n- `{choice.key or choice.typed}`: {choice.purpose}{f' (or `{choice.typed}`)' if choice.key else ''}"
        for choice in decision.choices
    )
    return f"**{decision.text}**{shown}\n{choices}"
