"""Conversations in a list, as people look for them: all of them, by a name, by what was said in them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.clock import pause
from bullpen.conversation.owner import check_not_open, is_alive, look, owned
from bullpen.errors import (
    AmbiguousConversation,
    BullpenError,
    ConversationInUse,
    NoConversations,
    UnknownConversation,
)
from bullpen.markers.stripping import strip_all_markers
from bullpen.messages import Speaker
from bullpen.routing.progress import MemberUsage
from bullpen.store.base import Decision, StateChange, Store, StoredConversation
from bullpen.team.file import team_path
from bullpen.text.clean import clean_text
from bullpen.view.activity import ACTIVITIES, Activity, ActivityName

LAST = "last"
UNTITLED = "New conversation"
LONGEST_TITLE = 72


class ConversationSummary(Struct, frozen=True, kw_only=True):
    """One conversation in a list."""

    id: str
    team: str
    team_path: str
    """Where its team file is; empty if it was not a file."""
    state: str
    """As stored; or "interrupted", if its process died in a turn, or "undecided", if something waits for a decision."""
    started_at: int
    last_at: int
    messages: int
    title: str
    """What a person calls it, else how it begins."""
    own_title: str | None
    """What a person calls it."""
    first_words: str
    queued: int
    running: int
    """How many turns are waiting, and how many are running."""
    waits_for: str | None
    """The person whose message is awaited."""
    paused: str | None
    task: str | None
    open_in: int | None
    """The number of the process that has it open."""
    activity: ActivityName
    """What it does now, in one of four words."""
    needs_you: bool
    """Whether it cannot continue without a person: paused, a turn failed or needs a yes, or it is open and waits."""
    tokens: int
    cost_usd: float | None
    """None if no CLI has reported it, and no model is known whose tokens cost it."""
    is_estimate: bool
    """Whether some of the money is what tokens cost by a list of prices."""
    is_archived: bool

    @property
    def folder(self) -> str:
        """The folder of its team file; empty if it was not a file."""
        return str(Path(self.team_path).parent) if self.team_path else ""


class Hit(Struct, frozen=True, kw_only=True):
    """A message that a search found."""

    conversation: str
    sequence: int
    speaker: str
    timestamp: int
    snippet: str
    message_id: str
    said_by: Speaker


def all_conversations(store: Store) -> list[ConversationSummary]:
    """Return every conversation, the latest first. One in which nothing was said is listed only while it is open."""
    listed = (_summary(store, stored) for stored in store.conversations())
    return [summary for summary in listed if summary.messages or summary.open_in is not None]


def conversation_summary(store: Store, conversation_id: str) -> ConversationSummary:
    """Return one conversation, or raise UnknownConversation."""
    return _summary(store, store.conversation(conversation_id))


def conversation_activity(store: Store, conversation_id: str) -> Activity:
    """Return what one conversation does now."""
    return ACTIVITIES[conversation_summary(store, conversation_id).activity]


def find_conversation(store: Store, reference: str) -> ConversationSummary:
    """Return the conversation with an id, or the only one whose id begins so, or for "last" the latest one here.

    That is the latest with any team file of this folder; where none has begun, the latest of all.
    """
    try:
        return conversation_summary(store, reference)
    except UnknownConversation:
        known = store.conversations()
    if not known:
        raise NoConversations
    if reference == LAST:
        said = _worth_continuing(known) or known
        return _summary(store, _last_here(said, Path.cwd(), None) or said[0])
    fitting = [stored for stored in known if reference and stored.id.startswith(reference)]
    if not fitting:
        raise UnknownConversation(reference)
    if len(fitting) > 1:
        raise AmbiguousConversation(reference, (stored.id for stored in fitting))
    return _summary(store, fitting[0])


def conversation_to_continue(store: Store, reference: str, team: Path | None) -> ConversationSummary:
    """Do the same for a conversation to continue, perhaps with this team file: "last" never means one of elsewhere.

    What was said in it would reach agents that have nothing to do with it.
    """
    said = _worth_continuing(store.conversations())
    if reference != LAST or not said:
        return find_conversation(store, reference)
    found = last_conversation(store, team)
    if found is None:
        latest = said[0]
        where = f"of {latest.team_path}" if latest.team_path else "without a team file"
        raise BullpenError(
            f"No conversation of {team or Path.cwd()} has begun yet. The latest of all is {latest.id}, {where}; "
            f"--resume {latest.id} continues it."
        )
    return found


def last_conversation(store: Store, team: Path | None) -> ConversationSummary | None:
    """Return the latest conversation of a team file; of its folder if it has none, or if none is named; else None."""
    found = _last_here(_worth_continuing(store.conversations()), Path.cwd(), team)
    return None if found is None else _summary(store, found)


def _worth_continuing(known: Iterable[StoredConversation]) -> list[StoredConversation]:
    """Return the conversations in which something was said; archived ones only if there are no others."""
    said = [stored for stored in known if stored.messages]
    return [stored for stored in said if stored.archived_at is None] or said


def _last_here(known: Iterable[StoredConversation], here: Path, team: Path | None) -> StoredConversation | None:
    """Return the latest conversation of a team file; of its folder if it has none, or if none is named."""
    file = None if team is None else team_path(team)
    folder = team_path(here / "team.toml").parent if file is None else file.parent
    placed = [(stored, Path(stored.team_path)) for stored in known if stored.team_path]
    nearest_first = (
        [stored for stored, path in placed if path == file],
        [stored for stored, path in placed if path.parent == folder],
        [stored for stored, path in placed if folder in path.parents or path.parent in folder.parents],
    )
    return next((stored for group in nearest_first for stored in group), None)


def search(store: Store, words: str, *, conversation_id: str | None = None, limit: int = 20) -> list[Hit]:
    """Return the newest messages that have all of these words, in one conversation or in all."""
    if not words.strip():
        return []
    return [
        Hit(
            conversation=found.conversation_id,
            sequence=found.sequence,
            speaker=found.speaker.role_name,
            timestamp=found.timestamp,
            snippet=found.snippet,
            message_id=found.message_id,
            said_by=found.speaker,
        )
        for found in store.search(words, conversation_id=conversation_id, limit=limit)
    ]


def search_in(store: Store, conversation_id: str, words: str, limit: int = 20) -> list[Hit]:
    """Do the same for Conversation.read."""
    return search(store, words, conversation_id=conversation_id, limit=limit)


def by_urgency(conversations: Iterable[ConversationSummary]) -> list[ConversationSummary]:
    """Return those that are not archived: the ones that need a person first, then as they were."""
    shown = [one for one in conversations if not one.is_archived]
    return sorted(shown, key=lambda one: not one.needs_you)


def conversations_beside(store: Store, conversation_id: str, folder: str) -> list[ConversationSummary]:
    """Return this conversation and those of a folder, the ones that need a person first."""
    return by_urgency(one for one in all_conversations(store) if one.id == conversation_id or one.folder == folder)


def earlier_beside(store: Store, conversation_id: str) -> ConversationSummary | None:
    """Return the latest other conversation of the same team file, if nothing has been said in this one."""
    this = store.conversation(conversation_id)
    if this.messages or not this.team_path:
        return None
    others = (one for one in store.conversations() if one.messages and one.archived_at is None)
    found = next((one for one in others if one.team_path == this.team_path), None)
    return None if found is None else _summary(store, found)


def title_of(title: str | None, first_words: str) -> str:
    """Return what a conversation is called: its title, else how it begins."""
    # Most messages have no marker, and a list may be long.
    plain = strip_all_markers(first_words) if "[" in first_words else first_words
    words = title or plain or first_words or UNTITLED
    return words if len(words) <= LONGEST_TITLE else f"{words[: LONGEST_TITLE - 1].rstrip()}…"


def typed_title(text: str) -> str | None:
    """Return a title as it is stored; None if nothing was typed."""
    return " ".join(clean_text(text).split())[:LONGEST_TITLE] or None


def rename(store: Store, conversation_id: str, title: str | None, *, by: str | None = None, at: int = 0) -> None:
    """Give a conversation that is not open here another title; None: call it by its first words again.

    It is stored who did it, if that is known and no process has the conversation open.
    """
    if by is None or store.conversation(conversation_id).owner is not None:
        store.label(conversation_id, title=title)
    else:
        decision = Decision(at=at, person=by, choice="rename")
        # With time 0, the time of the last activity stays as it is.
        store.update(conversation_id, at=0, change=StateChange(title=title, decision=decision))


def archive(store: Store, conversation_id: str, *, at: int, can_wait: bool = False) -> None:
    """Take a conversation out of the lists, unless some process has it open.

    One on another machine must be watched for a while. Who cannot wait is refused, since it may live.
    """
    before, seconds = look(store, conversation_id)
    if seconds and not can_wait and before is not None:
        raise BullpenError(
            f"Process {before.pid} on {before.host} may have {conversation_id} open. Close it there first, or use "
            f"`bullpen sessions archive {conversation_id}`, which waits to see whether it is still there."
        )
    pause(seconds)
    try:
        check_not_open(store, conversation_id, before)
    except ConversationInUse as error:
        raise BullpenError(f"Process {error.pid} has {conversation_id} open. Close it there first.") from error
    store.label(conversation_id, archived_at=at)


def delete(store: Store, conversation_id: str, *, at: int, force: bool = False) -> int | None:
    """Remove a conversation for good, with the worktrees of its agents, unless some process has it open.

    Without force, nothing is removed if an agent has done something in a worktree that is nowhere else. Returns how
    many bytes of files were kept only for it; None if they cannot be removed yet.
    """
    # Who only lists conversations does not need it.
    from bullpen.conversation.kept_files import remove_unneeded_files

    try:
        with owned(store, conversation_id) as owner:
            _remove_worktrees(store, conversation_id, force=force)
            store.delete(conversation_id, at=at, owner=owner)
    except ConversationInUse as error:
        who = f"Process {error.pid}"
        raise BullpenError(f"{who} has {conversation_id} open. Close it there first. Nothing was deleted.") from error
    return remove_unneeded_files(store)


def _remove_worktrees(store: Store, conversation_id: str, *, force: bool) -> None:
    from bullpen.conversation.file_history import files_home
    from bullpen.files.own_workspace import remove_own_workspaces, unmerged_work

    home = files_home(store)
    if home is None:
        return
    if not force and (left := unmerged_work(home, conversation_id)):
        if forked := [str(own.path) for own in left if own.state.is_fork]:
            raise BullpenError(
                f"The files of this fork, in {' and '.join(forked)}, have work that is nowhere else. Copy what you "
                "need from there, or delete it with --force. Nothing was deleted."
            )
        where = " and ".join(f"{own.member} in {own.path}" for own in left)
        raise BullpenError(
            f"There is work that was not merged: of {where}. Open the conversation and say /merge NAME, or delete it "
            "with --force. Nothing was deleted."
        )
    remove_own_workspaces(home, conversation_id)


def unarchive(store: Store, conversation_id: str) -> None:
    """Put a conversation back into the lists."""
    store.label(conversation_id, archived_at=None)


def _summary(store: Store, stored: StoredConversation) -> ConversationSummary:
    owner = stored.owner
    open_in = owner.pid if owner is not None and is_alive(owner, store) else None
    used = _used(stored.progress)
    needs_you = _needs_you(store, stored, is_open=open_in is not None)
    return ConversationSummary(
        id=stored.id,
        team=stored.team,
        team_path=stored.team_path,
        state=_state(stored, is_open=open_in is not None),
        started_at=stored.started_at,
        last_at=stored.last_at,
        messages=stored.messages,
        title=title_of(stored.title, stored.first_words),
        own_title=stored.title,
        first_words=stored.first_words,
        queued=stored.queued,
        running=stored.running,
        waits_for=stored.waits_for,
        paused=stored.paused,
        task=stored.team_task,
        open_in=open_in,
        activity=_activity(stored, needs_you=needs_you, is_open=open_in is not None),
        needs_you=needs_you,
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        is_estimate=used.is_estimate,
        is_archived=stored.archived_at is not None,
    )


def _state(stored: StoredConversation, *, is_open: bool) -> str:
    if stored.running:
        return stored.state if is_open else "interrupted"
    return "undecided" if _has_failed(stored) or _asks(stored) else stored.state


def _asks(stored: StoredConversation) -> bool:
    """Return whether a person is asked something, besides what becomes of turns that failed."""
    progress = stored.progress
    if any(progress.get(name) for name in ("asks", "unallowed", "conflicts", "programs", "files_left", "spent")):
        return True
    judged = [one for kind in ("rounds", "reviews") for one in dict(progress.get(kind) or {}).values()]
    return any(one.get("state") == "asking" for one in judged)


def _needs_you(store: Store, stored: StoredConversation, *, is_open: bool) -> bool:
    if stored.running and is_open:
        return bool(store.open_approvals(stored.id))
    is_stuck = stored.paused is not None or _state(stored, is_open=is_open) in ("interrupted", "undecided")
    return is_stuck or (is_open and stored.state == "waiting")


def _activity(stored: StoredConversation, *, needs_you: bool, is_open: bool) -> ActivityName:
    if needs_you:
        has_failed = _has_failed(stored) or (stored.running and not is_open)
        return "failed" if has_failed and not _asks(stored) else "waits"
    return "working" if stored.running else "asleep"


def _has_failed(stored: StoredConversation) -> bool:
    """Return whether a turn ended without a reply, as nobody wanted."""
    progress = stored.progress
    return not set(progress.get("undecided") or ()) <= set(progress.get("cancelled") or ())


def _used(progress: dict[str, Any]) -> MemberUsage:
    """Return what all turns have used, as far as it was counted."""
    used = msgspec.convert(progress.get("used", {}), dict[str, MemberUsage])
    return sum(used.values(), start=MemberUsage())
