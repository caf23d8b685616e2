"""Forking: a new conversation with the messages of another one, up to one of them. The other one is only read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.context.history import message_number
from bullpen.conversation.file_history import files_home
from bullpen.conversation.forked_files import files_after, forked_files, make_forked_files, plan_forked_files
from bullpen.conversation.running_turn import milliseconds
from bullpen.errors import BullpenError
from bullpen.exchange.approvals import all_approvals
from bullpen.exchange.changes import all_changes
from bullpen.exchange.checks import all_checks
from bullpen.exchange.formatting import all_messages
from bullpen.exchange.new_conversations import fill, fill_approvals, fill_changes, fill_checks, new_conversation
from bullpen.file_changes import ChangeRecord
from bullpen.files.own_workspace import OwnWorkspace, remove_own_workspaces
from bullpen.memory import MemberMemory
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.progress import Progress
from bullpen.store.base import StateChange, Store, StoredConversation
from bullpen.text.numbers import counted
from bullpen.view.listing import LONGEST_TITLE, title_of

FORKED_FROM = "forkedFrom"
"""The field of a conversation that says which one it was forked from, and at which message."""
BULLPEN = "bullpen"
UNFINISHED = "The fork did not finish. Delete this conversation and fork the other one again."
_FORK = re.compile(r" \(fork at #\d+\)$")


class Fork(Struct, frozen=True, kw_only=True):
    """A conversation that was just forked."""

    id: str
    at: int
    """Its last message."""
    title: str
    team_path: str
    folders: tuple[str, ...] = ()
    """The worktrees with its own files, if it was forked with files."""


def fork_conversation(store: Store, conversation_id: str, at: int | None = None, *, with_files: bool = False) -> Fork:
    """Make a conversation of the messages up to a number, or of all. If that fails, nothing is stored.

    No turn is asked for: people say how it continues. The agents continue copies of their sessions where they can. With
    files, they work in worktrees that have the files of that moment.
    """
    original = store.conversation(conversation_id)
    last = _checked(original, at)
    files = _Files(store, conversation_id, last) if with_files else None
    # Before anything is written: a damaged message is found here.
    given = (store, conversation_id, last)
    for _ in chain(_messages(*given), _changes(*given), _checks(*given), _approvals(*given)):
        pass
    before = msgspec.convert(original.progress, Progress)
    title, now = _title(original, last), milliseconds()
    with (
        new_conversation(
            store,
            "forked",
            unfinished=UNFINISHED,
            team=original.team,
            team_file=original.team_file,
            team_path=original.team_path,
            started_at=now,
            team_task=original.team_task,
            extra={**(original.extra or {}), FORKED_FROM: {"conversation": conversation_id, "message": last}},
        ) as fork_id,
        _planned(files, fork_id),
    ):
        end = _End()
        fill(store, fork_id, end.read(_messages(store, conversation_id, last)))
        if files is not None:
            # Of the messages that are copied, the last one has the highest number.
            fill(store, fork_id, end.read(iter([files.make(end.message_number + 1, now)])))
        changes = _changes(store, conversation_id, last)
        fill_changes(store, fork_id, changes if files is None else map(files.of_the_original, changes))
        fill_checks(store, fork_id, _checks(store, conversation_id, last))
        fill_approvals(store, fork_id, _approvals(store, conversation_id, last))
        progress = Progress(
            # No turn gets the number of one in the other conversation: sessions and changes name their turns.
            turns_made=max(before.turns_made, store.highest_turn(conversation_id)),
            message_number=end.message_number,
            person=end.person,
            handed_over=end.handed_over,
            borrowed=_sessions(store, original, last),
            forgotten=before.forgotten,
            since=now,
        )
        change = StateChange(paused=None, title=title, waits_for=end.person, progress=msgspec.to_builtins(progress))
        store.update(fork_id, at=now, change=change)
    folders = () if files is None else tuple(str(own.path) for own in files.planned.values())
    return Fork(id=fork_id, at=last, title=title, team_path=original.team_path, folders=folders)


class _Files:
    """The files of a fork."""

    def __init__(self, store: Store, conversation_id: str, last: int) -> None:
        home = files_home(store)
        if home is None:
            raise BullpenError(
                "What files were is not kept beside this database, but on workers if at all, so they cannot be forked. "
                "Fork it without files: its agents then work in the same folders as those of the other conversation."
            )
        self.home = home
        self._last = last
        self._forked = forked_files(home, conversation_id)
        self._trees = files_after(store, conversation_id, last, home)
        self.planned: dict[str, OwnWorkspace] = {}

    def plan(self, fork_id: str) -> None:
        """Note where they will be."""
        self.planned = plan_forked_files(self.home, fork_id, self._trees)

    def of_the_original(self, record: ChangeRecord) -> ChangeRecord:
        """Return a record as being about the folder of the team, also if it was made in an earlier fork."""
        folder = self._forked.original(Path(record.changes.folder))
        return replace(record, changes=replace(record.changes, folder=str(folder)))

    def make(self, number: int, at: int) -> ConversationMessage:
        """Make the worktrees, and return a message that says where they are."""
        make_forked_files(self.planned, self._trees, self._last)
        where = "\n".join(f"- {folder} is here: {own.path}" for folder, own in self.planned.items())
        text = (
            f"This is a fork with files of its own, as they were after message {self._last}. Agents work "
            f"there, and the files of the other conversation stay as they are.\n\n{where}"
        )
        speaker = Speaker(role_id=BULLPEN, role_name=BULLPEN, type="system")
        return ConversationMessage(id=f"msg-{number}", content=text, speaker=speaker, timestamp=at)


@contextmanager
def _planned(files: _Files | None, fork_id: str) -> Iterator[None]:
    """Plan the files of a fork, and remove them if it fails."""
    try:
        if files is not None:
            files.plan(fork_id)
        yield
    except BaseException:
        if files is not None:
            with suppress(OSError):
                remove_own_workspaces(files.home, fork_id)
        raise


class _End:
    """What a conversation remembers at its end, learned from the messages up to there."""

    def __init__(self) -> None:
        self.person: str | None = None
        self.handed_over: dict[str, str] = {}
        self.message_number = 0
        self._people: set[str] = set()

    def read(self, messages: Iterator[ConversationMessage]) -> Iterator[ConversationMessage]:
        """Yield messages, and learn from each."""
        for message in messages:
            self._learn(message)
            yield message

    def _learn(self, message: ConversationMessage) -> None:
        self.message_number = max(self.message_number, message_number(message.id))
        speaker = message.speaker
        if speaker.type == "human":
            self.person = speaker.role_id
            self._people.add(speaker.role_id)
        elif speaker.type == "ai":
            asked = message.routing.resolved_addressees if message.routing else ()
            to = next((name for name in asked if name in self._people), None if asked else self.person)
            if to is not None:
                self.handed_over[to] = speaker.role_id


def _checked(original: StoredConversation, at: int | None) -> int:
    """Return the last message of the fork, or raise BullpenError if there is none such."""
    if not original.messages:
        raise BullpenError(f"Nothing was said in {original.id} yet, so there is nothing to fork.")
    if at is not None and not 1 <= at <= original.messages:
        has = counted(original.messages, "message")
        raise BullpenError(f"{original.id} has {has}, so it cannot be forked at message {at}. Nothing was written.")
    return at or original.messages


def _messages(store: Store, conversation_id: str, last: int) -> Iterator[ConversationMessage]:
    return (stored.message for stored in all_messages(store, conversation_id, last=last))


def _changes(store: Store, conversation_id: str, last: int) -> Iterator[ChangeRecord]:
    """Yield what changed up to a message. What is only begun is finished in the other conversation, and there only."""
    return (record for record in all_changes(store, conversation_id, last=last) if record.state == "done")


def _checks(store: Store, conversation_id: str, last: int) -> Iterator[CheckResult]:
    """Yield what checks said up to a message, except for those that run now."""
    return (result for result in all_checks(store, conversation_id, last=last) if result.state != "running")


def _approvals(store: Store, conversation_id: str, last: int) -> Iterator[ApprovalRecord]:
    """Yield what was asked and answered up to a message."""
    return all_approvals(store, conversation_id, last=last)


def _sessions(store: Store, original: StoredConversation, last: int) -> dict[str, MemberMemory]:
    """Return the session that each agent had after its last turn up to a message.

    Whether a copy of it can be continued is decided before the agent's first turn: not if it has grown since.
    """
    borrowed = msgspec.convert(original.progress, Progress).borrowed
    agents = {speaker.role_id for speaker in store.speakers(original.id) if speaker.type == "ai"}
    found = {name: store.memory(original.id, name, up_to=last) or borrowed.get(name) for name in sorted(agents)}
    return {
        name: one
        for name, one in found.items()
        if one is not None and store.message(original.id, one.reply_id).sequence <= last
    }


def _title(original: StoredConversation, last: int) -> str:
    ending = f" (fork at #{last})"
    words = _FORK.sub("", title_of(original.title, original.first_words))
    room = LONGEST_TITLE - len(ending)
    return f"{words if len(words) <= room else f'{words[: room - 1].rstrip()}…'}{ending}"
