"""One-line mistakes in the work with files, and how each is seen when it is interrupted."""

from pathlib import Path

from msgspec import Struct
from proofs.torture.planting import plant_in

HISTORY, OWN = "bullpen.conversation.file_history", "bullpen.conversation.own_workspaces"
MERGING, APPLY = "bullpen.conversation.merging", "bullpen.files.apply"
FIRST, LATER = "a first turn in a worktree, and its merge", "a later turn in a worktree, and its merge"
WRONG = "these are wrong"


class Mistake(Struct, frozen=True):
    """What is written in a module exactly once, what is written instead, and how that is seen in a story."""

    module: str
    right: str
    wrong: str
    story: str
    seen_as: str


MISTAKES = {
    "an undo is stored only when it is done": Mistake(
        HISTORY,
        "        begun = self._applied(workspace, self.add(wanted, decision))\n",
        "        begun = self.add(self._applied(workspace, wanted), decision)\n",
        "undo",
        WRONG,
    ),
    "what was begun is not completed": Mistake(
        HISTORY,
        "            if begun.number not in at_work:\n",
        "            if False:\n",
        "redo",
        "records are not completed",
    ),
    "a file is removed before the new one is there": Mistake(
        APPLY,
        "        os.rename(new, name, src_dir_fd=handle, dst_dir_fd=handle)\n",
        "        _remove(folder, path)\n        os.rename(new, name, src_dir_fd=handle, dst_dir_fd=handle)\n",
        "rewind",
        "neither as before nor as wanted",
    ),
    "what was half written stays": Mistake(
        APPLY,
        "            _forget_unfinished(folder, steps)\n",
        "",
        "rewind",
        "left behind|File exists",
    ),
    "work counts as merged before it is": Mistake(
        MERGING,
        "    own.note(seen=theirs, merging=theirs, turn=turn_id, question=ask)\n",
        "    own.note(seen=theirs, base=theirs, turn=turn_id, question=ask)\n",
        LATER,
        WRONG,
    ),
    "a merge that was begun counts as done": Mistake(
        MERGING,
        "    if is_brought:\n",
        "    if records is not None:\n",
        "taking the agent's version",
        WRONG,
    ),
    "what is half made of a worktree stays": Mistake(
        "bullpen.files.worktree",
        "        _remove(place, path)\n        head = head_of(place)\n",
        "        head = head_of(place)\n",
        FIRST,
        "cannot be done again: .*already exists",
    ),
    "people are asked again what they have decided": Mistake(
        OWN,
        "        if await asyncio.to_thread(own.has_unmerged_work):\n",
        "        if own.path:\n",
        "keeping the shared version",
        "it is said that it was not done, these are wrong",
    ),
    "nobody is asked to resolve what has both versions in it": Mistake(
        OWN,
        "        if question := (await _state_of(own)).question:\n",
        "        if not (question := (await _state_of(own)).turn):\n",
        "letting an agent resolve it",
        "it is said that it was done, these are wrong",
    ),
    "a worktree is forgotten before it is removed": Mistake(
        "bullpen.files.own_workspace",
        "        remove_worktree(place, self.path)\n",
        "        self._file.unlink(missing_ok=True)\n        remove_worktree(place, self.path)\n",
        "deleting the conversation",
        "of a conversation that is deleted",
    ),
}


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module; "" makes none."""
    if name:
        mistake = MISTAKES[name]
        plant_in(mistake.module, mistake.right, mistake.wrong, folder)
