"""The gate: what an agent may do without a person's word where people are asked. The same for every CLI.

No CLI decides what is harmless: each is started so that every command and every edit is asked for here.
"""

from bullpen.agents.free_reading import only_reads
from bullpen.agents.usual_edits import is_usual_edit
from bullpen.turn_events import ApprovalAsked, Failed

HARMLESS_DETAILS = frozenset({"is_background", "run_in_background", "timeout"})
"""What may be said of a command that only reads: how long it may take, and whether it is waited for."""


def is_free(question: ApprovalAsked, folder: str) -> bool:
    """Return whether all that is asked for is to read in the folder, or to change usual files there."""
    if question.kind == "command":
        has_more = not HARMLESS_DETAILS.issuperset(question.details)
        return not has_more and not question.diff and only_reads(question.command, folder, question.folder)
    return is_usual_edit(question, folder)


def went_past(what: str) -> Failed:
    """Return how a turn ends in which a CLI has done something that it had to ask for."""
    return Failed(
        kind="permission_refused",
        message=f"It did this without a yes, so its turn was ended: {what}",
        hint='Look at what it changed. Its own settings may allow that; with permissions = "ask" they must not. '
        "Remove them, or choose other permissions for this member.",
    )
