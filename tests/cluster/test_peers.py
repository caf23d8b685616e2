"""What dead nodes leave is told once at a time, and more and more seldom if nobody can continue it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bullpen.cluster import peers as module
from bullpen.cluster.peers import Peers, Told


class Desk:
    """Does everything at once."""

    async def do(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(*given)


async def test_what_is_left_is_told_once_while_it_is_about_to_be_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(module, "WAIT_SECONDS", 0)
    monkeypatch.setattr(module, "monotonic", lambda: now)
    store = SimpleNamespace(left_by_nodes=lambda _: ["c", "d"])
    peers = Peers(SimpleNamespace(), store, Desk())  # type: ignore[arg-type]
    left = peers.left_alone()

    told = await peers._tell_what_is_left({1}, {})
    now += 60
    told = await peers._tell_what_is_left({1}, told)
    first = [await anext(left), await anext(left)]
    assert sorted(first) == ["c", "d"]
    assert peers._left.empty()

    # The first one was continued, or could not be: whoever did that asks for the next one.
    told = await peers._tell_what_is_left({1}, told)
    assert await anext(left) == first[0]
    assert peers._left.empty()
    await peers._tell_what_is_left({1}, told)
    assert peers._left.get_nowait() == first[1]
    assert peers._left.empty()


def test_what_nobody_can_continue_is_told_more_and_more_seldom() -> None:
    told, pauses = Told(), list[float]()
    for _ in range(6):
        told = told.told(0.0)
        pauses.append(told.again_at)
    assert pauses == [1, 2, 4, 8, 10, 10]
