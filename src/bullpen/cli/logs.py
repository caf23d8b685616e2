"""What is logged while a command runs: nothing that a person must read, and nothing that may not be shown.

The conversation itself says what goes wrong. To look for a bug, DEBUG=1 or --debug shows everything:
tracebacks, and "[Debug][Send]" with every prompt as it is sent.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bullpen.text.safe import printable
from bullpen.text.secrets import without_secrets

OURS = "bullpen"
MOST_HELD = 10_000
NEVER = logging.CRITICAL + 1


class SafeFormatter(logging.Formatter):
    """Writes what is logged without keys, and without anything that a terminal would obey.

    A bug's message may hold anything that we were working with.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as it may be shown."""
        return printable(without_secrets(super().format(record)))


def is_debugging(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether DEBUG=1 is in the environment. Other programs use the name too, so other values do not count."""
    return any(environ.get(name, "").lower() in ("1", "true", "yes", "on") for name in ("DEBUG", "BULLPEN_DEBUG"))


def begin_logging(*, shown: bool = False, debug: bool = False) -> None:
    """Log to standard error if that is wanted, else nowhere: without a handler Python would write it there unmasked."""
    handler: logging.Handler = logging.NullHandler()
    if shown or debug:
        handler = logging.StreamHandler()
        handler.setFormatter(SafeFormatter())
    handler.setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.getLogger(OURS).setLevel(logging.DEBUG if debug else logging.NOTSET)
    _log_to(handler)


@contextmanager
def logs_held_back() -> Iterator[None]:
    """Keep what is logged for a while, since a full screen has no place for it; then show it, if it is shown at all."""
    from logging.handlers import MemoryHandler

    shown = [handler for handler in logging.getLogger().handlers if handler.get_name() == OURS]
    held = MemoryHandler(MOST_HELD, flushLevel=NEVER, target=shown[0] if shown else None)
    held.setLevel(shown[0].level if shown else logging.WARNING)
    _log_to(held)
    try:
        yield
    finally:
        held.close()
        _log_to(shown[0] if shown else logging.NullHandler())


def _log_to(handler: logging.Handler) -> None:
    """Let one handler of ours take the place of the other."""
    root = logging.getLogger()
    for old in [old for old in root.handlers if old.get_name() == OURS]:
        root.removeHandler(old)
    handler.set_name(OURS)
    root.addHandler(handler)
