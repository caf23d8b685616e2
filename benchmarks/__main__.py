"""Run every benchmark and write docs/benchmarks.md; with --quick or with names, only print smaller or named ones.

With names and --update, only their sections of the page are written.

A benchmark is a module with `measure(*, quick: bool) -> Figure`; to add one, name it in BENCHMARKS.
"""

import sys
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from types import ModuleType

from benchmarks import (
    agents_cpu,
    agents_events,
    agents_flood,
    agents_latency,
    asking_cpu,
    asking_inbox,
    cli_start,
    cluster_cancel,
    cluster_events,
    cluster_idle,
    cluster_memory,
    cluster_recovery,
    cluster_say,
    cluster_turns,
    conversation_append,
    conversation_crowd,
    conversation_disk,
    conversation_memory,
    conversation_resume,
    editor_start,
    files_disk,
    files_time,
    files_worktree,
    fit,
    imports,
    markers,
    memory,
    misbehaviour,
    ready,
    remembering_bytes,
    remembering_cpu,
    screen_latency,
    snapshot,
    store_postgres,
    tools_read,
    tools_start,
    trimming,
    web,
    web_streaming,
    window,
)
from benchmarks.report import Figure, section, update, write

ABOUT_CONTEXT = (fit, trimming, window, snapshot, memory, imports, markers)
ABOUT_AGENTS = (
    agents_cpu,
    agents_events,
    agents_flood,
    agents_latency,
    asking_cpu,
    asking_inbox,
    tools_read,
    tools_start,
    misbehaviour,
)
ABOUT_CONVERSATIONS = (
    conversation_resume,
    conversation_append,
    conversation_disk,
    conversation_memory,
    conversation_crowd,
    store_postgres,
    cli_start,
)
ABOUT_MEMORY = (remembering_bytes, remembering_cpu)
ABOUT_FILES = (files_time, files_disk, files_worktree)
ABOUT_DOORS = (ready, screen_latency, web, web_streaming, editor_start)
ABOUT_MANY_MACHINES = (
    cluster_say,
    cluster_events,
    cluster_turns,
    cluster_idle,
    cluster_memory,
    cluster_recovery,
    cluster_cancel,
)
BENCHMARKS = (
    *ABOUT_CONTEXT,
    *ABOUT_AGENTS,
    *ABOUT_CONVERSATIONS,
    *ABOUT_DOORS,
    *ABOUT_MEMORY,
    *ABOUT_FILES,
    *ABOUT_MANY_MACHINES,
)


def main(arguments: list[str]) -> None:
    """Print each figure as soon as it is measured, then write the page; with names, only those, and no page."""
    quick = "--quick" in arguments
    names = [argument for argument in arguments if argument not in ("--quick", "--update")]
    chosen = [benchmark for benchmark in BENCHMARKS if not names or _name(benchmark) in names]
    if len(chosen) < len(names):
        raise SystemExit(f"Usage: python -m benchmarks [--quick] [--update] [{' | '.join(map(_name, BENCHMARKS))}]")
    figures, failed = [], []
    for name, figure in measured(chosen, quick=quick):
        if figure is None:
            failed.append(name)
        else:
            print(section(figure), end="\n\n", flush=True)
            figures.append(figure)
    if not quick and not names:
        write(figures)
    elif names and "--update" in arguments:
        update(figures)
    if failed:
        raise SystemExit(f"Not measured, see above: {', '.join(failed)}")


def measured(benchmarks: Sequence[ModuleType], *, quick: bool) -> Iterator[tuple[str, Figure | None]]:
    """Yield the figures, each from a new process, so that no benchmark affects the memory of another.

    None if a benchmark failed. The others still run: a whole run is long.
    """
    for benchmark in benchmarks:
        figure: Figure | None = None
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
            try:
                figure = processes.submit(partial(benchmark.measure, quick=quick)).result()
            except Exception:
                traceback.print_exc()
        yield _name(benchmark), figure


def _name(benchmark: ModuleType) -> str:
    return benchmark.__name__.rpartition(".")[2]


if __name__ == "__main__":
    main(sys.argv[1:])
