"""Names as people write them: what counts as the same name, and which one was probably meant."""

import re
import unicodedata
from collections.abc import Iterable

# What people and agents write around a name: @max, "max", `max`, **max**, <max>.
_DECORATION = "@\"'`*_<>()“”‘’「」 \t"
_SEPARATORS = re.compile(r"[\s_\-.]+")


def normalized(name: str) -> str:
    """Return what two spellings of the same name have in common: "@Max", "**max**" and "ＭＡＸ" are all "max"."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return _SEPARATORS.sub("", plain).strip(_DECORATION)


def nearest(word: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the known words that are most similar to a word, the best match first."""
    from difflib import get_close_matches

    spellings = {normalized(name): name for name in known}
    close = get_close_matches(normalized(word), spellings, n=limit, cutoff=0.6)
    begins = [key for key in spellings if normalized(word) and key.startswith(normalized(word)) and key not in close]
    return tuple(spellings[key] for key in [*close, *begins][:limit])


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence: "a, b and c"."""
    *others, last = [*names] or [""]
    return f"{', '.join(others)} and {last}" if others else last
