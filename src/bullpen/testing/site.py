"""A site: `bullpen serve` without the command, on loopback, for tests, pictures and benchmarks."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from bullpen.app import NO_EXTRAS
from bullpen.conversation.member_agent import Extra
from bullpen.team.file import load_team
from bullpen.web.address import Place, listening
from bullpen.web.conversations import Hub
from bullpen.web.credentials import Keys
from bullpen.web.server import new_url, serving


class Site(Struct, frozen=True, kw_only=True):
    """A running server."""

    hub: Hub
    keys: Keys
    place: Place

    @property
    def url(self) -> str:
        """Its address."""
        return self.place.url

    @property
    def headers(self) -> dict[str, str]:
        """The headers that give a program access."""
        return {"Authorization": f"Bearer {self.keys.token}"}

    def new_url(self) -> str:
        """Return an address that gives access to one browser, once."""
        return new_url(self.place, self.keys)

    async def let_in(self, page: Any, address: str = "") -> None:
        """Sign a page of Playwright in, as a person does: open an address, and press the button."""
        await page.goto(address or self.new_url())
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url(f"{self.url}/")


def button_of(url: str) -> dict[str, str]:
    """Return what a browser says when the button on the page at an address is pressed."""
    place = urlsplit(url)
    return {"Origin": f"{place.scheme}://{place.netloc}"}


@asynccontextmanager
async def site(
    folder: Path, team: Path | None = None, *, port: int = 0, extra: Mapping[str, Extra] = NO_EXTRAS
) -> AsyncIterator[Site]:
    """Serve on a port of loopback, 0 for any free one, with a database in this folder, until the context is left."""
    loaded = None if team is None else load_team(team)
    with listening("127.0.0.1", port, tls=False) as (listener, place):
        async with serving(listener, place, team=loaded, db=folder / "conversations.db", extra=extra) as served:
            yield Site(hub=served.hub, keys=served.keys, place=place)
