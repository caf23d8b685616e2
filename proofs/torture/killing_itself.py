"""A process that kills itself at a named point. It imports nothing of the product, in which mistakes may be planted."""

import os
import signal
from collections.abc import Callable
from typing import Any


def dying(times: int, last_word: Callable[[], None]) -> Callable[[], None]:
    """Return a function that kills this process when it is called for the nth time."""
    left = [times]

    def die() -> None:
        left[0] -= 1
        if left[0] == 0:
            last_word()
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def wrap(owner: Any, name: str, die: Callable[[], None], *, before: bool) -> None:
    """Let a function of a class or a module call `die` before or after its work."""
    real = getattr(owner, name)

    def wrapped(*args: Any, **keys: Any) -> Any:
        if before:
            die()
        result = real(*args, **keys)
        if not before:
            die()
        return result

    setattr(owner, name, wrapped)
