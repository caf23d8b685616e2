"""Forking: a new conversation with the messages of another one, up to one of them. The other one is only read."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.clock import milliseconds
from bullpen.context.history import message_number
from bullpen.conversation.files_to_fork import FilesHere, FilesToFork, FindFiles
from bullpen.errors import BullpenError
from bullpen.exchange.approvals import all_approvals
from bullpen.exchange.changes import all_changes
from bullpen.exchange.checks import all_checks
from bullpen.exchange.formatting import all_messages
from bullpen.exchange.new_conversations import fill, fill_approvals, fill_changes, fill_checks, new_conversation
from bullpen.file_changes import ChangeRecord
from bullpen.memory import MemberMemory
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.progress import ProgramChange, Progress
from bullpen.routing.summaries import covered_by
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
    original: str
    """The conversation that was forked."""
    at: int
    """Its last message."""
    title: str
    team_path: str
    folders: tuple[str, ...] = ()
    """The worktrees with its own files, if it was forked with files."""


def fork_conversation(
    store: Store, conversation_id: str, at: int | None = None, *, with_files: bool = False, find: FindFiles = FilesHere
) -> Fork:
    """Make a conversation of the messages up to a number, or of all. If that fails, nothing is stored.

    No turn is asked for: people say how it continues. The agents continue copies of their sessions where they can. With
    files, they work in worktrees that have the files of that moment, where `find` finds them.
    """
    original = store.conversation(conversation_id)
    last = _checked(original, at)
    files = find(store, conversation_id, last) if with_files else None
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
        _planned(store, files, fork_id, now) as forked,
    ):
        end = _End()
        fill(store, fork_id, end.read(_messages(store, conversation_id, last)))
        made = {} if files is None else files.make()
        if files is not None:
            # Of the messages that are copied, the last one has the highest number.
            fill(store, fork_id, end.read(iter([_about(made, last, f"msg-{end.message_number + 1}", now)])))
        changes = _changes(store, conversation_id, last)
        fill_changes(store, fork_id, changes if files is None else _of_the_original(files, changes))
        fill_checks(store, fork_id, _checks(store, conversation_id, last))
        fill_approvals(store, fork_id, _approvals(store, conversation_id, last))
        progress = Progress(
            # No turn gets the number of one in the other conversation: sessions and changes name their turns.
            turns_made=max(before.turns_made, store.highest_turn(conversation_id)),
            message_number=end.message_number,
            person=end.person,
            handed_over=end.handed_over,
            borrowed=_sessions(store, original, last),
            programs=_undecided(store, fork_id, before),
            forgotten=before.forgotten,
            summaries=tuple(one for one in before.summaries if one.number <= last),
            forked=forked,
            since=now,
        )
        change = StateChange(paused=None, title=title, waits_for=end.person, progress=msgspec.to_builtins(progress))
        store.update(fork_id, at=now, change=change)
    folders = tuple(map(str, made.values()))
    return Fork(
        id=fork_id, original=conversation_id, at=last, title=title, team_path=original.team_path, folders=folders
    )


@contextmanager
def _planned(store: Store, files: FilesToFork | None, fork_id: str, at: int) -> Iterator[dict[str, str]]:
    """Plan the files of a fork, and remove them if it fails; yield what it must remember of them."""
    try:
        forked = {} if files is None else files.plan(fork_id)
        if forked:
            # Before there is a message that somebody could answer.
            progress = msgspec.to_builtins(Progress(forked=forked))
            store.update(fork_id, at=at, change=StateChange(progress=progress))
        yield forked
    except BaseException:
        if files is not None:
            files.remove()
        raise


def _of_the_original(files: FilesToFork, records: Iterator[ChangeRecord]) -> Iterator[ChangeRecord]:
    """Yield records as being about the folders of the team, also if they were made in an earlier fork."""
    for record in records:
        folder = files.original(Path(record.changes.folder))
        yield replace(record, changes=replace(record.changes, folder=str(folder)))


def _about(made: Mapping[str, Path], last: int, message_id: str, at: int) -> ConversationMessage:
    """Return a message that says where the files of a fork are."""
    where = "\n".join(f"- {folder} is here: {path}" for folder, path in made.items())
    text = (
        f"This is a fork with files of its own, as they were after message {last}. Agents work "
        f"there, and the files of the other conversation stay as they are.\n\n{where}"
    )
    speaker = Speaker(role_id=BULLPEN, role_name=BULLPEN, type="system")
    return ConversationMessage(id=message_id, content=text, speaker=speaker, timestamp=at)


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
        elif speaker.type == "ai" and covered_by(message) is None:
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


def _undecided(store: Store, fork_id: str, before: Progress) -> dict[str, ProgramChange]:
    """Return what people are asked in the original about files that copied turns have changed, and nothing else."""
    copied = {record.turn_id for record in store.changes(fork_id, turn_ids=[*before.programs], patches=False)}
    return {turn_id: one for turn_id, one in before.programs.items() if turn_id in copied}


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
