"""Regular expressions that are compiled when they are first used: compiling all of them takes longer than starting."""

import re
from typing import Any, cast


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return what can be used like re.compile(source, flags)."""
    return cast("re.Pattern[str]", _Pattern(source, flags))


class _Pattern:
    """Gets each method from the compiled pattern once, so that using it costs no more."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found
