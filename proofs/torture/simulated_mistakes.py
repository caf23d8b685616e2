"""One-line mistakes in the scheduler, in the fence and in the model of the database, and how each is seen."""

from pathlib import Path

from proofs.torture.planting import plant_in

MODEL, OBSTACLES = "proofs.simulation.model", "bullpen.routing.obstacles"

MISTAKES = {
    "who writes need not be the owner": (
        "bullpen.store.conversation_rows",
        "    if token_of(present) == token_of(writer):\n",
        "    if token_of(writer):\n",
        "late: ",
    ),
    "an order that is delivered twice runs twice": (
        MODEL,
        "        if key in self.runs:\n            return False\n",
        "",
        "run twice: ",
    ),
    "the last end of a turn counts": (
        MODEL,
        "        if key not in self.orders or key in self.outcomes:\n            return False\n",
        "        if key not in self.orders:\n            return False\n",
        "two ends: ",
    ),
    "who asks again for an order gets another one": (
        MODEL,
        "        if attempt <= me.attempt:\n",
        "        if attempt < me.attempt:\n",
        "stuck: ",
    ),
    "who asked for an order that is forgotten since gets another one": (
        MODEL,
        "        if attempt <= me.attempt:\n",
        "        if (worker, attempt) in self._attempts:\n",
        "stuck: ",
    ),
    "what a worker ran that was given up has no end": (
        MODEL,
        "            if key not in self.outcomes:\n                self.end_turn(key, ",
        "            if key in self.outcomes:\n                self.end_turn(key, ",
        "stuck: ",
    ),
    "what is cancelled counts as ended while it runs": (
        MODEL,
        "        if key in self.runs:\n            self._request_abort",
        "        if key in self.outcomes:\n            self._request_abort",
        "overlapping: ",
    ),
    "a step of a relay begins before the one before it has ended": (
        OBSTACLES,
        "        others = [other for other in groups if not _together(turn, other)]\n",
        "        others = [other for other in groups if other.intent != turn.intent]\n",
        "out of order: ",
    ),
    "a member that works begins another turn": (
        OBSTACLES,
        "        if turn.member in self._busy:\n",
        "        if turn.id in self._busy:\n",
        "overlapping: ",
    ),
    "a message is stored again when it is said again": (
        "proofs.simulation.conversations",
        "        if message in row.messages:\n",
        "        if turns and turns[0].id in row.turns:\n",
        "lost or out of order: |doubled: |out of order: ",
    ),
}
"""By name: the module, what is written there exactly once, what is written instead, and what that is seen as."""


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module; "" makes none."""
    if name:
        module, right, wrong, _ = MISTAKES[name]
        plant_in(module, right, wrong, folder)
