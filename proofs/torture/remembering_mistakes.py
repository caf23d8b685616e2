"""One-line mistakes in the bookkeeping of sessions, and how each is seen."""

from pathlib import Path

from proofs.torture.planting import plant_in

MISTAKES = {
    "all that was said counts as seen": (
        "bullpen.conversation.prompts",
        "        seen_to = max(memory.seen_to, number_of(current.id))\n",
        "        seen_to = self._store.conversation(self._conversation_id).messages\n",
        r"are missing before|and it has not",
    ),
    "what a killed turn left stays in the session": (
        "bullpen.agents.held_session",
        "            put_back(longer, wanted.mark)\n",
        "            pass\n",
        r"was sent again",
    ),
    "its own replies are forgotten": (
        "bullpen.conversation.prompts",
        "        own = tuple(dict.fromkeys([*memory.said, left.reply_id]))\n",
        "        own = tuple(dict.fromkeys(memory.said))\n",
        r"was sent again",
    ),
    "the session is marked before its CLI has ended": (
        "bullpen.agents.session_file",
        "    return FileMark(size=now.st_size, digest=_digest(file, now.st_size), ",
        "    return FileMark(size=now.st_size - 1, digest=_digest(file, now.st_size - 1), ",
        r"without a cause|half a line",
    ),
    "a turn that was killed is not ours": (
        "bullpen.conversation.memories",
        "                left_until=0 if is_borrowed else left_until(bad),\n",
        "                left_until=0,\n",
        r"without a cause",
    ),
    "a second prompt is not stored": (
        "bullpen.conversation.turn_loop",
        "            await self._journal.shielded(lambda: self._state.give_again(running.turn.id, given))\n",
        "",
        r"never got the prompt that is stored",
    ),
    "nothing is given again after a killed turn": (
        "bullpen.conversation.prompts",
        "            after=memory.seen_to,\n",
        "            after=self._context.number_of(current.id) - 1,\n",
        r"are missing before",
    ),
}
"""By name: the module, what is written there exactly once, what is written instead, and what that is seen as."""


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module; "" makes none."""
    if not name:
        return
    module, right, wrong, _ = MISTAKES[name]
    plant_in(module, right, wrong, folder)
