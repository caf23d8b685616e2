"""Red checks that go back to the agent whose turn they ran after: the entry for that; pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from bullpen.check_results import CheckResult
from bullpen.context.history import message_number
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Queued, Said
from bullpen.conversation.state import ConversationState
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.queue import PUT_FIRST, WaitingTurn
from bullpen.team.team import BULLPEN, Check
from bullpen.text.numbers import counted

SYSTEM = Speaker(role_id=BULLPEN, role_name=BULLPEN, type="system")
MOST_REMEMBERED = 20
"""Of the messages that returned checks. What came of older ones does not matter any more."""

Broken = Sequence[tuple[Check, CheckResult]]


def returned(
    state: ConversationState, turn: WaitingTurn, reply: str, broken: Broken, *, message_id: str, at: int
) -> Entry:
    """Return the message that sends checks back to who broke them, or, after enough times in a row, to a person."""
    before = state.progress.returns.get(turn.message_id, {})
    times = {check.name: before.get(check.name, 0) + 1 for check, _ in broken}
    again = [(check, result) for check, result in broken if times[check.name] <= check.most_returns]
    over = [(check, result) for check, result in broken if times[check.name] > check.most_returns]
    turns = (state.new_turn(turn.member, message_id, intent=PUT_FIRST),) if again else ()
    sentences = [*(_again(*one, times[one[0].name]) for one in again), *(_over(*one) for one in over)]
    asks = f"Please fix it. [CHECKS: {turn.id}]" if again else who_is_next(state, turn)
    message = ConversationMessage(
        id=message_id,
        content=f"{' '.join(sentences)} {asks}",
        speaker=SYSTEM,
        timestamp=at,
        routing=Routing(resolved_addressees=(turn.member,) if again else (), parent_message_id=reply),
    )
    left = {message: counts for message, counts in state.progress.returns.items() if message != turn.message_id}
    kept = dict(list(left.items())[1 - MOST_REMEMBERED :])
    progress = replace(
        state.progress,
        turns_made=state.progress.turns_made + len(turns),
        message_number=max(state.progress.message_number, message_number(message_id)),
        # Also of those that are green now: two checks of which one is always red would otherwise go back forever.
        returns={**kept, message_id: {**before, **times}} if again else kept,
        missed=None,
    )
    return Entry(
        at=at,
        message=message,
        turns=turns,
        change=Change(progress=progress, waits_for=None if again else progress.person),
        said=Said(sequence=state.messages + 1, message=message),
        events=(Queued(turns=turns),) if turns else (),
    )


def still_red(state: ConversationState, turn: WaitingTurn, reply: str, *, message_id: str, at: int) -> Entry:
    """Return the message that a turn changed nothing which was to make checks green: they do not go back again."""
    message = ConversationMessage(
        id=message_id,
        content=f"Still red: {turn.member} changed nothing in turn {turn.id}. {who_is_next(state, turn)}",
        speaker=SYSTEM,
        timestamp=at,
        routing=Routing(parent_message_id=reply),
    )
    progress = replace(
        state.progress,
        message_number=max(state.progress.message_number, message_number(message_id)),
        returns={asked: counts for asked, counts in state.progress.returns.items() if asked != turn.message_id},
    )
    return Entry(
        at=at,
        message=message,
        change=Change(progress=progress, waits_for=progress.person),
        said=Said(sequence=state.messages + 1, message=message),
    )


def who_is_next(state: ConversationState, turn: WaitingTurn) -> str:
    """Return who has the next word about what is still red: the one who reviews it, or a person."""
    review = state.progress.reviews.get(turn.member)
    if review is not None and review.state == "built":
        return f"{review.reviewer} reviews it as it is."
    return "A person decides what happens now."


def _again(check: Check, result: CheckResult, times: int) -> str:
    count = f"{times} of at most {counted(check.most_returns, 'time')} in a row"
    return f"The check {check.name} {how(result)} after {_turn(result)}, and goes back to {result.member} ({count})."


def _over(check: Check, result: CheckResult) -> str:
    times = counted(check.most_returns, "time")
    return (
        f"The check {check.name} {how(result)} after {_turn(result)}. It went back {times} in a row, and does not go "
        "back again."
    )


def how(result: CheckResult) -> str:
    """Return what a broken check is, in a few words."""
    if result.state == "timed_out":
        return "timed out"
    return "is red" if result.exit_code is None else f"is red (exit {result.exit_code})"


def _turn(result: CheckResult) -> str:
    return f"turn {result.turn_id} of {result.member}"
