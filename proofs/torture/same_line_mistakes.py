"""One-line mistakes in bringing work of agents together, and how each is seen."""

from pathlib import Path

from proofs.torture.planting import plant_in

MERGE, MERGING = "bullpen.files.merge", "bullpen.conversation.merging"
CONFLICT = "    return Conflict(path=name, raw_path=raw, base=base, ours=ours, theirs=theirs, marked=state)\n"
LOST = r"and this is lost: \["
NOT_SHOWN = "which is not shown"

MISTAKES = {
    "in a conflict, the shared version is taken without a word": (MERGE, CONFLICT, "    return ours\n", NOT_SHOWN),
    "in a conflict, the agent's version is taken without a word": (MERGE, CONFLICT, "    return theirs\n", NOT_SHOWN),
    "in a conflict, both versions are merged with their marks": (
        MERGE,
        "    if is_clean and base is not None:\n",
        "    if base is not None:\n",
        NOT_SHOWN,
    ),
    "a conflict is stored but not announced": (
        "bullpen.conversation.conflicts",
        "    return Entry(at=at, change=change, events=(Conflicted.of(turn_id, conflict),))\n",
        "    return Entry(at=at, change=change)\n",
        "of what both did, this was announced",
    ),
    "a conflict is announced but not stored": (
        "bullpen.conversation.conflicts",
        "    return Entry(at=at, change=change, events=(Conflicted.of(turn_id, conflict),))\n",
        "    return Entry(at=at, events=(Conflicted.of(turn_id, conflict),))\n",
        "people are asked about conflicts of the turns",
    ),
    "only the first conflict is kept": (
        "bullpen.conversation.conflicts",
        "conflicts={**others, turn_id: conflict}",
        "conflicts=others or {turn_id: conflict}",
        "people are asked about conflicts of the turns",
    ),
    "the base is taken one state too late, from the shared folder": (
        MERGING,
        "    merged = shared.merge(base, ours.id, theirs)\n",
        "    merged = shared.merge(ours.id, ours.id, theirs)\n",
        f"{NOT_SHOWN}|{LOST}",
    ),
    "the base is taken one state too late, from the worktree": (
        MERGING,
        "own.look(), own.state.base\n",
        "own.look(), own.state.seen\n",
        "of what both did, this was announced",
    ),
    "a worktree with work in it is brought up to date": (
        "bullpen.files.own_workspace",
        "        now, state = self.look(), self.state\n        if now != state.base:\n",
        "        now, state = self.look(), self.state\n        if not now:\n",
        LOST,
    ),
    "what is kept apart counts as merged": (
        "bullpen.conversation.own_workspaces",
        "            await asyncio.to_thread(own.note, is_apart=True)\n",
        "            await asyncio.to_thread(own.note, is_apart=True, base=own.look())\n",
        LOST,
    ),
    "with the shared version, all else that the agent did is dropped": (
        MERGING,
        "    files = (*merged.changes, *files_for(",
        "    files = (*(merged.changes if not merged.conflicts else ()), *files_for(",
        LOST,
    ),
}
"""By name: the module, what is written there exactly once, what is written instead, and what that is seen as."""


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module; "" makes none."""
    if name:
        module, right, wrong, _ = MISTAKES[name]
        plant_in(module, right, wrong, folder)
