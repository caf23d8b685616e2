"""One Chromium for all tests of a process, and one event loop, since a browser belongs to one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from playwright.async_api import Browser, Playwright, async_playwright

Result = TypeVar("Result")
OpenBrowser = Callable[[], AbstractAsyncContextManager[Browser]]


class Stage:
    """The browser and its loop, made when they are needed first."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def play(self, story: Coroutine[Any, Any, Result]) -> Result:
        """Run a story to its end. After one that fails, all is made anew."""
        self._runner = self._runner or asyncio.Runner()
        try:
            return self._runner.run(story)
        except BaseException:
            self.end()
            raise

    @asynccontextmanager
    async def opened(self, path: str) -> AsyncIterator[Browser]:
        """Yield the browser, and close the pages that a test has opened in it."""
        if self._browser is None:
            self._playwright = await async_playwright().start()
            # The sandbox needs privileges that containers do not have; only our own pages are opened.
            self._browser = await self._playwright.chromium.launch(
                executable_path=path, args=["--no-sandbox", "--disable-gpu"]
            )
        try:
            yield self._browser
        finally:
            for context in self._browser.contexts:
                await context.close()

    def end(self) -> None:
        """Close the browser and the loop."""
        runner, self._runner = self._runner, None
        if runner is not None:
            with contextlib.suppress(Exception):
                runner.run(self._close())
            runner.close()

    async def _close(self) -> None:
        browser, self._browser = self._browser, None
        playwright, self._playwright = self._playwright, None
        if browser is not None:
            await browser.close()
        if playwright is not None:
            await playwright.stop()


STAGE = Stage()
play = STAGE.play
