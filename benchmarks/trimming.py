"""Figure: the newest part of a history that fits into 768 KiB, compared with other libraries."""

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from random import Random
from statistics import median

from msgspec import Struct, field

from benchmarks.corpus import drafts
from benchmarks.peers.candidates import Bullpen, Candidate, Copy, InItsProcess
from benchmarks.peers.environment import running
from benchmarks.peers.stage import LONGEST_CALL_SECONDS, LONGEST_FILL_SECONDS
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.context.prompt import DEFAULT_MAX_BYTES

LENGTHS, QUICK_LENGTHS = (1_000, 3_000, 10_000, 100_000, 1_000_000), (1_000, 3_000)
TEXTS = 10_000
"""Different ones; a longer history repeats them."""
ROUNDS, QUICK_ROUNDS = 25, 5
FILLS = 3
SHORT = 10_000
"""Histories up to this length are filled more than once, to measure first calls."""
OURS, COPY = "bullpen", "copy of the prompt"
PEERS = {
    "langchain-core": ("langchain", {"trim_messages": "trim_messages"}),
    "llama-index-core": ("llama_index", {"ChatMemoryBuffer": "ChatMemoryBuffer", "Memory": "Memory"}),
    "autogen-core": (
        "autogen",
        {"TokenLimited…": "TokenLimitedChatCompletionContext", "Buffered…": "BufferedChatCompletionContext"},
    ),
}
KEEPS_NO_BUDGET = "autogen-core Buffered…"
WHAT_EACH_DOES = (
    "bullpen: the whole prompt with its report, through ContextManager. langchain-core: "
    '`trim_messages(strategy="last")`. llama-index-core: `ChatMemoryBuffer.get`, which is deprecated there but kept, '
    "and `Memory.aget` of a `Memory` in its own SQLite, which trims while it is filled. autogen-core: "
    "`TokenLimitedChatCompletionContext.get_messages`, which removes messages from the middle, and "
    "`BufferedChatCompletionContext`, which has no budget: we count and pass it how many messages to keep. All get "
    f"the same texts, the same {DEFAULT_MAX_BYTES:,} bytes, and count UTF-8 bytes; the others return messages and "
    "leave writing the prompt to their caller. Filling is everything from texts to being ready. A candidate that takes "
    f"over {LONGEST_CALL_SECONDS} s for one call, or {LONGEST_FILL_SECONDS} s to be filled, gets no longer history."
)


class Taken(Struct):
    """The times of one candidate in one history."""

    fills: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    gave_up: str = ""
    """Why there are no more measurements."""


Results = dict[tuple[str, int], Taken]


