"""Preview: what an agent would be given about a message, in a stored conversation or in a new one."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from bullpen.clock import milliseconds
from bullpen.context.manager import ContextManager
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.consequences import speaker_of
from bullpen.conversation.hidden_replies import last_visible, replies_of
from bullpen.conversation.member_agent import MemberAgent, agent_for
from bullpen.conversation.memories import Memories
from bullpen.conversation.own_workspaces import own_folders
from bullpen.conversation.prompts import Prompts
from bullpen.conversation.remarks import remark_for
from bullpen.conversation.stored_history import StoredHistory
from bullpen.errors import BullpenError
from bullpen.markers.grammar import DEFAULT_INTENT, read_markers
from bullpen.messages import ConversationMessage, Routing
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rounds import hidden_from
from bullpen.routing.router import Router
from bullpen.store.base import Store, StoredConversation, StoredMessage
from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import LoadedTeam
from bullpen.team.team import Member
from bullpen.text.clean import clean_text
from bullpen.view.explanation import Explanation, explain_output

PREVIEW = "preview"


class Supposed(Struct, frozen=True, kw_only=True):
    """A message that somebody might send."""

    text: str
    sender: str | None = None


class Preview(Struct, frozen=True, kw_only=True):
    """A prompt that is not sent."""

    explanation: Explanation
    output: AssemblerOutput

    def as_json(self) -> dict[str, object]:
        """Return it for programs."""
        report = self.output.report
        return {
            "member": self.explanation.member,
            "prompt": self.output.prompt,
            "system": self.output.system_flag,
            "known": msgspec.to_builtins(self.explanation.known),
            "report": {
                **msgspec.to_builtins(report, enc_hook=list),
                "total_bytes": report.total_bytes,
                "cuts": report.cuts,
                "remarks": report.remarks,
            },
        }


@contextmanager
def new_conversation(loaded: LoadedTeam) -> Iterator[tuple[Store, str]]:
    """Make a conversation of a team in which nothing has been said, in a file that is gone afterwards."""
    team = loaded.team
    with tempfile.TemporaryDirectory(prefix="bullpen-preview-") as folder, SqliteStore(Path(folder, "db")) as store:
        store.create(PREVIEW, team=team.name, team_file=loaded.text, started_at=milliseconds(), team_task=team.task)
        yield store, PREVIEW


def preview(
    store: Store, conversation_id: str, loaded: LoadedTeam, member_name: str, supposed: Supposed | None
) -> Preview:
    """Return what an agent would be given about a message that is supposed, or about the last one."""
    stored, router = store.conversation(conversation_id), Router(loaded.team)
    member = router.member(member_name)
    if member.type != "ai":
        names = ", ".join(agent.name for agent in loaded.team.agents)
        raise BullpenError(f"{member.name} is a person, and gets no prompt. The agents: {names}.")
    history = StoredHistory(store, stored.id, messages=stored.messages, highest_number=0)
    progress, agent = msgspec.convert(stored.progress, Progress), _agent(store, stored, member, loaded)
    hidden = hidden_from(progress.rounds, member.name)
    message, is_apart = (None, False) if supposed is None else _message(router, member, supposed)
    context = _context(loaded, stored, history, message)
    last = last_visible(store, stored.id, hidden, progress.summaries) if message is None else None
    current = last.message if last is not None else message
    if current is None:
        raise BullpenError("Nothing has been said yet. Add --message and a text to see what would be sent then.")
    prompts = Prompts(context, store, stored.id, loaded.team, loaded.root)
    memories = Memories(store, stored.id)
    plan = None if is_apart else memories.plan(agent, progress)
    turn = WaitingTurn(id=PREVIEW, member=member.name, message_id=current.id, intent=DEFAULT_INTENT)
    remark = remark_for(turn, loaded.team, progress, memories, plan, is_one_of_several=is_apart)
    shown = prompts.wanted_by(current, agent, hidden=hidden)
    rivals = replies_of(store, stored.id, hidden)
    output = prompts.for_message(
        current, agent, plan=plan, remark=remark, shown=shown, rivals=rivals, summaries=progress.summaries
    ).output
    sequence = stored.messages + 1 if last is None else last.sequence
    answered = StoredMessage(sequence=sequence, message=current, hash=b"")
    return Preview(explanation=explain_output(store, stored.id, member.name, output, answered), output=output)


def _agent(store: Store, stored: StoredConversation, member: Member, loaded: LoadedTeam) -> MemberAgent:
    return agent_for(member, loaded.root, own=own_folders(store, stored.id))


def _context(
    loaded: LoadedTeam, stored: StoredConversation, history: StoredHistory, message: ConversationMessage | None
) -> ContextManager:
    task, team = stored.team_task, loaded.team
    if message is not None:
        history.append(message)
        task = read_markers(message.content).team_task or task
    return ContextManager(history=history, team_task=task, whitespace=team.whitespace, task_setters=team.task_setters)


def _message(router: Router, member: Member, supposed: Supposed) -> tuple[ConversationMessage, bool]:
    """Return the message as it would be stored, and whether the member is one of several who would do the same task.

    One that names nobody goes to the member that we look at.
    """
    text = clean_text(supposed.text)
    markers = read_markers(text)
    if markers.sum_up is not None:
        raise BullpenError("What a summary is made of is known when it is asked for: bullpen explain shows it then.")
    person = router.sender_of(markers, given=supposed.sender)
    route = router.route(person, markers, in_relay=True)
    if route.judge is not None and route.judge.member == member.name:
        raise BullpenError(f"{member.name} is to judge: it is asked when there are results, and is given these.")
    addressees = route.addressees or (member.name,)
    message = ConversationMessage(
        id=PREVIEW,
        content=text,
        speaker=speaker_of(person),
        timestamp=milliseconds(),
        routing=Routing(resolved_addressees=addressees),
    )
    return message, route.is_best_of and member.name in addressees
