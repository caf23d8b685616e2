"""What a text is found by: words as people write them, and Chinese, Japanese and Korean by pairs of characters.

SQLite's own tokenizers miss parts of Chinese sentences, so the words are made here, and the same way for a query.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

# Scripts that put no spaces between words: Thai to Khmer, then kana, ideographs, Hangul, and their newer blocks.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u312f\u3131-\u318e\u31a0-\u31ff"
UNSPACED += "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
SYMBOLS = "\u2190-\u2bff\U0001f000-\U0001faff"

_UNSPACED = re.compile(f"[{UNSPACED}]+")
_OTHERS = re.compile(rf"[^\W_{UNSPACED}]+|[{SYMBOLS}]")
_ANY = re.compile(f"{_UNSPACED.pattern}|{_OTHERS.pattern}")
# Accents, but not the marks of kana and other scripts, which make another letter.
_ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
_PARTS = re.compile(r'"([^"]+)"|([^\s"]+)')

# Hashes and encoded data are long and of no use to anybody; a beginning is enough to find them by.
LONGEST_WORD = 40
# More would only slow the index down: what it finds is compared with the whole query anyway.
MOST_TERMS = 32

SNIPPET_BEFORE, SNIPPET_CHARACTERS = 30, 120


class Term(Struct, frozen=True):
    """A word that a message must have, or the beginning of one."""

    text: str
    is_beginning: bool

    def is_in(self, words: set[str]) -> bool:
        """Tell whether a message with these words has it."""
        return self.text in words or (self.is_beginning and any(word.startswith(self.text) for word in words))


class Query(Struct, frozen=True):
    """What a person looks for."""

    terms: tuple[Term, ...]
    """For the index."""
    parts: tuple[str, ...]
    """What must stand in the folded text as it is."""


def words_of(text: str) -> set[str]:
    """Return what a text is found by."""
    text = folded(text)
    found = {word[:LONGEST_WORD] for word in _OTHERS.findall(text)}
    for run in () if text.isascii() else _UNSPACED.findall(text):
        # The last one stands alone, so that every single character begins some word.
        found.update(map("".join, pairwise(run)), run[-1])
    return found


def query_from(text: str) -> Query | None:
    """Return what a person's words ask for, or None if there is nothing to look for in them."""
    written = (_on_one_line(quoted or plain) for quoted, plain in _PARTS.findall(folded(text)))
    parts = [part for part in map(_core, written) if part]
    terms = list(dict.fromkeys(term for part in parts for term in _terms(part)))
    return Query(tuple(terms[:MOST_TERMS]), tuple(parts)) if terms else None


def snippet(content: str, query: Query) -> str | None:
    """Return the surroundings of the first part of a query in a text, or None if not all of them stand in it."""
    text = _on_one_line(folded(content))
    places = [text.find(part) for part in query.parts]
    if -1 in places:
        return None
    # Folding may have changed the length, and a snippet need not begin at an exact place.
    start = max(0, min(places) * len(content) // len(text) - SNIPPET_BEFORE)
    end = start + SNIPPET_CHARACTERS
    return f"{'…' if start else ''}{_on_one_line(content[start:end])}{'…' if end < len(content) else ''}"


def folded(text: str) -> str:
    """Return what spellings that people take for the same have in common: "Café", "CAFE" and "ｃａｆｅ" are "cafe"."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold()))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _core(part: str) -> str:
    """Return the part of a query from the first to the last thing that is in the index."""
    runs = list(_ANY.finditer(part))
    return part[runs[0].start() : runs[-1].end()] if runs else ""


def _terms(part: str) -> Iterator[Term]:
    for run in _ANY.finditer(part):
        text = run[0]
        is_unspaced = _UNSPACED.match(text) is not None
        if is_unspaced and len(text) > 1:
            yield from (Term("".join(pair), is_beginning=False) for pair in pairwise(text))
        else:
            yield Term(text[:LONGEST_WORD], is_beginning=is_unspaced or run.end() == len(part))
