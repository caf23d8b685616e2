"""One-line mistakes in what agents may look up, each of which lets them see too much."""

from pathlib import Path

from tests.torture.planting import plant_in

HISTORY = "bullpen.conversation.visible_history"
LEAK = "saw what it may not see"

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
