"""Conflicts: what an agent did in its own workspace, and others in the shared folder. Entries about them; pure."""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from bullpen.conversation import rounds
from bullpen.conversation.consequences import person_message
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Conflicted, Decided
from bullpen.conversation.state import ConversationState
from bullpen.errors import NoConflict
from bullpen.file_changes import MOST_SENT_FILES, FileChange
from bullpen.files.merge import Conflict
from bullpen.markers.grammar import read_markers
from bullpen.routing.progress import MergeConflict, Progress
from bullpen.routing.rounds import candidate_of
from bullpen.routing.router import Router
from bullpen.team.team import Member
from bullpen.text.numbers import counted

NOTHING_LEFT = "nothing is left to merge"
Settling = Literal["take", "keep", "resolve", "apart"]
"""Take the agent's versions, keep the shared ones, let a member resolve it, or leave the agent's work where it is."""
MOST_NAMED = 30
MARKED = (
    "Both versions are in these files: from <<<<<<< ours to ======= the one of the shared folder, from there to "
    ">>>>>>> theirs the one of {member}. Leave no such marks"
)
BESIDE = (
    "These are as they were in the shared folder, and the version of {member} is beside each, with the ending "
    "{ending}. Choose, and remove the files with that ending"
)
DELETED = "{member} deleted these, and others changed them. Keep or delete them"


def found(state: ConversationState, turn_id: str, member: str, files: Sequence[str], *, at: int) -> Entry:
    """Ask people about a conflict. There is at most one for each workspace: the latest."""
    first = tuple(files[:MOST_SENT_FILES])
    conflict = MergeConflict(member=member, files=first, more=len(files) - len(first))
    others = _in_other_workspaces(state.progress, turn_id, member)
    change = Change(progress=replace(state.progress, conflicts={**others, turn_id: conflict}))
    return Entry(at=at, change=change, events=(Conflicted.of(turn_id, conflict),))


def over(state: ConversationState, turn_id: str, member: str, *, at: int) -> Entry | None:
    """Forget the conflict of a workspace whose work is in the shared folder after all."""
    left = _in_other_workspaces(state.progress, turn_id, member)
    if left == state.progress.conflicts:
        return None
    return Entry(at=at, change=Change(progress=replace(state.progress, conflicts=left)))


def _in_other_workspaces(progress: Progress, turn_id: str, member: str) -> dict[str, MergeConflict]:
    """Return all conflicts but those of the workspace that a turn worked in: a member's, or one for that turn only."""
    if candidate_of(progress.rounds, turn_id) is not None:
        return {turn: one for turn, one in progress.conflicts.items() if turn != turn_id}
    return {
        turn: one
        for turn, one in progress.conflicts.items()
        if one.member != member or candidate_of(progress.rounds, turn) is not None
    }


def settled(state: ConversationState, turn_id: str, how: Settling, *, is_nothing: bool = False, at: int) -> Entry:
    """Return the entry for what a person has decided; `is_nothing`: about work that is not there any more."""
    conflict = state.progress.conflicts[turn_id]
    left = {turn: one for turn, one in state.progress.conflicts.items() if turn != turn_id}
    words = {
        "take": f"{conflict.member}'s versions are taken",
        "keep": "the shared versions are kept",
        "resolve": "both versions are in the files, to be resolved",
        "apart": f"it stays in {conflict.member}'s own workspace",
    }[how]
    progress = rounds.with_state(state.progress, turn_id, "apart" if how == "apart" else "merged")
    change = Change(progress=replace(progress, conflicts=left))
    return Entry(at=at, change=change, events=(Decided(turn_id=turn_id, choice=NOTHING_LEFT if is_nothing else words),))


def to_resolve(
    state: ConversationState, router: Router, person: Member, turn_id: str, text: str, *, message_id: str, at: int
) -> Entry:
    """Return the entry with which an agent is asked to resolve a conflict, in a message of a person."""
    decided = settled(state, turn_id, "resolve", at=at)
    asked = person_message(router, state, person, text, read_markers(text), message_id=message_id, at=at)
    progress, without = asked.change.progress, decided.change.progress
    if isinstance(progress, Progress) and isinstance(without, Progress):
        progress = replace(progress, conflicts=without.conflicts, rounds=without.rounds)
    return replace(asked, change=replace(asked.change, progress=progress), events=(*decided.events, *asked.events))


def open_conflict(state: ConversationState, turn_id: str | None) -> tuple[str, MergeConflict]:
    """Return the conflict of a turn, or else the latest; raises NoConflict."""
    conflicts = state.progress.conflicts
    chosen = next(reversed(conflicts), None) if turn_id is None else turn_id
    if chosen is None or chosen not in conflicts:
        raise NoConflict(turn_id)
    return chosen, conflicts[chosen]


def files_for(how: Settling, conflicts: Sequence[Conflict], member: str) -> tuple[FileChange, ...]:
    """Return how the files of a conflict must change in the shared folder."""
    if how == "take":
        return tuple(one.settled(one.theirs) for one in conflicts)
    if how == "resolve":
        return tuple(change for one in conflicts if (change := _with_both(one, member)) is not None)
    return ()


def _with_both(conflict: Conflict, member: str) -> FileChange | None:
    """Return a file with both versions in it; if it is not a text, with the agent's beside it, under another name."""
    if conflict.marked is not None:
        return conflict.settled(conflict.marked)
    if conflict.theirs is None:
        return None
    raw = (conflict.raw_path or conflict.path.encode()) + _ending(member).encode()
    return replace(conflict, path=raw.decode(errors="replace"), raw_path=raw, ours=None).settled(conflict.theirs)


def note_for(member: str, progress: Progress) -> str:
    """Return what a member should know of the conflicts that are open: some work is not where it looks for it."""
    return " ".join(
        Conflicted.of(turn, one).text
        + (
            " You continue in your own workspace."
            if one.member == member and candidate_of(progress.rounds, turn) is None
            else ""
        )
        for turn, one in progress.conflicts.items()
    )


def question(name: str, turn_id: str, member: str, conflicts: Sequence[Conflict]) -> str:
    """Return what a member is asked that is to resolve a conflict."""
    marked = [one.path for one in conflicts if one.marked is not None]
    beside = [one.path for one in conflicts if one.marked is None and one.theirs is not None]
    gone = [one.path for one in conflicts if one.marked is None and one.theirs is None]
    ask = (
        f"[NEXT: {name}] Please resolve a conflict: {member} (turn {turn_id}) and others changed the same places in "
        f"{counted(len(conflicts), 'file')}."
    )
    parts = (ask, _part(MARKED, marked, member), _part(BESIDE, beside, member), _part(DELETED, gone, member))
    return "\n\n".join(filter(None, parts))


def _part(words: str, paths: Sequence[str], member: str) -> str:
    if not paths:
        return ""
    listed = "\n".join(f"- {path!r}" for path in paths[:MOST_NAMED])
    more = f"\n- and {len(paths) - MOST_NAMED:,} more" if len(paths) > MOST_NAMED else ""
    return f"{words.format(member=member, ending=_ending(member))}:\n\n{listed}{more}"


def _ending(member: str) -> str:
    return ".from-" + "".join(character if character.isalnum() else "-" for character in member)
