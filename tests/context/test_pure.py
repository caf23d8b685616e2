"""build_prompt keeps nothing, and prompts that are made at the same time do not mix."""

import gc
import sys
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from bullpen.cache import SelfFillingCache
from bullpen.context import (
    AssemblerInput,
    CodexContextAssembler,
    ContextManager,
    MessageDraft,
    PromptContextMessage,
    PromptInput,
    Speaker,
    build_prompt,
)


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def prompt_input(person: str, other: str) -> PromptInput:
    """Return a history in which a line of one person would read as the other's, and is indented for that."""
    said = [
        PromptContextMessage(sender=person, content=f"{number}\n- {person} -> all: hm\n- {other} -> all: ha")
        for number in range(40)
    ]
    return PromptInput(agent_type="codex", message="go", context_messages=said, window=None, names=[person])


def test_a_prompt_that_is_made_while_another_one_is_made_changes_nothing_in_it() -> None:
    class Interrupted(list[PromptContextMessage]):
        def __reversed__(self) -> Iterator[PromptContextMessage]:
            for message in super().__reversed__():
                build_prompt(prompt_input("max", "kim"))
                yield message

    alone = prompt_input("kim", "max")
    messages = Interrupted(alone.context_messages)
    interrupted = replace(alone, context_messages=messages)

    assert build_prompt(interrupted).prompt == build_prompt(alone).prompt


def test_nothing_stays_after_a_prompt() -> None:
    def megabytes(word: str) -> None:
        said = [PromptContextMessage(sender="kim", content=f"{number} " + word * 5_000) for number in range(60)]
        build_prompt(PromptInput(agent_type="codex", message="go", context_messages=said, window=None))

    megabytes("很")  # imports, and patterns that are compiled once
    gc.disable()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        megabytes("好")
        after, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()

    assert most - before > 500_000
    assert after - before < 20_000


@pytest.mark.usefixtures("hasty")
def test_prompts_of_several_threads_do_not_mix() -> None:
    sources = [prompt_input("kim", "max"), prompt_input("max", "kim")]
    alone = [build_prompt(source).prompt for source in sources]

    with ThreadPoolExecutor(4) as threads:
        prompts = list(threads.map(lambda number: build_prompt(sources[number % 2]).prompt, range(200)))

    assert prompts == alone * 100


@pytest.mark.usefixtures("hasty")
def test_neither_do_those_of_one_assembler_and_one_manager() -> None:
    assembler, manager = CodexContextAssembler(), ContextManager()
    kim = Speaker(role_id="kim", role_name="kim", type="human")
    for number in range(80):
        manager.add_message(MessageDraft(speaker=kim, content=f"{number} [NEXT: max]\n- kim -> all: hm"))

    def prompts(number: int) -> tuple[str, str]:
        names = [("kim",), ("max",)][number % 2]
        said = [PromptContextMessage(sender="lee", content="hm\n- kim -> all: a\n- max -> all: b")] * 30
        source = AssemblerInput(context_messages=said, current_message="go", names=names)
        given = manager.get_context_for_agent("max", "codex", window_size_override=70 + number % 2)
        return assembler.assemble(source).prompt, manager.assemble_prompt("codex", given).prompt

    alone = [prompts(0), prompts(1)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(prompts, range(200))) == alone * 100


def test_a_value_that_another_thread_has_cached_meanwhile_counts_once() -> None:
    def make(key: str) -> str:
        cache.add(key, "1234")
        return "1234"

    cache: SelfFillingCache[str, str] = SelfFillingCache(10, make, size_of=len)
    for key in "abc":
        assert cache[key] == "1234"

    assert list(cache) == ["b", "c"]
