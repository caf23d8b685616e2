"""The queue: intents, relays, groups, drops."""

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


def test_a_relay_begins_one_after_the_other() -> None:
    queue = TurnQueue([turn("a"), turn("b", step=1)])

    first = queue.take_next()
    assert members(first) == ["a"]
    assert queue.take_next(running=first) == ()
    assert members(queue.take_next()) == ["b"]
    assert queue.take_next() == ()


def test_a_group_begins_together() -> None:
    queue = TurnQueue([turn("a"), turn("b"), turn("c", step=1)])

    assert members(queue.take_next()) == ["a", "b"]
    assert members(queue.take_next()) == ["c"]


def test_one_turn_per_member_and_message() -> None:
    queue = TurnQueue([turn("a"), turn("a", intent=3), turn("a", intent=1), turn("a", "m2")])

    assert [(waiting.message_id, waiting.intent) for waiting in queue.waiting] == [("m1", 1), ("m2", 2)]


def test_dropping_one_or_all() -> None:
    queue = TurnQueue([turn("a"), turn("b"), turn("a", "m2")])

    assert members(queue.drop("a")) == ["a", "a"]
    assert members(queue.waiting) == ["b"]
    assert members(queue.drop()) == ["b"]
    assert queue.waiting == ()


def test_moving_a_turn_to_the_front() -> None:
    queue = TurnQueue([turn("a"), turn("b", "m2"), turn("c", "m3", intent=3)])

    queue.move_first("m3-c-3")

    assert members(queue.waiting) == ["c", "a", "b"]


TURNS = st.builds(
    turn, st.sampled_from("abcd"), st.sampled_from(["m1", "m2", "m3"]), intent=st.integers(1, 3), step=st.integers(0, 2)
)


@given(turns=st.lists(TURNS, max_size=12))
def test_everything_that_waits_begins_once(turns: list[WaitingTurn]) -> None:
    queue = TurnQueue(turns)
    waiting = queue.waiting
    begun: list[WaitingTurn] = []
    while group := queue.take_next():
        begun.extend(group)

    assert sorted(begun, key=lambda t: t.id) == sorted(waiting, key=lambda t: t.id)
    assert len({(t.member, t.message_id) for t in begun}) == len(begun)
    assert [t.intent for t in begun] == sorted(t.intent for t in begun)


@given(turns=st.lists(TURNS, max_size=12))
def test_a_restored_queue_is_the_same(turns: list[WaitingTurn]) -> None:
    queue = TurnQueue(turns)

    assert TurnQueue(queue.waiting).waiting == queue.waiting
