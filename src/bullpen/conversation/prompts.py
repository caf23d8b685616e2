"""The prompt for a turn: the message to answer, the conversation before it, the agent's instructions."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.registry import is_known
from bullpen.context.agent_types import KINDS, AssemblerSet
from bullpen.context.assemblers import SHOWN_START, CodexContextAssembler, ContextAssembler, PlainTextAssembler
from bullpen.context.builder import PromptInput, build_prompt
from bullpen.context.manager import ContextManager, StandsFor
from bullpen.context.prepared import format_addressees
from bullpen.context.prompt import AssemblerInput, AssemblerOutput
from bullpen.conversation.answered_messages import AnsweredMessages
from bullpen.conversation.blind_rounds import Judged, judged, masked, masked_names, replies_for_judge
from bullpen.conversation.checks_in_prompts import wanted_checks
from bullpen.conversation.files_in_prompts import wanted_diff
from bullpen.conversation.hidden_replies import replies_of
from bullpen.conversation.instructions import NO_INSTRUCTIONS, Instructions, instructions_of, joined
from bullpen.conversation.judging import results_for_judge
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.memories import digest
from bullpen.conversation.prepared_turn import PreparedTurn, Seen, SessionPlan, in_session
from bullpen.conversation.review_words import question
from bullpen.conversation.summary_prompts import material, reported
from bullpen.conversation.visible_history import VisibleHistory, tool_guard
from bullpen.errors import BullpenError
from bullpen.markers.grammar import read_markers
from bullpen.memory import MemberMemory, Memory
from bullpen.messages import ConversationMessage
from bullpen.routing.blind import BlindRound
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.reviews import Review
from bullpen.routing.rounds import Round
from bullpen.routing.summaries import AskedSummary, Covered, Summary, usable
from bullpen.store.base import Store, StoredMessage
from bullpen.team.team import BULLPEN, SMALLEST_WINDOW, Member, Team
from bullpen.text.clean import byte_length

MOST_PENDING = 1_000
"""How many messages are offered to a session again for which there was no room."""


class Added(Struct, frozen=True, kw_only=True):
    """What a prompt holds besides what was said."""

    remark: str = ""
    """What the agent should know about its own last turns and about files."""
    shown: tuple[str, ...] = ()
    """What the message asks to be shown, of files and of checks."""
    rivals: tuple[str, ...] = ()
    """What is not in it, since others said it who do the same task."""
    summaries: tuple[Summary, ...] = ()
    """None of them is in it as an ordinary message; one may cover what is not shown."""

    @property
    def left_out(self) -> tuple[int, ...]:
        """The numbers of messages that are summaries."""
        return tuple(summary.number for summary in self.summaries)

    judged: Judged | None = None
    """Whose names are hidden in it."""


class OpenEnds(Struct, frozen=True, kw_only=True):
    """What a session has not seen, besides what was said since its last turn."""

    own: tuple[str, ...]
    """What it said itself."""
    due: tuple[str, ...]
    """What it may be given now: it was hidden before, or there was no room for it."""
    missing: tuple[str, ...]
    """Requests from before its first message."""
    unseen: tuple[str, ...]
    """What stays hidden in this turn."""


class Prompts:
    """Makes prompts for one conversation. Reads the store and files, so it is called outside of the event loop."""

    def __init__(self, context: ContextManager, store: Store, conversation_id: str, team: Team, root: Path) -> None:
        self._context = context
        self._store = store
        self._conversation_id = conversation_id
        self._team = team
        self._answered = AnsweredMessages(store, conversation_id, team)
        self._root = root
        self._is_specified = team.prompts == "specification"
        self._assemblers = AssemblerSet(as_specified=self._is_specified)

    def for_turn(
        self,
        turn: WaitingTurn,
        agent: MemberAgent,
        *,
        plan: SessionPlan | None = None,
        remark: str = "",
        hidden: Collection[str] = (),
        review: Review | None = None,
        summaries: Sequence[Summary] = (),
    ) -> PreparedTurn:
        """Return the prompt for a turn. `remark` is what the agent should know about its own last turns.

        Nothing of the hidden turns is in it: of those who do the same task, until one of the results is picked.
        """
        current, hidden_ids = self._answering(turn)
        rivals = replies_of(self._store, self._conversation_id, hidden)
        pinned_ids = [turn.message_id, *self._requests(turn.message_id, agent.member)]
        if review is None:
            shown = self.wanted_by(current.message, agent, self._asking(turn), hidden=hidden)
        else:
            where, room = (self._store, self._conversation_id, review), _room(agent, current.message)
            shown = question(*where, room, hidden, has_checks=bool(self._team.checks))
        return self.for_message(
            current.message,
            agent,
            hidden_ids,
            pinned_ids,
            plan=plan,
            remark=remark,
            shown=shown,
            rivals=rivals,
            summaries=summaries,
        )

    def for_judge(
        self, turn: WaitingTurn, agent: MemberAgent, one: Round, summaries: Sequence[Summary] = ()
    ) -> PreparedTurn:
        """Return the prompt for a turn in which an agent picks one of several results."""
        current = self._store.message(self._conversation_id, turn.message_id).message
        candidates = [candidate.turn for candidate in one.candidates]
        hidden_ids = replies_of(self._store, self._conversation_id, candidates)
        pinned_ids = [turn.message_id, *self._requests(turn.message_id, agent.member)]
        room = _room(agent, current)
        results = results_for_judge(self._store, self._conversation_id, one, self._team, room)
        return self.for_message(current, agent, hidden_ids, pinned_ids, shown=(results,), summaries=summaries)

    def for_summary(self, turn: WaitingTurn, agent: MemberAgent, asked: AskedSummary) -> PreparedTurn:
        """Return the prompt for a turn in which an agent sums up messages.

        It contains those and nothing else of the conversation: the summary is given to everyone who may see them.
        """
        current = self._store.message(self._conversation_id, turn.message_id).message
        if agent.member.visibility != "all":
            raise BullpenError(f"{agent.member.name} may not see all messages, so it cannot sum them up.")
        added = Added(shown=(material(self._store, self._conversation_id, asked),))
        source = self._context.get_context_for_agent(
            agent.member.name, agent.spec.name, message_id=current.id, window_size_override=0
        )
        output = self._built(current, agent, instructions_of(self._team, self._root, agent), source, added)
        # No message can contain this line: it would be indented.
        if SHOWN_START not in output.prompt:
            raise BullpenError(f"The messages {asked.given.words} do not fit into {agent.member.max_bytes:,} bytes.")
        return PreparedTurn(output=reported(output, asked))

    def for_blind(
        self, turn: WaitingTurn, agent: MemberAgent, blind: BlindRound, summaries: Sequence[Summary] = ()
    ) -> PreparedTurn:
        """Return the prompt for a turn in which an agent judges replies and is not told whose they are."""
        current, found = self._judged(turn, blind)
        pinned_ids = [turn.message_id, *self._requests(turn.message_id, agent.member)]
        wanted = self.wanted_by(current.message, agent, self._asking(turn), hidden=found.turns)
        replies = replies_for_judge(self._store, self._conversation_id, found, _room(agent, current.message))
        shown = (replies, *map(found.mask, wanted))
        return self.for_message(
            current.message, agent, list(found.replies), pinned_ids, shown=shown, summaries=summaries, judged=found
        )

    def _judged(self, turn: WaitingTurn, blind: BlindRound) -> tuple[StoredMessage, Judged]:
        """Return what the group has answered that is judged blind, and its replies."""
        current, _ = self._answered.by(replace(turn, step=blind.step))
        return current, judged(self._store, self._conversation_id, blind, turn.message_id, self._team)

    def visible_in(
        self,
        turn: WaitingTurn,
        member: Member,
        hidden: Collection[str],
        *,
        is_judges: bool,
        summaries: Sequence[Summary] = (),
        blind: BlindRound | None = None,
    ) -> VisibleHistory:
        """Return what the agent of a turn may look up: what could be in its prompt, were that large enough."""
        current, hidden_ids = self._answering(turn)
        mask = None
        if blind is not None:
            current, found = self._judged(turn, blind)
            hidden_ids, hidden, mask = [*hidden_ids, *found.replies], {*hidden, *found.turns}, found.mask
        if is_judges:
            # As in its prompt: of what came after the task, it is shown the results only, without names.
            current = self._store.message(self._conversation_id, turn.message_id)
        rivals = replies_of(self._store, self._conversation_id, hidden)
        return VisibleHistory(
            self._store,
            self._conversation_id,
            self._context,
            member,
            last=current.sequence,
            hidden_ids=[*hidden_ids, *rivals],
            hidden_turns=hidden,
            summaries=summaries,
            mask=mask,
            guard=tool_guard(self._everyone(mask)),
        )

    def wants_diff(self, turn: WaitingTurn) -> bool:
        """Return whether the agent of a turn is to be shown what another turn changed."""
        return self._has_marker(turn, "diff")

    def wants_checks(self, turn: WaitingTurn) -> bool:
        """Return whether the agent of a turn is to be shown what checks said."""
        return self._has_marker(turn, "checks")

    def for_message(
        self,
        current: ConversationMessage,
        agent: MemberAgent,
        hidden_ids: Sequence[str] = (),
        pinned_ids: Sequence[str] = (),
        *,
        plan: SessionPlan | None = None,
        remark: str = "",
        shown: tuple[str, ...] = (),
        rivals: Sequence[str] = (),
        summaries: Sequence[Summary] = (),
        judged: Judged | None = None,
    ) -> PreparedTurn:
        """Return the prompt for a message that the context knows. Pinned messages are in it, if they fit at all.

        Rivals are the replies of others who do the same task: they are hidden as well, and the report says so.
        """
        hidden_ids = list(dict.fromkeys([*hidden_ids, *rivals]))
        given = tuple(summaries)
        added = Added(remark=remark, shown=shown, rivals=tuple(rivals), summaries=given, judged=judged)
        instructions = instructions_of(self._team, self._root, agent)
        if plan is not None and plan.left is not None:
            return self._news(current, agent, instructions, hidden_ids, pinned_ids, plan, plan.left, added)
        output = self._window(current, agent, instructions, hidden_ids, pinned_ids, added)
        if plan is None:
            return PreparedTurn(output=output)
        kept = output.report.kept_ids
        first = next((message_id for message_id in kept if message_id not in pinned_ids), current.id)
        since = self._context.number_of(first)
        early = [message_id for message_id in kept if self._context.number_of(message_id) < since]
        seen = Seen(
            since=since,
            seen_to=self._context.number_of(current.id),
            pending=tuple(hidden_ids),
            early=tuple(early),
            system=instructions.digest,
            task=digest(self._context.get_team_task()),
        )
        return PreparedTurn(output=in_session(output, plan.use), plan=plan, seen=seen)

    def _news(
        self,
        current: ConversationMessage,
        agent: MemberAgent,
        instructions: Instructions,
        hidden_ids: Sequence[str],
        pinned_ids: Sequence[str],
        plan: SessionPlan,
        left: MemberMemory,
        added: Added,
    ) -> PreparedTurn:
        """Return the prompt for a turn in a session that continues: what has been said since, and what has changed."""
        memory, open_ends = left.memory, self._open_ends(agent.member, left, hidden_ids, pinned_ids)
        source = self._context.get_context_for_agent(
            agent.member.name,
            agent.spec.name,
            message_id=current.id,
            visibility=agent.member.visibility,
            names=_names_of(agent.member),
            hidden_ids=[*hidden_ids, *open_ends.own],
            pinned_ids=[*open_ends.due, *open_ends.missing],
            after=memory.seen_to,
            count_unseen=True,
            left_out=added.left_out,
        )
        task = digest(source.team_task)
        if task == memory.task:
            source = replace(source, team_task=None, team_task_bytes_cut=0)
        elif not source.team_task:
            added = replace(added, remark=joined([added.remark, "The team task no longer holds."]))
        # Where the system text is not a part of the conversation, the CLI needs it every time.
        knows = instructions.digest == memory.system and agent.spec.assembler.layout.system_header is not None
        given = replace(NO_INSTRUCTIONS, files=instructions.files, by_itself=instructions.by_itself)
        output = self._built(current, agent, given if knows else instructions, source, added)
        seen = self._seen_after(current, memory, open_ends, output.report.dropped_ids)
        use = replace(plan.use, has_other_system=instructions.digest != memory.first_system)
        return PreparedTurn(
            output=in_session(output, use),
            plan=plan,
            seen=replace(seen, system=instructions.digest, task=task),
        )

    def _open_ends(
        self, member: Member, left: MemberMemory, hidden_ids: Sequence[str], pinned_ids: Sequence[str]
    ) -> OpenEnds:
        """Return what a session has not seen, besides what was said since its last turn."""
        memory, number_of = left.memory, self._context.number_of
        own = tuple(dict.fromkeys([*memory.said, left.reply_id]))
        due = [message_id for message_id in memory.pending if message_id not in hidden_ids]
        if member.visibility == "addressed":
            due = [message_id for message_id in due if self._may_see(member, message_id)]
        missing = [
            message_id
            for message_id in pinned_ids
            if number_of(message_id) < memory.since and message_id not in memory.early
        ]
        # It may have seen what is hidden now, in a turn between the one that failed and this one.
        unseen = [
            message_id
            for message_id in hidden_ids
            if message_id not in own and (number_of(message_id) > memory.seen_to or message_id in memory.pending)
        ]
        return OpenEnds(own=own, due=tuple(due), missing=tuple(missing), unseen=tuple(unseen))

    def _seen_after(
        self, current: ConversationMessage, memory: Memory, open_ends: OpenEnds, dropped: Sequence[str]
    ) -> Seen:
        """Return what a session has seen after a turn. What there was no room for is offered again in the next one."""
        number_of = self._context.number_of
        seen_to = max(memory.seen_to, number_of(current.id))
        later = [message_id for message_id in open_ends.due if number_of(message_id) > number_of(current.id)]
        pending = dict.fromkeys([*dropped, *later, *open_ends.unseen])
        return Seen(
            since=memory.since,
            seen_to=seen_to,
            pending=tuple(pending)[-MOST_PENDING:],
            early=(*memory.early, *(one for one in open_ends.missing if one not in dropped)),
            said=tuple(message_id for message_id in open_ends.own if number_of(message_id) > seen_to),
        )

    def _window(
        self,
        current: ConversationMessage,
        agent: MemberAgent,
        instructions: Instructions,
        hidden_ids: Sequence[str],
        pinned_ids: Sequence[str],
        added: Added,
    ) -> AssemblerOutput:
        """Return the prompt for a turn that begins with nothing: a window of the conversation."""
        member = agent.member
        context = partial(
            self._context.get_context_for_agent,
            member.name,
            agent.spec.name,
            message_id=current.id,
            visibility=member.visibility,
            names=_names_of(member),
            hidden_ids=hidden_ids,
            left_out=added.left_out,
        )
        if self._is_specified:
            return self._built(current, agent, instructions, context(window_size_override=member.window), added)
        summary = self._standing(current, member, hidden_ids, added.summaries)
        context = partial(context, pinned_ids=pinned_ids, count_unseen=True, summary=summary)
        if member.window is None:
            source = context(window_size_override=SMALLEST_WINDOW, window_bytes=member.window_bytes)
        else:
            source = context(window_size_override=member.window)
        first = output = self._built(current, agent, instructions, source, added)
        # The oldest messages did not fit. A smaller window leaves room for pinned ones, which may be older still.
        window = output.report.kept_messages
        while window and not set(pinned_ids).isdisjoint(output.report.dropped_ids):
            window //= 2
            output = self._built(current, agent, instructions, context(window_size_override=window), added)
        # One that cannot fit at all must not cost the others their place.
        return output if set(pinned_ids).isdisjoint(output.report.dropped_ids) else first

    def _standing(
        self, current: ConversationMessage, member: Member, hidden_ids: Sequence[str], summaries: Sequence[Summary]
    ) -> StandsFor | None:
        """Return the summary that may cover messages which a member is not shown."""
        if not summaries:
            return None
        chosen = usable(
            summaries,
            before=self._context.number_of(current.id),
            hidden=frozenset(map(self._context.number_of, hidden_ids)),
            sees_all=partial(self._sees_all, member),
        )
        return None if chosen is None else (chosen.number, chosen.first, chosen.last)

    def _sees_all(self, member: Member, covered: Covered) -> bool:
        if member.visibility == "all":
            return True
        return self._context.sees_all(member.name, _names_of(member), covered.first, covered.last)

    def _built(
        self,
        current: ConversationMessage,
        agent: MemberAgent,
        instructions: Instructions,
        source: AssemblerInput,
        added: Added,
    ) -> AssemblerOutput:
        member, judged = agent.member, added.judged
        addressees: str | None = format_addressees(current.routing.resolved_addressees if current.routing else ())
        speaker = current.speaker.role_name
        if judged is not None:
            source, speaker = masked(source, judged.mask), judged.mask(speaker)
            addressees = masked_names(addressees, judged.mask)
        output = build_prompt(
            PromptInput(
                agent_type=agent.spec.name,
                message=source.current_message,
                context_messages=source.context_messages,
                window=None,
                message_id=current.id,
                later_messages=source.later_messages,
                unseen_messages=source.unseen_messages,
                summary=source.summary,
                system_instruction_text=instructions.configured,
                instruction_file_text=instructions.file_text,
                instruction_files=instructions.files,
                read_by_itself=instructions.by_itself,
                instruction_problems=instructions.problems,
                team_task=source.team_task,
                team_task_bytes_cut=source.team_task_bytes_cut,
                shown=added.shown,
                remark=added.remark,
                max_bytes=member.max_bytes,
                current_from=speaker if self._team.message_header else None,
                current_to=addressees,
                names=self._everyone(None if judged is None else judged.mask),
            ),
            assembler=self._assembler_of(agent),
        )
        # Read now: the transaction that stores the report must not read anything.
        ids = tuple(output.report.context_ids)
        # Whose stream the turn's output will be; two CLIs may share a layout.
        agent_type = agent.spec.name if is_known(member.agent) else output.report.agent_type
        who = judged.who if judged is not None else ()
        report = replace(output.report, context_ids=ids, agent_type=agent_type, rivals=added.rivals, blind=who)
        return replace(output, report=report)

    def _assembler_of(self, agent: MemberAgent) -> ContextAssembler:
        """Return what makes an agent's prompts. The specification has plain text for CLIs that it does not know."""
        if agent.refuses_system_file:
            return self._assemblers.of_kind(CodexContextAssembler)
        if not self._is_specified:
            return self._assemblers.of_kind(agent.spec.assembler)
        return self._assemblers.of_kind(KINDS.get(agent.spec.name, PlainTextAssembler))

    def _everyone(self, mask: Callable[[str], str] | None = None) -> tuple[str, ...]:
        """Return everyone who could speak in the prompt: the team, and former members; also by their neutral names."""
        members = (name for member in self._team.members for name in _names_of(member))
        ours = [BULLPEN] if self._team.has_own_voice else []
        speakers = (speaker.role_name for speaker in self._store.speakers(self._conversation_id))
        names = [*members, *ours, *speakers]
        return tuple(dict.fromkeys([*names, *(map(mask, names) if mask else ())]))

    def _requests(self, message_id: str, member: Member) -> list[str]:
        """Return what people asked for that led to a message: the last such message, and the one that began it all.

        A member that sees only what concerns it does not see a request that was addressed to somebody else.
        """
        requests = [message.id for message in self._answered.chain(message_id) if message.speaker.type == "human"]
        chosen = [*requests[:1], *requests[1:][-1:]]
        if member.visibility == "all":
            return chosen
        return [request for request in chosen if self._may_see(member, request)]

    def wanted_by(
        self,
        current: ConversationMessage,
        agent: MemberAgent,
        *others: ConversationMessage,
        hidden: Collection[str] = (),
    ) -> tuple[str, ...]:
        """Return what the markers of a message, or else of others, ask to be shown: a diff, and what checks said."""
        room = _room(agent, current)
        parts = []
        if (turn_id := _marker([current, *others], "diff")) is not None:
            parts.append(wanted_diff(self._store, self._conversation_id, turn_id, room, hidden))
        if (turn_id := _marker([current, *others], "checks")) is not None:
            parts.append(wanted_checks(self._store, self._conversation_id, turn_id, room, hidden))
        return tuple(parts)

    def _has_marker(self, turn: WaitingTurn, kind: str) -> bool:
        return _marker([self._answering(turn)[0].message, self._asking(turn)], kind) is not None

    def _answering(self, turn: WaitingTurn) -> tuple[StoredMessage, list[str]]:
        """Return the message that a turn answers, and the ids of those that it must not see."""
        return self._answered.latest(turn) if self._is_specified else self._answered.by(turn)

    def _asking(self, turn: WaitingTurn) -> ConversationMessage:
        return self._store.message(self._conversation_id, turn.message_id).message

    def _may_see(self, member: Member, message_id: str) -> bool:
        return self._context.may_see(member.name, _names_of(member), message_id)


def _room(agent: MemberAgent, current: ConversationMessage) -> int:
    return max(agent.member.max_bytes - byte_length(current.content), 0)


def _marker(messages: Iterable[ConversationMessage], kind: str) -> str | None:
    """Return the turn in such a marker of the first message that has one."""
    wanted = (getattr(read_markers(message.content), kind) for message in messages)
    return next((turn_id for turn_id in wanted if turn_id is not None), None)


def _names_of(member: Member) -> list[str]:
    return [name for name in (member.name, member.display_name) if name]
