"""The prompt for a turn: the message to answer, the conversation before it, the agent's instructions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from bullpen.context.agent_types import AssemblerSet
from bullpen.context.builder import PromptInput, build_prompt
from bullpen.context.manager import ContextManager
from bullpen.context.prepared import format_addressees
from bullpen.context.prompt import AssemblerInput, AssemblerOutput
from bullpen.conversation.member_agent import MemberAgent
from bullpen.errors import InstructionFileProblem, UnknownMessage
from bullpen.messages import ConversationMessage
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store, StoredMessage
from bullpen.team.hand_over_note import hand_over_note
from bullpen.team.instruction_files import find_instruction_file, read_instruction_file
from bullpen.team.team import SMALLEST_WINDOW, Member, Team

LONGEST_CHAIN = 100
"""How many messages, each an answer to the next, are followed back to what a person asked for."""
LOOK_BACK = 1_000
"""How many messages are searched, at most, for what people said in a relay."""


class Prompts:
    """Makes prompts for one conversation. Reads the store and files, so it is called outside of the event loop."""

    def __init__(self, context: ContextManager, store: Store, conversation_id: str, team: Team, root: Path) -> None:
        self._context = context
        self._store = store
        self._conversation_id = conversation_id
        self._team = team
        self._root = root
        self._assemblers = AssemblerSet()

    def for_turn(self, turn: WaitingTurn, agent: MemberAgent, *, remark: str = "") -> AssemblerOutput:
        """Return the prompt for a turn. `remark` is what the agent should know about its own last reply."""
        current, hidden_ids = self._message_to_answer(turn)
        pinned_ids = [turn.message_id, *self._requests(turn.message_id, agent.member)]
        return self.for_message(current.message, agent, hidden_ids, pinned_ids, remark)

    def for_message(
        self,
        current: ConversationMessage,
        agent: MemberAgent,
        hidden_ids: Sequence[str] = (),
        pinned_ids: Sequence[str] = (),
        remark: str = "",
    ) -> AssemblerOutput:
        """Return the prompt for a message that the context knows. Pinned messages are in it, if they fit at all."""
        member = agent.member
        context = partial(
            self._context.get_context_for_agent,
            member.name,
            agent.spec.name,
            message_id=current.id,
            visibility=member.visibility,
            names=_names_of(member),
            hidden_ids=hidden_ids,
            pinned_ids=pinned_ids,
            count_unseen=True,
        )
        if member.window is None:
            source = context(window_size_override=SMALLEST_WINDOW, window_bytes=member.window_bytes)
        else:
            source = context(window_size_override=member.window)
        first = output = self._built(current, agent, source, remark)
        # The oldest messages did not fit. A smaller window leaves room for pinned ones, which may be older still.
        window = output.report.kept_messages
        while window and not set(pinned_ids).isdisjoint(output.report.dropped_ids):
            window //= 2
            output = self._built(current, agent, context(window_size_override=window), remark)
        # One that cannot fit at all must not cost the others their place.
        return output if set(pinned_ids).isdisjoint(output.report.dropped_ids) else first

    def _built(
        self, current: ConversationMessage, agent: MemberAgent, source: AssemblerInput, remark: str
    ) -> AssemblerOutput:
        member = agent.member
        file_text, problems = self._instruction_files(agent)
        addressees = current.routing.resolved_addressees if current.routing else ()
        output = build_prompt(
            PromptInput(
                agent_type=agent.spec.name,
                message=source.current_message,
                context_messages=source.context_messages,
                window=None,
                message_id=current.id,
                later_messages=source.later_messages,
                unseen_messages=source.unseen_messages,
                system_instruction_text=self._system_instruction(member, remark),
                instruction_file_text=file_text,
                instruction_problems=problems,
                team_task=source.team_task,
                team_task_bytes_cut=source.team_task_bytes_cut,
                max_bytes=member.max_bytes,
                current_from=current.speaker.role_name if self._team.message_header else None,
                current_to=format_addressees(addressees),
                names=self._everyone(),
            ),
            assembler=self._assemblers.of_kind(agent.spec.assembler),
        )
        # Read now: the transaction that stores the report must not read anything.
        ids = tuple(output.report.context_ids)
        return replace(output, report=replace(output.report, context_ids=ids))

    def _everyone(self) -> tuple[str, ...]:
        """Return everyone who could speak in the prompt: the team, and former members."""
        members = (name for member in self._team.members for name in _names_of(member))
        speakers = (speaker.role_name for speaker in self._store.speakers(self._conversation_id))
        return tuple(dict.fromkeys([*members, *speakers]))

    def _requests(self, message_id: str, member: Member) -> list[str]:
        """Return what people asked for that led to a message: the last such message, and the one that began it all.

        A member that sees only what concerns it does not see a request that was addressed to somebody else.
        """
        requests = [message.id for message in self._chain(message_id) if message.speaker.type == "human"]
        chosen = [*requests[:1], *requests[1:][-1:]]
        if member.visibility == "all":
            return chosen
        may_see = partial(self._context.may_see, member.name, _names_of(member))
        return [request for request in chosen if may_see(request)]

    def _chain(self, message_id: str) -> Iterator[ConversationMessage]:
        """Yield a message, the one that it answers, and so on. An import may name messages that do not exist."""
        parent: str | None = message_id
        for _ in range(LONGEST_CHAIN):
            try:
                message = None if parent is None else self._store.message(self._conversation_id, parent).message
            except UnknownMessage:
                return
            if message is None:
                return
            yield message
            parent = message.routing.parent_message_id if message.routing else None

    def _message_to_answer(self, turn: WaitingTurn) -> tuple[StoredMessage, list[str]]:
        """Return the message to answer, and the ids of those that the agent must not see.

        In a relay it is the last reply of the step before. Those who answer at the same time do not see each other's
        replies.
        """
        asking = self._store.message(self._conversation_id, turn.message_id)
        replies = self._replies_to(turn)
        earlier = [reply for step, reply in replies if step < turn.step]
        current = max(earlier, default=asking, key=lambda reply: reply.sequence)
        return current, [reply.message.id for step, reply in replies if step == turn.step]

    def _replies_to(self, turn: WaitingTurn) -> list[tuple[int, StoredMessage]]:
        """Return what others have replied to the same message, each with its step in the relay."""
        turns = self._store.turns(self._conversation_id, message_id=turn.message_id)
        replies = [
            (other.step, self._store.message(self._conversation_id, other.reply_id))
            for other in turns
            if other.reply_id is not None
        ]
        people = {person.name for person in self._team.people}
        steps = {other.member: other.step for other in turns if other.member in people}
        return [*replies, *self._said_by_people(steps, turn.message_id)] if steps else replies

    def _said_by_people(self, steps: Mapping[str, int], message_id: str) -> list[tuple[int, StoredMessage]]:
        """Return what people said in a relay. Their turns do not run, but their messages name the one they answer."""
        return [
            (steps[stored.message.speaker.role_id], stored)
            for stored in self._store.messages(self._conversation_id, limit=LOOK_BACK)
            if stored.message.speaker.role_id in steps
            and stored.message.routing
            and stored.message.routing.parent_message_id == message_id
        ]

    def _system_instruction(self, member: Member, remark: str) -> str:
        """Return the configured instruction and the hand-over note; without that note, nothing is added."""
        note = hand_over_note(self._team, member)
        return _joined([member.system_instruction, note, remark if self._team.hand_over_note else ""])

    def _instruction_files(self, agent: MemberAgent) -> tuple[str, list[str]]:
        """Return the team's instruction file and the member's own, read again for every turn.

        One that cannot be read does not stop the turn: the prompt does not contain it, and the report says why.
        """
        allowed = self._team.outside_files
        own = agent.member.instruction_file
        if own is None:
            own = find_instruction_file(self._root, agent.folder, agent.spec.instruction_file, outside_allowed=allowed)
        texts: list[str] = []
        problems: list[str] = []
        for name in dict.fromkeys(name for name in (self._team.instruction_file, own) if name):
            try:
                texts.append(read_instruction_file(self._root, name, outside_allowed=allowed))
            except InstructionFileProblem as problem:
                problems.append(str(problem))
        return _joined(texts), problems


def _names_of(member: Member) -> list[str]:
    return [name for name in (member.name, member.display_name) if name]


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
