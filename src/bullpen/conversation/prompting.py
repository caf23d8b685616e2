"""What an agent is given for a turn: the message it answers, the conversation around it, its instructions."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from bullpen.context.builder import PromptInput, build_prompt
from bullpen.context.manager import ContextManager
from bullpen.context.prepared import format_addressees
from bullpen.context.prompt import AssemblerOutput
from bullpen.context.snapshot import VERSION, ContextSnapshot
from bullpen.conversation.seats import Seat
from bullpen.hand_over_note import hand_over_note
from bullpen.instruction_files import find_instruction_file, read_instruction_file
from bullpen.messages import ConversationMessage
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store, StoredMessage
from bullpen.team import Member, Team

LOOK_BACK = 1_000
"""How many messages are searched, at most, for what not every message is: addressed to a member, or part of a relay."""


class Prompts(Struct, frozen=True, kw_only=True):
    """Makes prompts for one conversation. Reads the store and files, so it is called outside of the event loop."""

    store: Store
    conversation_id: str
    team: Team
    root: Path

    def for_turn(self, turn: WaitingTurn, seat: Seat, *, team_task: str | None, remark: str = "") -> AssemblerOutput:
        """Return the prompt for a turn. `remark` is what the agent should know about its own last reply."""
        current, context = self._conversation_for(turn, seat.member)
        manager = ContextManager(context_window_size=len(context), max_bytes=seat.member.max_bytes)
        messages = [*context, current]
        manager.import_snapshot(
            ContextSnapshot(messages=messages, team_task=team_task, timestamp=current.timestamp, version=VERSION)
        )
        source = manager.get_context_for_agent(seat.member.name, seat.spec.name, message_id=current.id)
        return build_prompt(
            PromptInput(
                agent_type=seat.spec.name,
                message=source.current_message,
                context_messages=source.context_messages,
                system_instruction_text=self._system_instruction(seat.member, remark),
                instruction_file_text=self._instruction_files(seat),
                team_task=source.team_task,
                max_bytes=seat.member.max_bytes,
                current_from=current.speaker.role_name,
                current_to=format_addressees(current.routing.resolved_addressees if current.routing else ()),
                names=self._names(messages),
            ),
            assembler=seat.spec.assembler(),
        )

    def _names(self, messages: list[ConversationMessage]) -> tuple[str, ...]:
        """Return everyone who could speak in the prompt: the team, and who has left it since."""
        members = (name for member in self.team.members for name in (member.name, member.display_name) if name)
        return tuple(dict.fromkeys([*members, *(message.speaker.role_name for message in messages)]))

    def _conversation_for(
        self, turn: WaitingTurn, member: Member
    ) -> tuple[ConversationMessage, list[ConversationMessage]]:
        """Return the message to answer and what the agent sees of the rest.

        In a relay that is the last reply of the step before; the message that began the relay is always in sight. Those
        who answer at the same time do not see each other's replies.
        """
        asking = self.store.message(self.conversation_id, turn.message_id)
        replies = self._replies_to(turn)
        current = max(
            (reply for step, reply in replies if step < turn.step), default=asking, key=lambda reply: reply.sequence
        )
        hidden = {reply.sequence for step, reply in replies if step == turn.step} | {current.sequence}
        window = self._window(member, hidden)
        if current is not asking and asking.sequence not in {stored.sequence for stored in window}:
            window = [asking, *window]
        return current.message, [stored.message for stored in window]

    def _replies_to(self, turn: WaitingTurn) -> list[tuple[int, StoredMessage]]:
        """Return what others have replied to the same message, each with its step in the relay."""
        turns = self.store.turns(self.conversation_id, message_id=turn.message_id)
        replies = [
            (other.step, self.store.message(self.conversation_id, other.reply_id))
            for other in turns
            if other.reply_id is not None
        ]
        people = {person.name for person in self.team.people}
        steps = {other.member: other.step for other in turns if other.member in people}
        return [*replies, *self._words_of(steps, turn.message_id)] if steps else replies

    def _words_of(self, steps: Mapping[str, int], message_id: str) -> list[tuple[int, StoredMessage]]:
        """Return what people said in a relay. Their turns do not run, but their messages know what they answer."""
        return [
            (steps[stored.message.speaker.role_id], stored)
            for stored in self.store.messages(self.conversation_id, limit=LOOK_BACK)
            if stored.message.speaker.role_id in steps
            and stored.message.routing
            and stored.message.routing.parent_message_id == message_id
        ]

    def _window(self, member: Member, hidden: set[int]) -> list[StoredMessage]:
        """Return the newest messages that the member may see, as many as its window holds, without the hidden ones."""
        addressed = member.visibility == "addressed"
        limit = max(LOOK_BACK, member.window) if addressed else member.window + len(hidden)
        newest = self.store.messages(self.conversation_id, limit=limit)
        seen = [stored for stored in newest if stored.sequence not in hidden and _may_see(member, stored.message)]
        return seen[max(0, len(seen) - member.window) :]

    def _system_instruction(self, member: Member, remark: str) -> str:
        return _joined([member.system_instruction, hand_over_note(self.team, member), remark])

    def _instruction_files(self, seat: Seat) -> str:
        """Return the team's instruction file and the member's own, read anew for every turn."""
        allowed = self.team.outside_files
        own = seat.member.instruction_file
        if own is None:
            own = find_instruction_file(self.root, seat.folder, seat.spec.instruction_file, outside_allowed=allowed)
        names = dict.fromkeys(name for name in (self.team.instruction_file, own) if name)
        return _joined(read_instruction_file(self.root, name, outside_allowed=allowed) for name in names)


def _may_see(member: Member, message: ConversationMessage) -> bool:
    if member.visibility == "all" or message.speaker.role_id == member.name:
        return True
    addressees = message.routing.resolved_addressees if message.routing else ()
    return not addressees or member.name in addressees


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
