"""The store's thread: things are done in order, to their end, and errors reach whoever asked."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress
from threading import Event

import pytest

from bullpen.store.thread import StoreThread

SECONDS = 10


@pytest.fixture
def thread() -> Iterator[StoreThread]:
    thread = StoreThread()
    yield thread
    thread.close()


def test_things_are_done_in_the_order_in_which_they_were_asked_for(thread: StoreThread) -> None:
    done: list[int] = []

    async def ask() -> None:
        await asyncio.gather(*(thread.do(done.append, number) for number in range(100)))

    asyncio.run(ask())
    assert done == list(range(100))


def test_an_error_reaches_whoever_asked_and_the_next_is_done(thread: StoreThread) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(thread.do(int, "x"))
    assert asyncio.run(thread.do(int, "7")) == 7


def test_what_nobody_waits_for_any_more_is_done_before_what_comes_after_it(thread: StoreThread) -> None:
    go_on = Event()
    done: list[str] = []

    async def ask() -> None:
        blocking = asyncio.ensure_future(thread.do(go_on.wait, SECONDS))
        waiting = asyncio.ensure_future(thread.do(done.append, "first"))
        await asyncio.sleep(0)
        blocking.cancel()
        waiting.cancel()
        go_on.set()
        await thread.do(done.append, "second")
        assert blocking.cancelled()
        assert waiting.cancelled()

    asyncio.run(ask())
    assert done == ["first", "second"]


def test_a_loop_that_is_closed_before_its_answer_comes_ends_nothing_but_itself(thread: StoreThread) -> None:
    go_on = Event()

    async def leave() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(thread.do(go_on.wait, SECONDS), 0.01)

    asyncio.run(leave())
    go_on.set()
    assert asyncio.run(thread.do(int, "7")) == 7


def test_closing_waits_for_what_was_asked_for() -> None:
    thread = StoreThread()
    done: list[int] = []

    async def ask() -> None:
        asked = [asyncio.ensure_future(thread.do(done.append, number)) for number in range(100)]
        await asyncio.sleep(0)
        thread.close()
        assert done == list(range(100))
        await asyncio.gather(*asked)

    asyncio.run(ask())


def test_whoever_asks_after_closing_is_told_and_does_not_wait_forever() -> None:
    thread = StoreThread()
    thread.close()
    thread.close()
    with pytest.raises(ValueError, match="closed"):
        asyncio.run(thread.do(int, "7"))


def test_nothing_is_kept_alive_by_an_error_that_was_handled(thread: StoreThread) -> None:
    class Held:
        def fail(self) -> None:
            raise ValueError

    async def ask() -> None:
        held = Held()
        gone = weakref.ref(held)
        with suppress(ValueError):
            await thread.do(held.fail)
        del held
        for _ in range(200):
            if gone() is None:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the thread still holds what failed in it")

    gc.disable()
    try:
        asyncio.run(ask())
    finally:
        gc.enable()
