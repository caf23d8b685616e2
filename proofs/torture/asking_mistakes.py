"""One-line mistakes in what agents ask and people answer, and how each is seen."""

from pathlib import Path

from proofs.torture.planting import plant_in

APPROVALS = "bullpen.conversation.approvals"
WITHOUT_A_YES, NOBODY_GAVE = "ran without a recorded yes", "has a yes that nobody gave"

MISTAKES = {
    "an agent hears an answer before it is stored": (
        APPROVALS,
        '        given = Given(answer=answer, by=by, scope=scope if holds else "once")\n',
        (
            '        given = Given(answer=answer, by=by, scope=scope if holds else "once")\n'
            "        self._answers[key].done() or self._answers[key].set_result(answer)\n"
        ),
        WITHOUT_A_YES,
    ),
    "an answer for the turn holds for the conversation": (
        APPROVALS,
        '                and (record.scope != "turn" or record.turn_id == turn_id)\n',
        "",
        NOBODY_GAVE,
    ),
    "an answer to one member holds for all": (
        APPROVALS,
        "                record.member == member\n",
        "                True\n",
        NOBODY_GAVE,
    ),
    "a yes for once holds for longer": (
        APPROVALS,
        '        if given.scope != "once" and self._held is not None:\n',
        "        if self._held is not None:\n",
        NOBODY_GAVE,
    ),
    "where nobody can be asked, the answer is yes": (
        APPROVALS,
        'Given(answer=Answer(verdict="no", reason=self.unattended.reason), because="nobody can be asked")',
        'Given(answer=Answer(verdict="yes"), because="nobody can be asked")',
        NOBODY_GAVE,
    ),
    "nobody answered in time, and that is a yes": (
        APPROVALS,
        'Given(answer=Answer(verdict="no", reason=reason), because=f"{NOBODY_ANSWERED} {minutes}")',
        'Given(answer=Answer(verdict="yes"), because=f"{NOBODY_ANSWERED} {minutes}")',
        NOBODY_GAVE,
    ),
    "an answer that could not be stored counts": (
        APPROVALS,
        "            raise await self._why_not_open(key) from None\n",
        "            pass\n",
        "was answered twice|was accepted, and is not stored",
    ),
    "an answer is lost when a door closes": (
        APPROVALS,
        "        await to_the_end(self._accept(event, given))\n",
        "        await self._accept(event, given)\n",
        "was lost: .* and it is still asked",
    ),
    "what is taken back was agreed to": (
        APPROVALS,
        'Given(answer=Answer(verdict="no", reason="It was cancelled."), because=running.asks_no_more)',
        'Given(answer=Answer(verdict="yes"), because=running.asks_no_more)',
        NOBODY_GAVE,
    ),
}
"""By name: the module, what is written there exactly once, what is written instead, and what that is seen as."""


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module; "" makes none."""
    if not name:
        return
    module, right, wrong, _ = MISTAKES[name]
    plant_in(module, right, wrong, folder)
