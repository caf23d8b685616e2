"""The mark of agents' programs on Linux: a limit that is lowered for them, and that they cannot raise again.

All that a program starts inherits it: in any session and namespace, without its environment, after the death of all of
its parents. Everybody may read it, also where an environment may not be read. It is the limit on file locks, which no
kernel has looked at since Linux 2.4.25 and which is unlimited elsewhere. Only CAP_SYS_RESOURCE raises it, as root of
the machine has it: https://man7.org/linux/man-pages/man2/getrlimit.2.html
"""

import contextlib
import logging
import sys
from pathlib import Path

logger = logging.getLogger(__name__)

RLIMIT_LOCKS = 10
"""Python does not name it."""
HIGHEST = 2**30
"""Of agents of a person's bullpen. A bullpen within an agent gives its own agents less."""
UNLIMITED = 2**64 - 1


def mark(pid: int) -> None:
    """Mark a child of ours that has started nothing yet. Where that fails, parents and variables tell what they can."""
    if sys.platform != "linux":
        return
    import resource

    lower = min(HIGHEST, max(own_mark() - 1, 0))
    try:
        resource.prlimit(pid, RLIMIT_LOCKS, (lower, lower))
    except (OSError, ValueError) as error:
        logger.warning("not marked as an agent's pid=%s error=%s", pid, error)


def own_mark() -> int:
    """Return the mark of this process."""
    if sys.platform != "linux":
        return UNLIMITED
    import resource

    # Not from /proc: in a namespace of its own, a program can put anything there.
    highest = resource.getrlimit(RLIMIT_LOCKS)[1]
    return UNLIMITED if highest == resource.RLIM_INFINITY else highest


def mark_of(pid: int) -> int:
    """Return the mark of a process; UNLIMITED: it has none, or cannot be seen."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/limits").read_text(encoding="ascii").splitlines():
            if line.startswith("Max file locks"):
                highest = line.split()[4]
                return UNLIMITED if highest == "unlimited" else int(highest)
    return UNLIMITED
