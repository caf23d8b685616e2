"""Watching a conversation that another process runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

from bullpen.conversation.owner import this_process
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.view.messages import ShownMessage
from bullpen.view.state import ConversationView
from bullpen.view.watching import watch

OWNER = this_process()


def said(message_id: str, name: str = "kim") -> ConversationMessage:
    return ConversationMessage(
        id=message_id, content=message_id, speaker=Speaker(role_id=name, role_name=name, type="human"), timestamp=1
    )


def test_a_watcher_sees_every_message_once_and_each_change_of_state_until_nobody_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with SqliteStore(path) as runner, SqliteStore(path) as follower:
        runner.create("c", team="t", team_file="", started_at=0)
        runner.claim("c", OWNER, is_alive=lambda _: False)
        for number in range(250):
            runner.append("c", said(f"m{number}"), owner=OWNER)
        asks = [WaitingTurn(id="1", member="max", message_id="last")]
        steps: Iterator[Callable[[], object]] = iter(
            [
                lambda: None,
                lambda: runner.append("c", said("last"), turns=asks, owner=OWNER),
                lambda: runner.update("c", at=2, drops=["1"], change=StateChange(paused="20 turns"), owner=OWNER),
                lambda: runner.release("c", OWNER),
            ]
        )

        seen = list(watch(follower, "c", after=240, wait=lambda: print(next(steps)())))

    messages = [item.message.id for item in seen if isinstance(item, ShownMessage)]
    assert messages == [*(f"m{number}" for number in range(240, 250)), "last"]
    views = [item for item in seen if isinstance(item, ConversationView)]
    assert [(view.status, [turn.member for turn in view.queue], view.paused, view.is_owned) for view in views] == [
        ("idle", [], None, True),
        ("working", ["max"], None, True),
        ("paused", [], "20 turns", True),
        ("paused", [], "20 turns", False),
    ]
