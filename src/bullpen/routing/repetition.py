"""Whether two replies say nearly the same: a short sketch of each is kept and compared.

A sketch holds the smallest hashes of all runs of three words, so two sketches overlap about as much as the texts do
(https://en.wikipedia.org/wiki/MinHash). One changed word changes three runs, and at most three of the hashes.
"""

import re
import unicodedata
from hashlib import blake2b
from heapq import nsmallest

from bullpen.markers.stripping import strip_all_markers

SKETCH_SIZE = 32
ALIKE = 29
"""How many hashes texts must share to count as alike: nine out of ten."""
LONGEST_TEXT = 64 * 1024
"""Characters that are compared."""
RUN = 3
# Sketches may be stored as numbers in SQLite or JSON, which hold 63 and 53 bits.
HASH_BYTES = 6

# Chinese, Japanese, Thai and related scripts are written without spaces, so each character counts as a word.
_NO_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
# Words have a maximum length, so that a text without any spaces has words, too.
_WORD = re.compile(rf"(?=\w)[{_NO_SPACES}]|[^\W{_NO_SPACES}]{{1,16}}")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def sketch(text: str) -> tuple[int, ...]:
    """Return the sketch of a text; a short text is hashed as a whole."""
    words = _words(text)
    runs = {" ".join(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}
    if len(runs) < SKETCH_SIZE:
        return (_hashed(" ".join(words)),)
    return tuple(nsmallest(SKETCH_SIZE, map(_hashed, runs)))


def alike(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Return whether two sketches are of nearly the same text; short texts must have the same words."""
    if min(len(a), len(b)) < SKETCH_SIZE:
        return a == b
    return len(set(a) & set(b)) >= ALIKE


def _words(text: str) -> list[str]:
    """Return the words to compare. Numbers are equal: a loop with a counter is still a loop."""
    without_markers = strip_all_markers(text[:LONGEST_TEXT])
    plain = _NUMBER.sub("0", unicodedata.normalize("NFKC", without_markers).casefold())
    return _WORD.findall(plain) or plain.split()


def _hashed(words: str) -> int:
    # Python's own hash() differs from one process to the next.
    return int.from_bytes(blake2b(words.encode(errors="replace"), digest_size=HASH_BYTES).digest())
