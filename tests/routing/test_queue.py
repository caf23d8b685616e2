"""The queue: intents, drops, another order."""

from hypothesis import given
from hypothesis import strategies as st

from bullpen.routing.queue import TurnQueue, WaitingTurn


def turn(member: str, message: str = "m1", *, intent: int = 2, step: int = 0) -> WaitingTurn:
    return WaitingTurn(id=f"{message}-{member}-{intent}", member=member, message_id=message, intent=intent, step=step)


def members(turns: tuple[WaitingTurn, ...]) -> list[str]:
    return [turn.member for turn in turns]


def test_first_in_first_out_within_an_intent() -> None:
    queue = TurnQueue(
        [turn("a"), turn("b", "m2"), turn("c", "m3", intent=3), turn("d", "m4", intent=1), turn("e", "m5")]
    )

    assert members(queue.waiting) == ["d", "a", "b", "e", "c"]


def test_an_intent_moves_a_step_past_other_messages_when_its_relay_has_come_so_far() -> None:
    queue = TurnQueue([turn("a"), turn("b", step=1, intent=1), turn("c", "m2")])
    assert members(queue.waiting) == ["a", "b", "c"]

    queue.add([turn("d", "m3", intent=1)])
    assert members(queue.waiting) == ["d", "a", "b", "c"], "b is no more urgent than a, which it answers after"

    queue.remove(["m1-a-2"])
    assert members(queue.waiting) == ["b", "d", "c"]
    assert members(TurnQueue([turn("a", intent=3), turn("b", step=1), turn("c", "m2")]).waiting) == ["c", "a", "b"]


def test_a_members_turns_can_be_found_and_taken_out() -> None:
    queue = TurnQueue([turn("a"), turn("b"), turn("a", "m2")])

    assert members(queue.of("a")) == ["a", "a"]
    assert members(queue.of()) == ["a", "b", "a"]
    assert members(queue.remove(waiting.id for waiting in queue.of("a"))) == ["a", "a"]
    assert members(queue.waiting) == ["b"]


def test_turns_that_are_put_first_stay_first_also_when_the_queue_is_restored() -> None:
    queue = TurnQueue([turn("a"), turn("b", "m2"), turn("c", "m3", intent=3)])

    queue.put_first([queue.waiting[2]])
    queue.add([turn("d", "m4", intent=1)])

    assert members(queue.waiting) == ["c", "d", "a", "b"]
    assert members(TurnQueue(queue.waiting).waiting) == ["c", "d", "a", "b"]


TURNS = st.builds(
    turn, st.sampled_from("abcd"), st.sampled_from(["m1", "m2", "m3"]), intent=st.integers(1, 3), step=st.integers(0, 2)
)
QUEUES = st.lists(TURNS, max_size=12, unique_by=lambda turn: (turn.member, turn.message_id))


@given(turns=QUEUES)
def test_a_restored_queue_is_the_same(turns: list[WaitingTurn]) -> None:
    queue = TurnQueue(turns)

    assert TurnQueue(queue.waiting).waiting == queue.waiting
