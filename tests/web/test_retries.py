"""What a page is sent of a CLI that cannot reach its server: one step that counts, and what the turn does."""

import json

from bullpen.conversation.running_turn import RunningTurn
from bullpen.routing.queue import WaitingTurn
from bullpen.turn_events import Notice
from bullpen.web.updates import _step


def test_retries_in_a_row_replace_each_other() -> None:
    running = RunningTurn(WaitingTurn(id="1", member="max", message_id="msg-1"))
    sent = []
    for number, attempts in ((7, 1), (9, 2)):
        event = Notice(kind="retry", text="no network", attempts=attempts, since=1_000)
        running.on_event(event)
        update = _step(number, "1", event, running)
        assert update is not None
        sent.append(json.loads(update.data))

    assert [one["key"] for one in sent] == ["retry-1000", "retry-1000"]
    assert "2 attempts since " in sent[1]["html"]
    assert "no network" in sent[1]["html"]
    assert sent[1]["doing"].startswith("cannot reach its server, attempt 2 since ")
