"""CheckResult: what a command of the team file said that ran after a turn which changed files."""

from typing import Literal

from msgspec import Struct

CheckState = Literal["running", "green", "red", "timed_out", "not_started", "cancelled", "interrupted"]
"""Green is an exit code of 0, red any other; interrupted: bullpen stopped meanwhile, so nobody knows."""
BROKEN: frozenset[CheckState] = frozenset({"red", "timed_out"})
"""What somebody should do something about; the other states say nothing about the files."""


class CheckResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of one check."""

    number: int = 0
    """Counts the runs of a conversation; 0: not stored yet."""
    turn_id: str
    """The turn that changed the files which were checked."""
    member: str = ""
    """Whose turn that is."""
    name: str
    """What the team file calls the check."""
    command: tuple[str, ...]
    workspace: str
    """The folder in which it ran."""
    state: CheckState
    at: int
    """When it began."""
    after_message: int = 0
    """How many messages there were; of a turn that has ended, up to its reply."""
    exit_code: int | None = None
    """Negative: the signal that ended it. None: it did not end by itself, or never began."""
    seconds: float = 0.0
    output: str = ""
    """What it wrote, also as errors: its beginning and its end, if it wrote much."""
    left_out: int = 0
    """How many bytes of its output are not there."""
    note: str = ""
    """Why it did not begin or did not end by itself, in a sentence."""

    @property
    def is_broken(self) -> bool:
        """Whether it says that something is wrong with the files."""
        return self.state in BROKEN
