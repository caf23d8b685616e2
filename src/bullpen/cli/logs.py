"""What is logged while a command runs: nothing that a person must read, and nothing that may not be shown.

What goes wrong is told in the conversation. A traceback is for whoever looks for a bug: BULLPEN_DEBUG shows it.
"""

import logging
import os

from bullpen.agents.masking import without_secrets
from bullpen.safe import printable


class SafeFormatter(logging.Formatter):
    """Writes what is logged without keys, and without anything that a terminal would obey.

    A bug's message may hold whatever we were at work on.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as it may be shown."""
        return printable(without_secrets(super().format(record)))


def begin_logging(*, shown: bool = False) -> None:
    """Log to standard error if that is wanted, else nowhere: without a handler Python would write it there unmasked."""
    handler: logging.Handler = logging.NullHandler()
    if shown or os.environ.get("BULLPEN_DEBUG"):
        handler = logging.StreamHandler()
        handler.setFormatter(SafeFormatter())
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
