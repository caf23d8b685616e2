"""Figure: the memory of a conversation, compared with the UTF-8 of its text.

Each measurement runs in its own process: `python -m benchmarks.memory` with the four arguments of `report`.
"""

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.corpus import Write, drafts, mixed, one_emoji_each, recorded
from benchmarks.plot import Plot
from benchmarks.report import Figure, times
from bullpen.context import ContextManager
from bullpen.messages import ConversationMessage, MessageDraft

GOAL = 1.5
LENGTHS, QUICK_LENGTHS = (10_000, 30_000, 100_000), (3_000, 10_000)
CORPORA: dict[str, Write] = {"mixed": mixed, "one emoji in each": one_emoji_each}
STATM = Path("/proc/self/statm")
# Resident memory can only be read on Linux.
METERS = ("tracemalloc", "resident") if STATM.exists() else ("tracemalloc",)


RESIDENT_REASON = (
    "Python's own memory is within the goal; resident memory adds partly free pages that the allocator keeps, most of "
    "all after a prompt and an export were built and freed."
)
CACHES_REASON = "a prompt fills two caches, whose size does not depend on the length of the conversation."


class Usage(Struct, kw_only=True):
    """What one process measured: the bytes of all contents, and the memory at three moments."""

    said: int
    added: int
    after_prompt: int
    after_export: int


def measure(*, quick: bool) -> Figure:
    """Compare the memory with the bytes said, for both corpora and both ways to measure."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    length = lengths[-1]
    ours = {(corpus, meter): _usage("bullpen", corpus, meter, length) for corpus in CORPORA for meter in METERS}
    plain = {(corpus, "tracemalloc"): _usage("plain", corpus, "tracemalloc", length) for corpus in CORPORA}
    worst = {meter: max(_worst(ours[corpus, meter]) for corpus in CORPORA) for meter in METERS}
    return Figure(
        title=f"Memory for {length:,} messages",
        goal=f"at most {GOAL:g} bytes for each byte of UTF-8 that was said",
        met=max(worst.values()) <= GOAL,
        measured=", ".join(f"at most {times(ratio)} by {meter}" for meter, ratio in worst.items()),
        reason=RESIDENT_REASON if worst["tracemalloc"] <= GOAL else CACHES_REASON,
        columns=(
            "messages",
            "measured by",
            "text per message",
            "held per message",
            "ratio",
            "after a prompt",
            "after an export",
        ),
        rows=[
            *[_row(corpus, meter, usage, length) for (corpus, meter), usage in ours.items()],
            *[_row(f"{corpus}, plain structs", meter, usage, length) for (corpus, meter), usage in plain.items()],
        ],
        meaning="Above 1 are ids, times, routing and the two caches of about 1.5 MiB each. The plain structs "
        "are a list of ConversationMessage encoded with msgspec: an emoji makes a Python str take four bytes for every "
        "character, and writing it keeps a copy in UTF-8.",
        plots=(
            _plot(lengths, ours | {(f"{corpus}, plain structs", meter): one for (corpus, meter), one in plain.items()}),
        ),
    )


def _worst(usage: Usage) -> float:
    return max(usage.added, usage.after_prompt, usage.after_export) / usage.said


def _plot(lengths: Sequence[int], longest: dict[tuple[str, str], Usage]) -> Plot:
    """Return the ratio for each length, by Python's memory after adding everything."""
    names = {
        "mixed": ("bullpen", "mixed"),
        "one emoji in each": ("bullpen", "one emoji in each"),
        "mixed, plain structs": ("plain", "mixed"),
        "one emoji in each, plain structs": ("plain", "one emoji in each"),
    }
    series = {}
    for name, (keeper, corpus) in names.items():
        shorter = [(length, _usage(keeper, corpus, "tracemalloc", length)) for length in lengths[:-1]]
        usages = [*shorter, (lengths[-1], longest[name, "tracemalloc"])]
        series[name] = [(float(length), usage.added / usage.said) for length, usage in usages]
    return Plot(
        name="memory",
        title="Memory for each byte that was said",
        across="messages",
        up="bytes held by Python for each byte of UTF-8, lower is better",
        unit="ratio",
        series=series,
    )


def _usage(keeper: str, corpus: str, meter: str, length: int) -> Usage:
    command = [sys.executable, "-m", "benchmarks.memory", keeper, corpus, meter, str(length)]
    return msgspec.json.decode(subprocess.run(command, check=True, capture_output=True).stdout, type=Usage)


def _row(name: str, meter: str, usage: Usage, length: int) -> tuple[str, ...]:
    ratios = (usage.added / usage.said, usage.after_prompt / usage.said, usage.after_export / usage.said)
    return name, meter, f"{usage.said / length:,.0f} B", f"{usage.added / length:,.0f} B", *map(times, ratios)


def report(keeper: str, corpus: str, meter: str, length: str) -> Usage:
    """Return the memory of messages in bullpen or in a plain list."""
    write = CORPORA[corpus]
    # We do not measure the pools that texts are cut from, and imports on first use.
    keep, prompt, export = _keeper(keeper)
    for draft in drafts(100, write):
        keep(draft)
    prompt(), export()
    keep, prompt, export = _keeper(keeper)
    held = _meter(meter)
    said = 0
    for draft in drafts(int(length), write):
        said += len(draft.content.encode())
        keep(draft)
    del draft
    added = held()
    prompt()
    after_prompt = held()
    export()
    return Usage(said=said, added=added, after_prompt=after_prompt, after_export=held())


def _keeper(name: str) -> tuple[Callable[[MessageDraft], object], Callable[[], object], Callable[[], object]]:
    """Return how to keep a message, how to build a prompt from all, and how to export all."""
    if name == "plain":
        messages: list[ConversationMessage] = []

        def keep(draft: MessageDraft) -> None:
            messages.append(recorded(draft, len(messages) + 1))

        return keep, lambda: None, lambda: msgspec.json.encode(messages)
    manager = ContextManager()

    def prompt() -> None:
        source = manager.get_context_for_agent("max", "claude-code", window_size_override=10**9)
        manager.assemble_prompt("claude-code", source)

    return manager.add_message, prompt, lambda: manager.export_snapshot().to_json()


def _meter(name: str) -> Callable[[], int]:
    """Return a function that returns how many more bytes are in use than now."""
    if name == "tracemalloc":
        tracemalloc.start()

    def in_use() -> int:
        gc.collect()
        if name == "tracemalloc":
            return tracemalloc.get_traced_memory()[0]
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = in_use()
    return lambda: in_use() - before


if __name__ == "__main__":
    print(json.dumps(msgspec.to_builtins(report(*sys.argv[1:]))))
