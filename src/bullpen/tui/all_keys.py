"""Every key and what it does, by where it works, as the help shows it."""

from collections.abc import Iterable

from textual.binding import BindingType

from bullpen.tui.change_line import ChangedLine
from bullpen.tui.changes_screen import ChangesScreen
from bullpen.tui.composer import Composer
from bullpen.tui.diff_screen import DiffScreen
from bullpen.tui.diff_view import DiffView
from bullpen.tui.fold import FoldTitle
from bullpen.tui.key_names import rows
from bullpen.tui.message import MessageView
from bullpen.tui.queue import QueuePanel
from bullpen.tui.transcript import Transcript


def all_keys(everywhere: Iterable[BindingType]) -> dict[str, list[tuple[str, str]]]:
    """Return the keys of each place; the conversation's own work everywhere."""
    return {
        "Everywhere": [
            *rows(everywhere),
            ("ctrl+p", "Every command, found by its words"),
            ("ctrl+t", "Dark or light"),
            ("ctrl+q", "Leave"),
        ],
        "While you write": rows(Composer.BINDINGS),
        "Among the messages": [
            *rows(Transcript.BINDINGS),
            *rows(MessageView.BINDINGS),
            *rows(FoldTitle.BINDINGS),
            *rows(ChangedLine.BINDINGS),
        ],
        "In the queue": rows(QueuePanel.BINDINGS),
        "In a diff": rows([*DiffScreen.BINDINGS, *DiffView.BINDINGS]),
        "In the list of changes": rows(ChangesScreen.BINDINGS),
    }
