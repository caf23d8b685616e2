"""Figure: the newest part of a long history into one prompt of 768 KiB."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time

from benchmarks import langchain
from benchmarks.corpus import drafts
from benchmarks.measure import Run, first_call, medians
from benchmarks.report import Figure, duration, times
from bullpen.context import AssemblerInput, AssemblerOutput, ClaudeContextAssembler, ContextManager
from bullpen.messages import MessageDraft

AGENT = "claude-code"
GOAL, GOAL_FLAT = 5.0, 1.2
LENGTHS = (1_000, 10_000, 100_000)
QUICK_LENGTHS = (1_000, 10_000)

Prompt = Callable[[], AssemblerOutput]


def measure(*, quick: bool) -> Figure:
    """Compare prompts from histories of different lengths with copying the result, and with langchain-core."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    corpus = list(drafts(lengths[-1]))
    # Every history ends in the same messages, so every prompt is the same.
    histories = {length: corpus[-length:] for length in lengths}
    cold = {
        n: first_call(partial(_through_manager, history), rounds=5, clock=process_time)
        for n, history in histories.items()
    }
    warm, prompt = _warm(histories, rounds=20 if quick else 100)
    trimmed = langchain.trim_seconds([draft.content for draft in corpus], lengths)
    ratios = [warm[f"manager {length}"] / warm["copy str"] for length in lengths]
    flatness = warm[f"manager {lengths[-1]}"] / warm[f"manager {lengths[0]}"]
    return Figure(
        title="Fitting a long history into 768 KiB",
        goal=f"once warm within {GOAL:g} times a copy of the result, and no slower in a longer history",
        met=max(ratios) <= GOAL and flatness <= GOAL_FLAT,
        columns=(
            "messages",
            "first call",
            "once warm",
            "÷ copy of the str",
            "÷ copy of its UTF-8",
            "assembler alone",
            "÷ copy of the str",
            "langchain-core",
        ),
        rows=[_row(length, cold, warm, trimmed) for length in lengths],
        meaning=_meaning(prompt, warm, flatness, lengths) + " " + langchain.NOTE,
    )


def _warm(histories: dict[int, list[MessageDraft]], rounds: int) -> tuple[dict[str, float], str]:
    """Return the median of each candidate once everything is known to it, and the prompt they all make."""
    prompts: dict[str, Prompt] = {}
    for length, history in histories.items():
        prompts[f"manager {length}"] = _through_manager(history)
        prompts[f"assembler {length}"] = _through_assembler(history)
    results = {make().prompt for make in prompts.values()}
    assert len(results) == 1, "the prompts are not the same"
    prompt = results.pop()
    return medians({**prompts, **_copies(prompt)}, rounds=rounds, clock=process_time), prompt


def _copies(prompt: str) -> dict[str, Run]:
    """Return what prompts are compared with: copying as many bytes as one takes in memory, and as many as are sent."""
    as_held, as_sent = bytearray(sys.getsizeof(prompt)), bytearray(prompt.encode())
    return {"copy str": partial(bytes, as_held), "copy utf-8": partial(bytes, as_sent)}


def _through_manager(history: Sequence[MessageDraft]) -> Prompt:
    manager = ContextManager()
    for draft in history:
        manager.add_message(draft)

    def make() -> AssemblerOutput:
        source = manager.get_context_for_agent("max", AGENT, window_size_override=len(history))
        return manager.assemble_prompt(AGENT, source)

    return make


def _through_assembler(history: Sequence[MessageDraft]) -> Prompt:
    manager = ContextManager()
    for draft in history:
        manager.add_message(draft)
    source = manager.get_context_for_agent("max", AGENT, window_size_override=len(history))
    as_list = AssemblerInput(
        context_messages=list(source.context_messages),
        current_message=source.current_message,
    )
    return partial(ClaudeContextAssembler().assemble, as_list)


def _row(length: int, cold: dict[int, float], warm: dict[str, float], trimmed: dict[int, str]) -> tuple[str, ...]:
    through_manager, alone = warm[f"manager {length}"], warm[f"assembler {length}"]
    return (
        f"{length:,}",
        duration(cold[length]),
        duration(through_manager),
        times(through_manager / warm["copy str"]),
        times(through_manager / warm["copy utf-8"]),
        duration(alone),
        times(alone / warm["copy str"]),
        trimmed.get(length, "not measured"),
    )


def _meaning(prompt: str, warm: dict[str, float], flatness: float, lengths: Sequence[int]) -> str:
    return (
        f"The prompt has {len(prompt.encode()):,} bytes of UTF-8 and takes {sys.getsizeof(prompt):,} bytes as a Python "
        f"str, since it holds an emoji. Copying the str takes {duration(warm['copy str'])}, copying the UTF-8 "
        f"{duration(warm['copy utf-8'])}. {lengths[-1]:,} messages take {times(flatness)} times as long as "
        f"{lengths[0]:,} (goal: at most {GOAL_FLAT:g})."
    )
