"""What is said when this process may not open any more files."""

import errno
import resource
from collections.abc import Iterator

NO_MORE = (errno.EMFILE, errno.ENFILE)
CANNOT_OPEN = "unable to open database file"
"""In the words of SQLite, which does not say why."""
FEW = 64
"""With so few, it is because of that."""


def too_few_files(error: BaseException) -> str:
    """Return a sentence if an error is because too many files are open, else nothing."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not any(_is_about_files(cause, most) for cause in _causes(error)):
        return ""
    return f"This process may have {most:,} files open at once, and needs more. Raise that first: ulimit -n 1024"


def _is_about_files(error: BaseException, most: int) -> bool:
    is_said = isinstance(error, OSError) and error.errno in NO_MORE
    return is_said or (most < FEW and CANNOT_OPEN in str(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from; of several at once, all of them."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ())]