def measure(*, quick: bool) -> Figure:
    """Let all candidates trim histories of growing length, in turn."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    corpus = list(drafts(TEXTS))
    notes: list[str] = []
    with ExitStack() as stack:
        ours = Bullpen(corpus)
        ours.fill(SHORT)
        candidates: dict[str, Candidate] = {OURS: ours, COPY: Copy(sys.getsizeof(ours.prompt().prompt))}
        for package, (module, ways) in PEERS.items():
            texts = [draft.content for draft in corpus]
            peer = stack.enter_context(running(module, package, texts, DEFAULT_MAX_BYTES))
            notes.append(f"{package} {peer.version}" if peer else f"{package} could not be installed")
            candidates |= {f"{package} {way}": InItsProcess(peer, name) for way, name in ways.items()} if peer else {}
        taken = _compared(candidates, lengths, QUICK_ROUNDS if quick else ROUNDS)
    return _figure(taken, list(candidates), lengths, notes)


def _compared(candidates: Mapping[str, Candidate], lengths: Sequence[int], rounds: int) -> Results:
    results: Results = {}
    willing = dict(candidates)
    for length in lengths:
        for name, candidate in willing.items():
            results[name, length] = _first_calls(candidate, length)
        willing = {name: one for name, one in willing.items() if not results[name, length].gave_up}
        for name in _turns(willing, rounds):
            _call_again(willing[name], results[name, length])
        for candidate in candidates.values():
            candidate.forget()
    return results


def _first_calls(candidate: Candidate, length: int) -> Taken:
    taken = Taken()
    for _ in range(FILLS if length <= SHORT else 1):
        gc.collect()
        fill = candidate.fill(length)
        if isinstance(fill, str):
            return Taken(gave_up=f"filling: {fill}")
        taken.fills.append(fill)
        first = candidate.trim()
        if isinstance(first, str):
            return Taken(fills=taken.fills, gave_up=first)
        taken.firsts.append(first)
    return taken


def _call_again(candidate: Candidate, taken: Taken) -> None:
    # A second call of such a slow candidate would add nothing.
    if sum(taken.firsts) + sum(taken.again) < LONGEST_CALL_SECONDS:
        seconds = candidate.trim()
        taken.again += [] if isinstance(seconds, str) else [seconds]


def _turns(candidates: Mapping[str, Candidate], rounds: int) -> Iterator[str]:
    order, random = list(candidates), Random(0)
    for _ in range(rounds):
        random.shuffle(order)
        yield from order


def _figure(taken: Results, names: Sequence[str], lengths: Sequence[int], notes: Sequence[str]) -> Figure:
    warm = {key: _warm(one) for key, one in taken.items() if not one.gave_up}
    flat = warm[OURS, lengths[-1]] / warm[OURS, lengths[0]]
    rivals = {
        (name, length): seconds for (name, length), seconds in warm.items() if name not in (OURS, COPY, KEEPS_NO_BUDGET)
    }
    nearest = min((seconds / warm[OURS, length] for (_, length), seconds in rivals.items()), default=0.0)
    return Figure(
        title="Trimming a history to a budget, compared with others",
        goal="once warm, no slower than any of them with a budget of bytes, however long the history is",
        met=all(seconds >= warm[OURS, length] for (_, length), seconds in rivals.items()),
        measured=f"the next fastest takes {times(nearest)} times as long as bullpen; bullpen in {lengths[-1]:,} "
        f"messages {times(flat)} times as long as in {lengths[0]:,}"
        if rivals
        else "no other could be installed",
        columns=("", "messages", "filling", "first call", "once warm", "÷ copy of the prompt", "÷ bullpen"),
        rows=[
            _row(name, length, taken[name, length], warm) for name in names for length in _asked(name, taken, lengths)
        ],
        meaning=f"{'; '.join(notes)}. {WHAT_EACH_DOES} bullpen's first call strips the markers of every message that "
        "fits, and caches the result; later calls do so for new messages only.",
        plots=(
            _plot("trimming", "Trimming a history to 768 KiB, once warm", warm, names, lengths),
            _plot("trimming-first", "The first call", _medians(taken, "firsts"), names, lengths),
            _plot("trimming-filling", "Filling: from texts to being ready", _medians(taken, "fills"), names, lengths),
        ),
    )


def _warm(taken: Taken) -> float:
    return median(taken.again or taken.firsts)


def _medians(taken: Results, which: str) -> dict[tuple[str, int], float]:
    return {key: median(getattr(one, which)) for key, one in taken.items() if getattr(one, which)}


def _asked(name: str, taken: Results, lengths: Sequence[int]) -> list[int]:
    return [length for length in lengths if (name, length) in taken]


def _row(name: str, length: int, taken: Taken, warm: Mapping[tuple[str, int], float]) -> tuple[str, ...]:
    if taken.gave_up:
        return name, f"{length:,}", duration(median(taken.fills)) if taken.fills else "", "", taken.gave_up, "", ""
    seconds = warm[name, length]
    return (
        name,
        f"{length:,}",
        duration(median(taken.fills)) if name != COPY else "",
        duration(median(taken.firsts)),
        duration(seconds),
        times(seconds / warm[COPY, length]),
        times(seconds / warm[OURS, length]),
    )


def _plot(
    name: str, title: str, seconds: Mapping[tuple[str, int], float], names: Sequence[str], lengths: Sequence[int]
) -> Plot:
    series = {who: [(n, seconds[who, n]) for n in lengths if (who, n) in seconds] for who in names}
    return Plot(
        name=name,
        title=title,
        across="messages in the history",
        up="processor time, lower is better",
        unit="seconds",
        series={who: points for who, points in series.items() if any(value > 0 for _, value in points)},
    )
