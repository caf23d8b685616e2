"""BoundedOutput: the beginning and the end of what a program writes, as text that can be shown."""

import os
from collections.abc import Mapping

from bullpen.text.clean import clean_text
from bullpen.text.safe import strip_escape_sequences
from bullpen.text.secrets import without_secrets

HEAD_BYTES = 6 * 1024
TAIL_BYTES = 18 * 1024
"""Of the end, more: that is where programs say what is wrong."""
MARGIN_BYTES = 8 * 1024
"""What is kept beyond that until secrets are masked: half of one would not be known as one."""
LONGEST_KEY = 1024
"""Of what is left at the place where the output was cut, so much is not shown. Private keys are masked up to there."""


class BoundedOutput:
    """Takes output of any size, and keeps little of it."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._length = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self._length += len(data)
        most = HEAD_BYTES + TAIL_BYTES + MARGIN_BYTES
        room = max(most - len(self._head), 0)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * most:
            del self._tail[: len(self._tail) - TAIL_BYTES - MARGIN_BYTES]

    def text(self, environment: Mapping[str, str]) -> tuple[str, int]:
        """Return what is shown, without secrets and escape sequences, and how many bytes of it are left out."""
        everything = {**os.environ, **environment}
        if self._length == len(self._head) + len(self._tail):
            whole = _shown(bytes(self._head + self._tail), everything)
            encoded = whole.encode()
            if len(encoded) <= HEAD_BYTES + TAIL_BYTES:
                return whole, 0
            return _joined(encoded[:HEAD_BYTES], encoded[-TAIL_BYTES:]), len(encoded) - HEAD_BYTES - TAIL_BYTES
        head = _shown(bytes(self._head), everything).encode()
        # Without colours and keys it may be short enough to reach the place where a key was cut.
        head = head[: max(min(HEAD_BYTES, len(head) - LONGEST_KEY), 0)]
        tail = _shown(bytes(self._tail), everything, is_cut=True).encode()[-TAIL_BYTES:]
        return _joined(head, tail), max(self._length - HEAD_BYTES - TAIL_BYTES, 0)


def _shown(data: bytes, environment: Mapping[str, str], *, is_cut: bool = False) -> str:
    text = strip_escape_sequences(data.decode(errors="replace").replace("\r\n", "\n"))
    return clean_text(without_secrets(text, environment, is_cut=is_cut))


def _joined(head: bytes, tail: bytes) -> str:
    """Return both as whole lines where there are any, with a mark between them."""
    before, after = head.decode(errors="ignore"), tail.decode(errors="ignore")
    before = before[: before.rfind("\n") + 1] or f"{before}\n"
    after = after[after.find("\n") + 1 :] or after
    return f"{before}[…]\n{after}"
