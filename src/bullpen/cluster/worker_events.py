"""What happens to a worker, for those who watch it."""

from collections.abc import Callable

from msgspec import Struct

from bullpen.cluster.announcing import Announcement
from bullpen.cluster.outcomes import Outcome


class Waits(Struct, frozen=True):
    """It cannot join yet; it tries again."""

    reason: str


class Examined(Struct, frozen=True):
    """It has looked at the agents of its machine."""

    announcement: Announcement


class Joined(Struct, frozen=True):
    """It is a part of the cluster, and takes turns."""

    id: int


class GivenUp(Struct, frozen=True):
    """Others took it for dead: what it ran is interrupted. It joins again."""


class Away(Struct, frozen=True):
    """The server is away, or is back."""

    is_away: bool


class Began(Struct, frozen=True):
    """A turn begins."""

    conversation: str
    member: str
    pool: str


class Ended(Struct, frozen=True):
    """A turn has ended."""

    conversation: str
    member: str
    seconds: float
    outcome: Outcome
    is_its_end: bool
    """Whether that counts: not if it had been given up before."""


WorkerEvent = Waits | Examined | Joined | GivenUp | Away | Began | Ended
Watch = Callable[[WorkerEvent], None]


def nobody_watches(_: WorkerEvent) -> None:
    """Say nothing."""
