"""Who answered what turns asked people, from what is stored: steps of those turns."""

from collections.abc import Sequence

from bullpen.approvals import ApprovalRecord
from bullpen.conversation.approvals import NOBODY_ANSWERED
from bullpen.conversation.events import Answered
from bullpen.store.base import Store
from bullpen.view.answers import answer_key, answered_words
from bullpen.view.steps import Step


def answer_steps(store: Store, conversation_id: str, turn_ids: Sequence[str]) -> dict[str, list[Step]]:
    """Return a step for each answer, by turn; the oldest first."""
    records = store.approvals(conversation_id, turn_ids=turn_ids) if turn_ids else []
    asked = {(one.turn_id, one.question): one.asked for one in records if one.asked is not None}
    found: dict[str, list[Step]] = {}
    for one in records:
        if _is_of_people(one):
            words = answered_words(Answered.of(one, asked.get((one.turn_id, one.question))))
            step = Step(key=answer_key(one.question), kind="notice", title="answered", output=words)
            found.setdefault(one.turn_id, []).append(step)
    return found


def _is_of_people(record: ApprovalRecord) -> bool:
    """Return whether it is the answer to something that people were asked. What a rule answers at once is not."""
    return record.answer is not None and (bool(record.by) or record.because.startswith(NOBODY_ANSWERED))
