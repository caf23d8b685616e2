"""What follows from a turn that was lost with its worker: a person decides about it, or the team file has decided."""

from bullpen.clock import milliseconds
from bullpen.conversation import decisions
from bullpen.conversation.journal import Journal
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store, TurnEnd
from bullpen.team.team import Limits


async def retry_if_it_says_so(journal: Journal, limits: Limits, turn: WaitingTurn, end: TurnEnd) -> None:
    """Retry a turn by itself that was lost with its worker, once. The caller must hold the lock.

    It may have acted before it was lost, so without the team file's word nobody does that.
    """
    is_lost = end.failure is not None and end.failure.kind == "worker_lost"
    if not is_lost or limits.on_interrupted != "retry-once" or journal.closing.is_set():
        return
    if await journal.state.read(_is_retry, turn.id):
        return
    await journal.commit_built(lambda: decisions.retry_lost(journal.state, turn.id, at=milliseconds()))


def _is_retry(store: Store, conversation_id: str, turn_id: str) -> bool:
    return store.turn(conversation_id, turn_id).retry_of is not None
