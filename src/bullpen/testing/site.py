"""A site: `bullpen serve` without the command, on loopback, for tests, pictures and benchmarks."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

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


@asynccontextmanager
async def site(
    folder: Path, team: Path | None = None, *, port: int = 0, extra: Mapping[str, Extra] = NO_EXTRAS
) -> AsyncIterator[Site]:
    """Serve on a port of loopback, 0 for any free one, with a database in this folder, until the context is left."""
    loaded = None if team is None else load_team(team)
    with listening("127.0.0.1", port, tls=False) as (listener, place):
        async with serving(listener, place, team=loaded, db=folder / "conversations.db", extra=extra) as served:
            yield Site(hub=served.hub, keys=served.keys, place=place)
