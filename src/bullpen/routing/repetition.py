"""Whether two replies say nearly the same: a short sketch of each, to be kept and compared.

A sketch holds the smallest hashes of all the runs of three words, so two sketches share about as much as the texts do
(https://en.wikipedia.org/wiki/MinHash). One changed word changes three runs, and at most three of the hashes.
"""

import re
import unicodedata
from hashlib import blake2b
from heapq import nsmallest

from bullpen.markers.stripping import strip_all_markers

SKETCH_SIZE = 32
ALIKE = 29
"""How many hashes at least are the same in texts that are alike: nine out of ten."""
LONGEST_TEXT = 64 * 1024
"""Characters that are looked at."""
RUN = 3
# Sketches may be kept as numbers in SQLite or JSON, which hold 63 and 53 bits.
HASH_BYTES = 6

# Chinese, Japanese, Thai and their neighbours are written without spaces, so there each character is a word.
_NO_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
# No word is long, so that a text without any space has words, too.
_WORD = re.compile(rf"(?=\w)[{_NO_SPACES}]|[^\W{_NO_SPACES}]{{1,16}}")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def sketch(text: str) -> tuple[int, ...]:
    """Return the sketch of a text; that of a short one is a single hash of it all."""
    words = _words(text)
    runs = {" ".join(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}
    if len(runs) < SKETCH_SIZE:
        return (_hashed(" ".join(words)),)
    return tuple(nsmallest(SKETCH_SIZE, map(_hashed, runs)))


def alike(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Tell whether two sketches are of nearly the same text; of a short one, of the same words."""
    if min(len(a), len(b)) < SKETCH_SIZE:
        return a == b
    return len(set(a) & set(b)) >= ALIKE


def _words(text: str) -> list[str]:
    """Return what counts in a text. A counter does not: a loop that counts is a loop."""
    said = strip_all_markers(text[:LONGEST_TEXT])
    plain = _NUMBER.sub("0", unicodedata.normalize("NFKC", said).casefold())
    return _WORD.findall(plain) or plain.split()


def _hashed(words: str) -> int:
    # Python's own hash() differs from one process to the next.
    return int.from_bytes(blake2b(words.encode(errors="replace"), digest_size=HASH_BYTES).digest())
