"""Torture: texts made to be mistaken for something else, through everything that reads or shows text."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

from proofs.torture.hostile_inputs import hostile_text
from proofs.torture.hostile_patterns import slow_patterns
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.text_checks import CHECKS, DOORS, Check, Doors

TEXTS: dict[Size, int] = {"small": 6_000, "full": 10_000_000}
BATCH = 8
"""Texts that make one prompt."""
CHUNK = 2_000
"""Texts that one process takes at a time; each chunk has a seed of its own, so that one can be run again alone."""
MOST_FAILURES = 20
FAULT_TEXTS = 4_000


def run(size: Size, seed: int) -> Outcome:
    """Check the texts in as many processes as there are cores, then every regular expression."""
    chunks = TEXTS[size] // CHUNK
    failures: list[str] = []
    figures: Counter[str] = Counter()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as processes:
        for found, counted in processes.map(check_chunk, [(seed, number) for number in range(chunks)]):
            failures += found
            figures += counted
    patterns, slow = slow_patterns()
    figures["regular expressions"] = patterns
    return Outcome(tried=TEXTS[size], unit="texts", failures=(*failures, *slow), figures=dict(figures))


def check_chunk(chunk: tuple[int, int]) -> tuple[list[str], Counter[str]]:
    """Check the texts of one chunk."""
    seed, number = chunk
    return check_texts(Random(f"{seed}/{number}"), CHUNK, DOORS, f"seed {seed}, chunk {number}")


def check_texts(random: Random, texts: int, doors: Doors, where: str) -> tuple[list[str], Counter[str]]:
    """Return what went wrong, and how often each thing was looked at."""
    failures: list[str] = []
    counted: Counter[str] = Counter()
    for first in range(0, texts, BATCH):
        batch = [hostile_text(random) for _ in range(BATCH)]
        for check in CHECKS:
            if first // BATCH % check.every == 0:
                counted[check.counts] += BATCH
                failures += [f"{where}, {check.name}: {failure}" for failure in _failures(check, batch, random, doors)]
    return failures[:MOST_FAILURES], counted


def _failures(check: Check, batch: list[str], random: Random, doors: Doors) -> Iterator[str]:
    try:
        yield from check.find(batch, random, doors)
    except Exception as error:
        yield f"{error!r} for {batch!r}"


def run_with_fault(seed: int) -> Outcome:
    """Plant one fault for each check. If only one of them goes unnoticed, nothing counts as caught."""
    failures: list[str] = []
    for check in CHECKS:
        found = next(failures_with(check, check.broken(DOORS), seed), None)
        if found is None:
            return Outcome(tried=FAULT_TEXTS, unit="texts", figures={f"fault in {check.name} not caught": 1})
        failures.append(found)
    return Outcome(tried=FAULT_TEXTS, unit="texts", failures=tuple(failures))


def failures_with(check: Check, doors: Doors, seed: int, texts: int = FAULT_TEXTS) -> Iterator[str]:
    """Yield what one check finds in a few texts."""
    random = Random(f"{seed}/fault")
    for _ in range(texts // BATCH):
        yield from _failures(check, [hostile_text(random) for _ in range(BATCH)], random, doors)


Finder = Callable[[list[str], Random, Doors], Iterator[str]]

TORTURE = Torture(
    name="hostile text",
    does="Texts are put together from markers in every spelling, fences, quotes, headings and sender lines of our own "
    "prompts, escape sequences, bidirectional and invisible characters, every kind of line end, half emojis, HTML and "
    "endless repetitions. Each goes through reading and stripping markers, prompts for all four layouts, and the "
    "terminal; every eighth batch through the exports and the Markdown of the page. Every regular expression of the "
    "package gets input that grows.",
    promise="A parser that knows only the documentation finds who said what in every prompt; no text forges a heading "
    "or speaks for somebody else; nothing that markdown-it calls code or a quote routes; no escape, control or "
    "reordering character reaches a terminal; no export or page holds a tag, heading or link that is not ours; "
    "every regular expression takes time in proportion to its input.",
    run=run,
    fault="one in each part: markers in code count, stripping once is thought enough, names are not protected in "
    "prompts, one escape character passes, quotes in exports are not kept together.",
    seen_as="code routes to",
    run_with_fault=run_with_fault,
    order=30,
)
