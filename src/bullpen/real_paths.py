"""Where a path leads, if it leads there for every process."""

import os

MOST_LINKS = 40
"""As many as Linux follows."""
OF_EACH_PROCESS = "/proc"
"""Different for each: `/proc/self/cwd` is our folder here, and an agent's there. /dev/fd leads there, too."""


def real_path(path: str) -> str:
    """Return a whole path without links, also of what does not exist; raise ValueError if that is not sure."""
    here, rest, links = "/", path.split("/")[::-1], 0
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        here = os.path.dirname(here) if name == ".." else os.path.join(here, name)  # noqa: PTH118, PTH120
        if here == OF_EACH_PROCESS or links > MOST_LINKS:
            raise ValueError(path)
        try:
            target = os.readlink(here)  # noqa: PTH115
        except OSError:
            continue
        links += 1
        here = "/" if target.startswith("/") else os.path.dirname(here)  # noqa: PTH120
        rest += target.split("/")[::-1]
    return here
