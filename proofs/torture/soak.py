"""A long day: very many conversations and messages in one process, whose memory must not grow with them."""

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

from proofs.torture.outcome import Outcome, Size, Torture

from bullpen.app import open_conversation, open_store
from bullpen.conversation.broadcast import Broadcast
from bullpen.store.base import Store
from bullpen.team.file import load_team

CONVERSATIONS: dict[Size, int] = {"small": 12, "full": 500}
WORDS_EACH: dict[Size, int] = {"small": 20, "full": 100}
SECONDS: dict[Size, int] = {"small": 0, "full": 3_600}
"""How long it takes at least: what leaks with time, not with words, is found too."""
AT_ONCE = 10
MAY_GROW = 1.15
"""From a quarter of the way to the end. Allocators take their time to find a level."""
SMALLEST_GROWTH = 8_000_000
"""Bytes that no one would notice, and that a small run may need."""

TEAM = """
[[member]]
name = "kim"
[[member]]
name = "max"
command = ["/bin/sh", "-c", "cat > /dev/null; echo I have read it."]
"""


def run(size: Size, seed: int) -> Outcome:
    """Talk all day."""
    return asyncio.run(_soak(CONVERSATIONS[size], WORDS_EACH[size], SECONDS[size]))


def run_with_fault(seed: int) -> Outcome:
    """Remember every news for ever."""
    remembered: list[bytes] = []
    publish = Broadcast.publish

    def leak(self: Broadcast, news: Any) -> None:
        remembered.append(os.urandom(64_000))
        publish(self, news)

    with mock.patch.object(Broadcast, "publish", leak):
        return asyncio.run(_soak(CONVERSATIONS["small"], WORDS_EACH["small"], SECONDS["small"]))


async def _soak(conversations: int, words: int, seconds: int) -> Outcome:
    sizes: list[int] = []
    began = time.monotonic()
    places = asyncio.Semaphore(AT_ONCE)
    with (
        tempfile.TemporaryDirectory(prefix="torture-") as folder,
        mock.patch.dict(os.environ, {"XDG_STATE_HOME": folder}),
    ):
        file = Path(folder, "team.toml")
        file.write_text(TEAM)
        loaded = load_team(file)
        async with open_store(Path(folder, "soak.db")) as (store, thread):

            async def talk(number: int) -> None:
                async with places, open_conversation(loaded, store, thread) as conversation:
                    for word in range(words):
                        await conversation.say(
                            f"{number}, {word}: 这是一段话, and some more words about nothing at all."
                        )
                        await conversation.until_quiet()
                        sizes.append(_resident_bytes())
                        due = began + seconds * len(sizes) / (conversations * words)
                        await asyncio.sleep(due - time.monotonic())

            await asyncio.gather(*map(talk, range(conversations)))
            failures = [*_missing(store, conversations, words), *_grown(sizes)]
            failures += [finding.text for finding in await asyncio.to_thread(store.fsck)]
    return Outcome(
        tried=2 * conversations * words,
        unit="messages",
        failures=tuple(failures),
        figures={
            "conversations": conversations,
            "minutes": round((time.monotonic() - began) / 60),
            "turns of agents": conversations * words,
            "memory after a quarter, in MB": sizes[len(sizes) // 4] // 1_000_000,
            "memory at the end, in MB": sizes[-1] // 1_000_000,
        },
    )


def _missing(store: Store, conversations: int, words: int) -> list[str]:
    counts = [conversation.messages for conversation in store.conversations()]
    if counts == [2 * words] * conversations:
        return []
    return [f"{len(counts)} conversations with {sum(counts):,} messages, not {2 * words * conversations:,}"]


def _grown(sizes: list[int]) -> list[str]:
    early, late = sizes[len(sizes) // 4], sizes[-1]
    if late <= max(early * MAY_GROW, early + SMALLEST_GROWTH):
        return []
    return [f"the memory grew from {early:,} to {late:,} bytes"]


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


TORTURE = Torture(
    name="soak",
    does="For an hour, in one process, conversations are opened, talked in and closed, ten at a time, with agents that "
    "are real processes.",
    promise="no message is missing, `fsck` finds nothing, and from a quarter of the way on the memory does not grow.",
    run=run,
    fault="every news is remembered for ever.",
    seen_as="the memory grew",
    run_with_fault=run_with_fault,
    order=90,
)
