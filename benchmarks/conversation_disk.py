"""Figure: the disk space of a conversation for each byte that was said."""

import asyncio
from functools import cache
from pathlib import Path
from random import Random

from benchmarks.agents_stage import own_folder
from benchmarks.conversation_stage import team_in, texts_for_lee
from benchmarks.corpus import Write, chinese, code, prose
from benchmarks.plot import Plot
from benchmarks.report import Figure, times
from bullpen.app import open_team
from bullpen.store.sqlite import SqliteStore
from bullpen.text.clean import byte_length

GOAL = 1.3
LENGTHS, QUICK_LENGTHS = (250, 1_000, 4_000), (125, 500)


def many_words(random: Random, size: int) -> str:
    """Return Chinese with many different words, each as frequent as its rank in a vocabulary suggests."""
    words, weights = _vocabulary()
    return "".join(random.choices(words, weights, k=size // 6))


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    random = Random(VOCABULARY)
    characters = [chr(0x4E00 + random.randrange(20_000)) for _ in range(3_000)]
    weights = [1 / place for place in range(1, len(characters) + 1)]
    words = ["".join(random.choices(characters, weights, k=2)) for _ in range(VOCABULARY)]
    return words, [1 / place for place in range(1, VOCABULARY + 1)]


VOCABULARY = 20_000
KINDS: dict[str, Write] = {"English": prose, "code": code, "Chinese": chinese, "Chinese, many words": many_words}


def measure(*, quick: bool) -> Figure:
    """Say the same amount in several kinds of text, and measure the file."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    with own_folder() as folder:
        sizes = {
            (name, count): asyncio.run(_said(folder, f"{name}-{count}", write, count))
            for name, write in KINDS.items()
            for count in lengths
        }
    ratios = {case: stored / said for case, (said, stored) in sizes.items()}
    longest = {name: ratios[name, lengths[-1]] for name in KINDS}
    return Figure(
        title="Room on the disk",
        goal=f"at most {GOAL:g} bytes for each byte that was said",
        met=max(longest.values()) <= GOAL,
        measured=", ".join(f"{name} {times(ratio)}" for name, ratio in longest.items()),
        reason="Chinese is searched by all pairs of its characters, and where words rarely repeat, the index of those "
        "pairs grows nearly as large as the text itself.",
        columns=("text", "messages", "said", "in the file", "ratio"),
        rows=[
            (name, f"{count:,}", f"{said:,} B", f"{stored:,} B", times(ratios[name, count]))
            for (name, count), (said, stored) in sizes.items()
        ],
        meaning="The whole file after closing, with every index and the words for searching, which for Chinese are "
        "all pairs of characters. It contains no prompts and streams: no agent is asked here. The first Chinese text "
        "is the corpus's, which repeats some phrases; the second uses thousands of words, the common ones often.",
        plots=(
            Plot(
                name="disk",
                title="Disk space for each byte that was said",
                across="messages",
                up="bytes in the file for each byte said, lower is better",
                unit="ratio",
                series={name: [(count, ratios[name, count]) for count in lengths] for name in KINDS},
            ),
        ),
    )


async def _said(folder: Path, name: str, write: Write, count: int) -> tuple[int, int]:
    db = folder / f"{name}.db"
    texts = texts_for_lee(count, write)
    async with open_team(team_in(folder), db=db) as conversation:
        await conversation.read(lambda store, _: _without_waiting(store))
        for text in texts:
            await conversation.say(text, sender="kim")
    return sum(byte_length(text) for text in texts), db.stat().st_size


def _without_waiting(store: object) -> None:
    assert isinstance(store, SqliteStore)
    connection = store._database._connection
    assert connection is not None
    connection.execute("PRAGMA synchronous = OFF")
