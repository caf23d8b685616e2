"""Figure: a prompt for a small window takes the same time, however long the history is."""

from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice
from time import process_time

from benchmarks.corpus import drafts
from benchmarks.measure import medians
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.context import AssemblerOutput, ContextManager
from bullpen.context.manager import Visibility
from bullpen.messages import MessageDraft

WINDOW = 10
SHORT = 1_000
LENGTHS, QUICK_LENGTHS = (SHORT, 10_000, 100_000, 1_000_000), (SHORT, 10_000, 100_000)
GOAL = 1.2
VISIBILITIES: tuple[Visibility, ...] = ("all", "addressed")


def measure(*, quick: bool) -> Figure:
    """Compare a prompt from a short history with the same prompt from a very long one."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    short, *_, long = lengths
    managers = {length: _manager(length) for length in lengths}
    candidates = {
        f"{visibility} {length}": partial(_prompt, manager, visibility)
        for visibility in VISIBILITIES
        for length, manager in managers.items()
    }
    taken = medians(candidates, rounds=20 if quick else 60, repeats=200, clock=process_time)
    ratios = {visibility: taken[f"{visibility} {long}"] / taken[f"{visibility} {short}"] for visibility in VISIBILITIES}
    return Figure(
        title=f"A window of {WINDOW} messages in a long history",
        goal=f"{long:,} messages take at most {GOAL:g} times as long as {short:,}",
        met=max(ratios.values()) <= GOAL,
        measured=", ".join(f"{times(ratio)} times ({name})" for name, ratio in ratios.items()),
        columns=("the agent sees", *[f"{length:,} messages" for length in lengths], "longest ÷ shortest"),
        rows=[
            (name, *[duration(taken[f"{name} {length}"]) for length in lengths], times(ratio))
            for name, ratio in ratios.items()
        ],
        meaning="The goal means that a turn costs the same on the first day and after a year, also when the agent may "
        "see only what was addressed to it. Warm, for claude-code; the long history repeats the texts of the short one "
        "to spare memory.",
        plots=(
            Plot(
                name="window",
                title=f"A prompt for a window of {WINDOW} messages",
                across="messages in the history",
                up="processor time, lower is better",
                unit="seconds",
                series={
                    f"the agent sees {name}": [(length, taken[f"{name} {length}"]) for length in lengths]
                    for name in VISIBILITIES
                },
            ),
        ),
    )


def _manager(length: int) -> ContextManager:
    manager = ContextManager()
    for draft in _repeated(length):
        manager.add_message(draft)
    return manager


def _repeated(length: int) -> Iterator[MessageDraft]:
    # A multiple of the short history, so that both end in the same messages.
    return islice(cycle(list(drafts(SHORT))), length)


def _prompt(manager: ContextManager, visibility: Visibility) -> AssemblerOutput:
    source = manager.get_context_for_agent("max", "claude-code", window_size_override=WINDOW, visibility=visibility)
    return manager.assemble_prompt("claude-code", source)
