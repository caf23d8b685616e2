"""Entries for files that an undo left, since a person perhaps changed them: asked about, and decided; pure."""

from msgspec.structs import replace

from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Decided, LeftByUndo
from bullpen.conversation.state import ConversationState
from bullpen.errors import NothingToDecide
from bullpen.routing.progress import FilesLeft

KEPT, TAKEN_BACK = "what is perhaps yours stays", "what was left is not asked about any more"


def asked(state: ConversationState, turn_id: str, left: FilesLeft, *, at: int) -> Entry:
    """Ask people whether such files are taken back, too."""
    change = Change(progress=replace(state.progress, files_left={**state.progress.files_left, turn_id: left}))
    return Entry(at=at, change=change, events=(LeftByUndo.of(turn_id, left),))


def settled(state: ConversationState, turn_id: str, choice: str, *, at: int) -> Entry:
    """Return the entry for files that stay as they are, or that are taken back or brought back with all others."""
    if turn_id not in state.progress.files_left:
        raise NothingToDecide(turn_id)
    others = {turn: left for turn, left in state.progress.files_left.items() if turn != turn_id}
    change = Change(progress=replace(state.progress, files_left=others))
    return Entry(at=at, change=change, events=(Decided(turn_id=turn_id, choice=choice),))
