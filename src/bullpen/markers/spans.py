"""Code spans: what stands between two runs of equally many backticks in one paragraph."""

import re
from collections.abc import Iterator

# Up to the next backtick that no backslash makes a mere character. Possessive, so nothing is tried twice.
_OPENING = re.compile(r"(?:[^\\`]++|\\[\\`]?+)*+(`++)")
_BACKTICKS = re.compile("`++")


def code_spans(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield the spans between runs of equally many backticks, each run taking the nearest of its like that follows.

    Once one of them has no like, it is known where the last run of each length is, so nothing is looked for in vain
    again, and the time grows with the length of the paragraph and no faster.
    """
    last: dict[int, int] | None = None
    place = 0
    while opening := _OPENING.match(paragraph, place):
        start, place = opening.span(1)
        length = place - start
        if last is not None and last.get(length, 0) < place:
            continue
        following = _BACKTICKS.finditer(paragraph, place)
        closing = next((run for run in following if run.end() - run.start() == length), None)
        if closing:
            place = closing.end()
            yield start, place
        else:
            last = {run.end() - run.start(): run.start() for run in _BACKTICKS.finditer(paragraph, place)}
