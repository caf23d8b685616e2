"""Code spans: text between two runs of equally many backticks in one paragraph."""

import re
from collections.abc import Iterator

# Up to the next backtick that is not escaped. Possessive, so nothing is tried twice.
_OPENING = re.compile(r"(?:[^\\`]++|\\[\\`]?+)*+(`++)")
_BACKTICKS = re.compile("`++")


def code_spans(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield the spans between runs of equally many backticks; each run is closed by the next one of its length.

    Once a run is not closed, we remember where the last run of each length is. So no later search fails, and the time
    is linear in the length of the paragraph.
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
