"""What a running turn is said to be doing."""

import pytest

from bullpen.conversation import running_turn
from bullpen.conversation.running_turn import RunningTurn
from bullpen.routing.queue import WaitingTurn
from bullpen.turn_events import ApprovalAsked, Event, TextDelta, ToolFinished, ToolStarted

TURN = WaitingTurn(id="1", member="max", message_id="msg-1")
TOOL = ToolStarted(id="t", name="Bash", input={})


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ([], "waiting? silent for 2 min"),
        ([TextDelta("x")], "waiting? silent for 2 min"),
        ([TOOL], "Bash, silent for 2 min"),
        ([TOOL, ToolFinished(id="t", output="", failed=False)], "waiting? silent for 2 min"),
        ([TOOL, ApprovalAsked(id="q", kind="command", command="x")], "waiting for an answer"),
    ],
)
def test_one_that_writes_nothing_is_not_said_to_work(
    events: list[Event], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = RunningTurn(TURN)
    for event in events:
        running.on_event(event)
    assert running.doing_now == running.doing
    later = running_turn.milliseconds() + 150_000
    monkeypatch.setattr(running_turn, "milliseconds", lambda: later)

    assert running.doing_now == shown
    running.on_output(b"x")
    assert running.doing_now == running.doing


def test_a_turn_does_not_work_while_it_asks_people(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("time.time_ns", lambda: int(now * 1_000_000_000))
    monkeypatch.setattr("time.monotonic", lambda: now)
    running = RunningTurn(TURN)
    now += 5
    with running.asked.asking():
        now += 60
        assert (running.seconds, running.worked) == (65, 5)
    now += 1
    assert (running.seconds, running.worked) == (66, 6)
