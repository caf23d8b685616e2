"""Run every benchmark and write docs/benchmarks.md; with --quick smaller ones, printed only."""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from benchmarks import (
    agents_cpu,
    agents_events,
    agents_flood,
    agents_latency,
    cli_start,
    conversation_append,
    conversation_crowd,
    conversation_disk,
    conversation_memory,
    conversation_resume,
    fit,
    imports,
    markers,
    memory,
    misbehaviour,
    snapshot,
    window,
)
from benchmarks.report import PAGE, Figure, page, section

ABOUT_CONTEXT = (fit, window, snapshot, memory, imports, markers)
ABOUT_AGENTS = (agents_cpu, agents_events, agents_flood, agents_latency, misbehaviour)
ABOUT_CONVERSATIONS = (
    conversation_resume,
    conversation_append,
    conversation_disk,
    conversation_memory,
    conversation_crowd,
    cli_start,
)
BENCHMARKS = (*ABOUT_CONTEXT, *ABOUT_AGENTS, *ABOUT_CONVERSATIONS)


def main(arguments: list[str]) -> None:
    """Print each figure when it is known, and write the page when all are."""
    if arguments not in ([], ["--quick"]):
        raise SystemExit("Usage: python -m benchmarks [--quick]")
    quick = bool(arguments)
    figures = []
    for figure in measured(quick=quick):
        print(section(figure), end="\n\n", flush=True)
        figures.append(figure)
    if not quick:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(figures))


def measured(*, quick: bool) -> Iterator[Figure]:
    """Yield the figures, each from a new process, so that no benchmark finds the memory of another."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        for benchmark in BENCHMARKS:
            yield processes.submit(partial(benchmark.measure, quick=quick)).result()


if __name__ == "__main__":
    main(sys.argv[1:])
