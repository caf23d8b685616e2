"""One-line mistakes in what agents may look up: they see too much, or take it for somebody else's."""

from pathlib import Path

from proofs.torture.planting import plant_in

HISTORY = "bullpen.conversation.visible_history"
LEAK = "saw what it may not see|reads as what"

MISTAKES = {
    "replies of rivals are shown": (
        HISTORY,
        "        if message_id in self._hidden_ids:\n            return False\n",
        "",
    ),
    "everybody sees everything": (
        HISTORY,
        '        if self._member.visibility == "all":\n',
        "        if True:\n",
    ),
    "a search is not bounded by the message that is answered": (
        HISTORY,
        "for hit in hits if hit.sequence <= self.last}",
        "for hit in hits}",
    ),
    "a search finds what was said in other conversations": (
        HISTORY,
        "self._store.search(query, conversation_id=self._id, limit=MOST_HITS)",
        "self._store.search(query, limit=MOST_HITS)",
    ),
    "the diff of every turn with a reply is shown": (
        HISTORY,
        "any(self._visible([self._store.message(self._id, turn.reply_id)]))",
        "any([self._store.message(self._id, turn.reply_id)])",
    ),
    "what was said since the turn was asked for is shown": (
        "bullpen.conversation.prompts",
        "            last=current.sequence,\n",
        "            last=self._store.message_count(self._conversation_id),\n",
    ),
    "what a message says can look like another one": (
        HISTORY,
        "guarded = self._guard.guarded(piece, has_own_start=False).text",
        "guarded = piece",
    ),
    "code that a message left open goes on in the next one": (
        HISTORY,
        "shown = self._guard.closed(guarded)",
        "shown = guarded",
    ),
    "what a message says can look like a remark of ours": (
        HISTORY,
        "return LineGuard(headings, speakers, (REMARK_START,))",
        "return LineGuard(headings, speakers)",
    ),
    "nobody is a rival": (
        "bullpen.conversation.toolbox",
        "hidden_from(rounds, member.name))",
        "hidden_from({}, member.name))",
    ),
}
"""By name: the module, what is written there exactly once, and what is written instead."""


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module; "" makes none."""
    if name:
        plant_in(*MISTAKES[name], folder)
