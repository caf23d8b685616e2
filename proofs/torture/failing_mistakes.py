"""One-line mistakes in what follows from a failure, each of which breaks a promise."""

from pathlib import Path

from proofs.torture.planting import plant_in

RESTS = "bullpen.routing.rests"
STAND_INS = "bullpen.conversation.stand_ins"
DECISIONS = "bullpen.conversation.decisions"
ASKED = "was asked while it rests"
BEYOND = "began beyond the cap"

MISTAKES = {
    "a program that rests is asked": (
        RESTS,
        "        if name not in tried and (rest is None or rest.until <= now):\n",
        "        if name not in tried:\n",
        ASKED,
    ),
    "nobody sleeps": (RESTS, "    if not rests:\n", "    if True:\n", ASKED),
    "a turn is taken over that changed files": (
        STAND_INS,
        " and not await self._has_changed(turn.id)",
        "",
        "is taken over although",
    ),
    "who stands in is told to the member, who answers": (
        STAND_INS,
        "    return _message(state, text, progress, message_id=message_id, at=at)\n",
        (
            "    turns = (state.new_turn(member, message_id, intent=1, step=0),)\n"
            "    progress = replace(progress, turns_made=progress.turns_made + 1)\n"
            "    return replace(_message(state, text, progress, message_id=message_id, at=at), turns=turns)\n"
        ),
        "was woken by",
    ),
    "a turn that is taken over stays undecided": (
        DECISIONS,
        "        undecided=undecided,\n        turns_made=state.progress.turns_made + 1,\n        # An attempt",
        "        turns_made=state.progress.turns_made + 1,\n        # An attempt",
        "already queued again",
    ),
    "no cap is looked at": (
        "bullpen.conversation.turn_loop",
        "        if reason := cap_reached(state.progress, limits, now):\n",
        '        if reason := "":\n',
        BEYOND,
    ),
    "a budget is looked at too late": (
        "bullpen.routing.budgets",
        "        return self.used >= self.cap\n",
        "        return self.used >= 2 * self.cap\n",
        "began beyond the budget",
    ),
    "what a failed turn used is not counted": (
        "bullpen.conversation.consequences",
        "    used = without_asked(with_usage(state.progress, turn.member, own), asked, end.at)\n",
        "    used = without_asked(state.progress, asked, end.at)\n",
        BEYOND,
    ),
}
"""By name: the module, what is written there exactly once, what is written instead, and what that leads to."""


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module; "" makes none."""
    if name:
        module, right, wrong, _ = MISTAKES[name]
        plant_in(module, right, wrong, folder)
