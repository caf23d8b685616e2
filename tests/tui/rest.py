"""The full screen at rest: it has done all that it was given, and waits for a key, a clock or another process.

Textual waits until the process uses little CPU, which takes long, and says nothing if others are busy.
"""

import asyncio
import time
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from textual._context import active_app
from textual._styles_cache import StylesCache
from textual.cache import LRUCache
from textual.css.stylesheet import Stylesheet
from textual.notifications import Notification
from textual.pilot import Pilot, WaitForScreenTimeout

from bullpen.store.thread import StoreThread

MOST_SECONDS = 1.0
"""As long as Textual waits at most: something may never end."""
FRAME_SECONDS = 0.25
"""Between two frames that nobody waits for: whoever waits draws."""
MOST_TO_ANSWER = 30.0
ROUNDS = 3
"""Of the event loop, without anything to do."""


class Rest:
    """Knows what threads still do for the event loop."""

    def __init__(self) -> None:
        self._works: set[asyncio.Future[Any]] = set()

    async def wait(self, *_: float) -> None:
        """Wait until the event loop has nothing to do, and no thread does anything for it."""
        end, quiet = time.monotonic() + MOST_SECONDS, 0
        while quiet < ROUNDS and time.monotonic() < end:
            await asyncio.sleep(0.001 if self._works else 0)
            is_quiet = not (self._works or asyncio.get_running_loop()._ready or _drawn())  # type: ignore[attr-defined]
            quiet = quiet + 1 if is_quiet else 0

    def counted(self, begin: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that begins something in a thread, so that it is waited for."""

        def begun(*args: Any, **kwargs: Any) -> Any:
            work = begin(*args, **kwargs)
            self._works.add(work)
            work.add_done_callback(self._works.discard)
            return work

        return begun


async def answered(pilot: Pilot[Any], timeout: float = MOST_TO_ANSWER) -> bool:
    """Wait until the app and its screen have done what they were sent, or fail; Textual asks every widget."""
    app = pilot.app
    told = {pump: asyncio.Event() for pump in (app, *app._screen_stack[-1:])}
    asked = [event for pump, event in told.items() if pump.call_later(event.set)]
    waits = [asyncio.create_task(_all(asked)), asyncio.create_task(app._exception_event.wait())]
    done, pending = await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for wait in pending:
        wait.cancel()
    if not done:
        raise WaitForScreenTimeout("The app or its screen is still busy.")
    return waits[0] in done


async def _all(events: list[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


class ParsedStyles:
    """The styles of all apps, parsed once for each set of colours."""

    def __init__(self) -> None:
        self._parsed: dict[tuple[tuple[str, str], ...], LRUCache[Any, Any]] = {}
        self._set_variables = Stylesheet.set_variables

    def set_variables(self, sheet: Stylesheet, variables: dict[str, str]) -> None:
        """Set the colours of an app, and give it what was parsed with them before."""
        sheet._parse_cache = LRUCache(1)
        self._set_variables(sheet, variables)
        sheet._parse_cache = self._parsed.setdefault(tuple(sorted(variables.items())), LRUCache(1024))


PARSED = ParsedStyles()


def _drawn() -> bool:
    """Draw what is to be drawn; return whether there was anything."""
    screen = active_app.get().screen
    if not screen.is_current or not (
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    ):
        return False
    screen._on_timer_update()
    return True


@pytest.fixture(autouse=True)
def rest(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let pilots wait for what is to be done, not for an idle processor; and let notifications stay until then."""
    rest = Rest()
    monkeypatch.setattr(Notification, "time_left", 3600.0)
    monkeypatch.setattr(BaseEventLoop, "run_in_executor", rest.counted(BaseEventLoop.run_in_executor))
    monkeypatch.setattr(StoreThread, "_submit", rest.counted(StoreThread._submit))
    monkeypatch.setattr(Stylesheet, "set_variables", lambda sheet, variables: PARSED.set_variables(sheet, variables))
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", FRAME_SECONDS)
    monkeypatch.setattr(Pilot, "_wait_for_screen", answered)
    monkeypatch.setattr("textual.pilot.wait_for_idle", rest.wait)
    monkeypatch.setattr("textual.app.wait_for_idle", rest.wait)
    yield
    # It remembers the widgets of a thousand calls, and all that they have drawn.
    StylesCache.get_inner_outer.cache_clear()
