"""Figure: fitting the newest part of a long history into one prompt of 768 KiB."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time

from benchmarks.corpus import drafts, recurring
from benchmarks.measure import Run, first_call, medians
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.context import AssemblerInput, AssemblerOutput, ClaudeContextAssembler, ContextManager
from bullpen.messages import MessageDraft

AGENT = "claude-code"
GOAL, GOAL_FLAT = 2.0, 1.2
LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
QUICK_LENGTHS = (1_000, 10_000)
TEXTS = 10_000
"""Different ones; a longer history repeats them."""
LONGEST_LIST = 100_000
"""The assembler alone needs a list of prepared messages, and a longer one is not worth its memory."""
FIRST_CALLS, FIRST_CALLS_OF_LONGEST = 5, 2

Prompt = Callable[[], AssemblerOutput]


def measure(*, quick: bool) -> Figure:
    """Compare prompts from histories of different lengths with copying the result."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    corpus = list(drafts(TEXTS))
    cold = {length: _cold(corpus, length) for length in lengths}
    warm, prompt = _warm(corpus, lengths, rounds=20 if quick else 100)
    ratios = [warm[f"manager {length}"] / warm["copy str"] for length in lengths]
    flatness = warm[f"manager {lengths[-1]}"] / warm[f"manager {lengths[0]}"]
    return Figure(
        title="Fitting a long history into 768 KiB",
        goal=f"once warm within {GOAL:g} times a copy of the result, and no slower in a longer history",
        met=max(ratios) <= GOAL and flatness <= GOAL_FLAT,
        reason="a prompt is joined from runs of 32 messages, which alone takes as long as a copy; where its ends cut a "
        "run, up to 62 lines are handled one by one.",
        measured=f"at most {times(max(ratios))} times a copy; {lengths[-1]:,} messages take {times(flatness)} times as "
        f"long as {lengths[0]:,}",
        columns=(
            "messages",
            "first call",
            "once warm",
            "÷ copy of the str",
            "÷ copy of its UTF-8",
            "assembler alone",
            "÷ copy of the str",
        ),
        rows=[_row(length, cold, warm) for length in lengths],
        meaning=_meaning(prompt, warm, flatness, lengths),
        plots=(_plot(cold, warm, lengths),),
    )


def _cold(corpus: Sequence[MessageDraft], length: int) -> float:
    rounds = FIRST_CALLS if length <= LONGEST_LIST else FIRST_CALLS_OF_LONGEST
    return first_call(partial(_through_manager, corpus, length), rounds=rounds, clock=process_time)


def _warm(corpus: Sequence[MessageDraft], lengths: Sequence[int], rounds: int) -> tuple[dict[str, float], str]:
    """Return the median of each candidate with full caches, and the prompt that all of them build."""
    prompts: dict[str, Prompt] = {}
    # Every history ends in the same messages, so every prompt is the same.
    for length in lengths:
        prompts[f"manager {length}"] = _through_manager(corpus, length)
        if length <= LONGEST_LIST:
            prompts[f"assembler {length}"] = _through_assembler(corpus, length)
    results = {make().prompt for make in prompts.values()}
    assert len(results) == 1, "the prompts are not the same"
    prompt = results.pop()
    return medians({**prompts, **_copies(prompt)}, rounds=rounds, clock=process_time), prompt


def _copies(prompt: str) -> dict[str, Run]:
    """Return what prompts are compared with: copying as many bytes as one has in memory, and as many as are sent."""
    as_held, as_sent = bytearray(sys.getsizeof(prompt)), bytearray(prompt.encode())
    return {"copy str": partial(bytes, as_held), "copy utf-8": partial(bytes, as_sent)}


def _through_manager(corpus: Sequence[MessageDraft], length: int) -> Prompt:
    manager = _filled(corpus, length)

    def make() -> AssemblerOutput:
        source = manager.get_context_for_agent("max", AGENT, window_size_override=length)
        return manager.assemble_prompt(AGENT, source)

    return make


def _through_assembler(corpus: Sequence[MessageDraft], length: int) -> Prompt:
    source = _filled(corpus, length).get_context_for_agent("max", AGENT, window_size_override=length)
    as_list = AssemblerInput(
        context_messages=list(source.context_messages),
        current_message=source.current_message,
    )
    return partial(ClaudeContextAssembler().assemble, as_list)


def _filled(corpus: Sequence[MessageDraft], length: int) -> ContextManager:
    manager = ContextManager()
    for draft in recurring(corpus, length):
        manager.add_message(draft)
    return manager


def _row(length: int, cold: dict[int, float], warm: dict[str, float]) -> tuple[str, ...]:
    through_manager, alone = warm[f"manager {length}"], warm.get(f"assembler {length}")
    return (
        f"{length:,}",
        duration(cold[length]),
        duration(through_manager),
        times(through_manager / warm["copy str"]),
        times(through_manager / warm["copy utf-8"]),
        duration(alone) if alone else "",
        times(alone / warm["copy str"]) if alone else "",
    )


def _plot(cold: dict[int, float], warm: dict[str, float], lengths: Sequence[int]) -> Plot:
    return Plot(
        name="fit",
        title="Fitting a history into 768 KiB",
        across="messages in the history",
        up="processor time, lower is better",
        unit="seconds",
        series={
            "first call": [(length, cold[length]) for length in lengths],
            "once warm": [(length, warm[f"manager {length}"]) for length in lengths],
            "copy of the prompt as a str": [(length, warm["copy str"]) for length in lengths],
            "copy of its UTF-8": [(length, warm["copy utf-8"]) for length in lengths],
        },
    )


def _meaning(prompt: str, warm: dict[str, float], flatness: float, lengths: Sequence[int]) -> str:
    return (
        f"The prompt has {len(prompt.encode()):,} bytes of UTF-8 and takes {sys.getsizeof(prompt):,} bytes as a Python "
        f"str, since it contains an emoji. Copying the str takes {duration(warm['copy str'])}, copying the UTF-8 "
        f"{duration(warm['copy utf-8'])}. {lengths[-1]:,} messages take {times(flatness)} times as long as "
        f"{lengths[0]:,} (goal: at most {GOAL_FLAT:g})."
    )
