"""From events to records: what is known of a turn, and what is not."""

from bullpen.conversation.events import (
    ConversationEvent,
    Dropped,
    Ending,
    Queued,
    Said,
    TurnBegan,
    TurnEnded,
    TurnEvent,
)
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.telemetry.turns import MILLISECOND, MOST_MESSAGES, MOST_TOOLS, TurnRecord, Turns
from bullpen.turn_events import Failed, Started, ToolFinished, ToolStarted

KIM = Speaker(role_id="kim", role_name="Kim", type="human")


def turn(number: int = 1, message: int = 1) -> WaitingTurn:
    return WaitingTurn(id=str(number), member="a", message_id=f"m{message}")


def said(number: int, at: int, turn_id: str | None = None) -> Said:
    message = ConversationMessage(id=f"m{number}", content=f"text {number}", speaker=KIM, timestamp=at)
    return Said(sequence=number, message=message, turn_id=turn_id)


def began(one: WaitingTurn, at: int) -> TurnBegan:
    return TurnBegan(turn=one, at=at, prompt_bytes=1)


def ended(one: WaitingTurn, seconds: float, failure: Failed | None = None) -> TurnEnded:
    state: Ending = "done" if failure is None else "failed"
    return TurnEnded(turn_id=one.id, member=one.member, state=state, seconds=seconds, failure=failure)


def does(one: WaitingTurn, event: Started | ToolStarted | ToolFinished) -> TurnEvent:
    return TurnEvent(turn_id=one.id, member=one.member, event=event)


def read(*events: tuple[int, ConversationEvent]) -> list[TurnRecord]:
    """Return the records of events, each with the millisecond in which it was read."""
    turns = Turns("quiet-river")
    return [record for at, event in events for record in turns.take(event, at * MILLISECOND)]


def times(record: TurnRecord) -> list[int]:
    fields = ("said_at", "queued_at", "began_at", "ran_at", "ended_at", "stored_at")
    return [getattr(record, name) // MILLISECOND for name in fields]


def test_a_turn_has_the_times_of_all_its_parts() -> None:
    one = turn()

    (record,) = read(
        (12, said(1, at=10)), (12, Queued(turns=(one,))), (21, began(one, at=20)), (35, ended(one, seconds=0.013))
    )

    assert times(record) == [10, 12, 20, 21, 33, 35]
    assert record.question is not None
    assert record.question.content == "text 1"


def test_events_that_are_read_late_do_not_overlap() -> None:
    one = turn()

    (record,) = read(
        (90, said(1, at=10)), (90, Queued(turns=(one,))), (90, began(one, at=20)), (90, ended(one, seconds=0.003))
    )

    assert times(record) == sorted(times(record))


def test_a_clock_that_is_set_back_makes_no_negative_times() -> None:
    one = turn()

    (record,) = read(
        (100, said(1, at=100)), (100, Queued(turns=(one,))), (50, began(one, at=50)), (20, ended(one, seconds=-0.03))
    )

    assert times(record) == sorted(times(record))


def test_a_turn_that_waited_when_it_was_opened_has_no_beginning_in_the_queue() -> None:
    one = turn()

    (record,) = read((21, began(one, at=20)), (35, ended(one, seconds=0.01)))

    assert times(record)[:2] == [0, 0]
    assert record.question is None


def test_a_turn_that_is_asked_for_again_does_not_begin_with_its_message() -> None:
    first, again = turn(1), turn(2)
    failure = Failed(kind="quota", message="No.")

    records = read(
        *(
            (12, said(1, at=10)),
            (12, Queued(turns=(first,))),
            (21, began(first, at=20)),
            (35, ended(first, 0.01, failure)),
        ),
        *((99, Queued(turns=(again,))), (110, began(again, at=105)), (120, ended(again, 0.01))),
    )

    assert [record.error_type for record in records] == ["quota", ""]
    assert times(records[1])[:3] == [0, 99, 105]


def test_a_turn_knows_in_which_one_it_was_asked_for() -> None:
    first, second = turn(1), turn(2, message=2)

    records = read(
        *((12, said(1, at=10)), (12, Queued(turns=(first,))), (21, began(first, at=20))),
        *((35, said(2, at=33, turn_id="1")), (35, Queued(turns=(second,))), (35, ended(first, 0.013))),
        *((41, began(second, at=40)), (50, ended(second, 0.005))),
    )

    assert [record.handed_over_in for record in records] == ["", "1"]
    assert [record.reply for record in records] == ["text 2", ""]


def test_tools_end_with_their_turn_at_the_latest() -> None:
    one = turn()
    tools = [does(one, ToolStarted(id=name, name=name)) for name in "xyz"]

    (record,) = read(
        (1, began(one, at=0)),
        *((2, tool) for tool in tools),
        (3, does(one, ToolFinished(id="y", failed=True))),
        (4, does(one, ToolFinished(id="never began"))),
        (9, does(one, ToolFinished(id="z"))),
        (9, ended(one, seconds=0.005)),
    )

    assert [(tool.name, tool.ended_at // MILLISECOND, tool.failed) for tool in record.tools] == [
        ("x", 5, False),
        ("y", 3, True),
        ("z", 5, False),
    ]


def test_nothing_grows_without_end() -> None:
    turns, one = Turns("quiet-river"), turn()
    for number in range(MOST_MESSAGES + 10):
        waiting = turn(number + 2, message=number)
        for event in (said(number, at=1), Queued(turns=(waiting,)), Dropped(turns=(waiting,))):
            assert list(turns.take(event, MILLISECOND)) == []
    events: list[ConversationEvent] = [began(one, at=0)]
    events += [does(one, ToolStarted(id=str(number), name="x")) for number in range(MOST_TOOLS + 10)]

    (record,) = [record for event in [*events, ended(one, 1)] for record in turns.take(event, MILLISECOND)]

    assert len(record.tools) == MOST_TOOLS
    assert (len(turns._asked), len(turns._queued), len(turns._running)) == (MOST_MESSAGES, 0, 0)
