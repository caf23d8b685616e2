"""Edits that need no question: of files in the agent's own folder that make no programs run."""

from bullpen.program_files import ProgramFiles, is_package, may_change_scripts
from bullpen.turn_events import ApprovalAsked


def is_usual_edit(question: ApprovalAsked, folder: str) -> bool:
    """Return whether all that is asked for is to change such files, and the changes are shown."""
    runs_something = question.command or "command" in question.details
    if question.kind != "edit" or runs_something or not question.diff or not question.paths:
        return False
    files = ProgramFiles(folder)
    is_of_package = any(map(is_package, question.paths))
    return all(map(files.is_usual, question.paths)) and not (is_of_package and may_change_scripts(question.diff))
