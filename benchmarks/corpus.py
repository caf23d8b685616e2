"""A conversation to measure with: the same one every time, similar to what a team of agents and a person write."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import cycle, islice
from random import Random
from typing import TypeVar

from bullpen.messages import ConversationMessage, MessageDraft, Routing, Speaker

SEED = 20240229
MEDIAN_BYTES = 660
SPREAD = 1.0
"""The sigma of the log-normal distribution: one message in six is over 2.7 times the median."""
SMALLEST, LARGEST = 24, 48 * 1024
POOL_CHARACTERS = 256 * 1024
SHARE_WITH_MARKER = 0.8
FIRST_TIMESTAMP = 1_700_000_000_000

HUMAN = Speaker(role_id="human", role_name="Kai", type="human")
AGENTS = (
    Speaker(role_id="max", role_name="Max", type="ai", role_title="Architect"),
    Speaker(role_id="sarah", role_name="Sarah", type="ai", role_title="Reviewer"),
    Speaker(role_id="carol", role_name="Carol", type="ai", role_title="Tester"),
)
SPEAKERS = (HUMAN, *AGENTS)

WORDS = """the a of to in it we is that this with for not when but so then test function return value error message
history prompt budget agent parser module change think should could because after before every line bytes snapshot
import looks good please check again failing fixed branch merge review slow fast memory cache window context team
task release user reads writes keeps drops oldest newest first last one two three more less than also only"""
CODE = """def newest_that_fit(lines: list[str], room: int) -> list[str]:
    for line in reversed(lines):
        if used + len(line) > room: break
    return {name: sizes[name] for name in names}
assert window[-1].content == "hello"
const total = items.reduce((sum, item) => sum + item.size, 0);
    raise ValueError(f"max_bytes must not be negative, got {max_bytes}")
import re
class Budget:
    self.left -= size  # paid for

if (rows[i] !== undefined && rows[i].id === id) { return i; }
$ git diff --stat HEAD~1 | tail -3"""
CHINESE = """我认为这个方案可行 请先检查测试结果 上下文窗口需要更小 这里有一个错误 我们应该先合并分支 消息太长了
预算不够 所以最旧的消息会被丢弃 请审查这段代码 已经修复 性能提高了三倍 内存占用下降 明天再讨论 谢谢"""
EMOJI = ("👍", "🎉", "🚀", "😅", "🤔", "✅", "👩‍💻")

Write = Callable[[Random, int], str]
Item = TypeVar("Item")


def drafts(count: int, write: Write | None = None) -> Iterator[MessageDraft]:
    """Yield the messages of a conversation, each one new in memory; `write` returns a text of a given size."""
    random = Random(SEED)
    write = write or mixed
    for number in range(count):
        speaker = HUMAN if number % 8 == 0 else random.choice(AGENTS)
        content = write(random, _size(random))
        addressee = random.choice(SPEAKERS).role_name if random.random() < SHARE_WITH_MARKER else None
        yield MessageDraft(
            content=f"{content}\n\n[NEXT: {addressee}]" if addressee else content,
            speaker=speaker,
            routing=_routing(addressee, number),
            timestamp=FIRST_TIMESTAMP + number * 1000,
        )


def recurring(messages: Sequence[Item], count: int) -> Iterator[Item]:
    """Yield messages by repeating some, to save memory; the last ones are the same for every count."""
    start = -count % len(messages)
    return islice(cycle(messages), start, start + count)


def recorded(draft: MessageDraft, number: int) -> ConversationMessage:
    """Return a message as a plain struct with an id, the way a program without bullpen would keep it."""
    return ConversationMessage(
        id=f"msg-{number}",
        content=draft.content,
        speaker=draft.speaker,
        timestamp=draft.timestamp or 0,
        routing=draft.routing,
    )


def mixed(random: Random, size: int) -> str:
    """Return English prose, code, Chinese, or English with a few emoji."""
    (kind,) = random.choices((prose, code, chinese, prose_with_emoji), weights=(45, 25, 15, 15))
    return kind(random, size)


def prose(random: Random, size: int) -> str:
    """Return English sentences."""
    return _cutting(random, _prose_pool(), size)


def code(random: Random, size: int) -> str:
    """Return a sentence and a fenced block of code."""
    block = _cutting(random, _code_pool(), size)
    return f"This is what I would change in `budget.py`:\n\n```python\n{block}\n```"


def chinese(random: Random, size: int) -> str:
    """Return Chinese sentences, three bytes to a character."""
    return _cutting(random, _chinese_pool(), size // 3)


def prose_with_emoji(random: Random, size: int) -> str:
    """Return English sentences with one to three emoji in them."""
    text = prose(random, size)
    for _ in range(random.randint(1, 3)):
        text = _with_emoji(random, text)
    return text


def one_emoji_each(random: Random, size: int) -> str:
    """Return English sentences with exactly one emoji, so that a Python string needs four bytes per character."""
    return _with_emoji(random, prose(random, size))


def _size(random: Random) -> int:
    return min(max(int(random.lognormvariate(0, SPREAD) * MEDIAN_BYTES), SMALLEST), LARGEST)


def _routing(addressee: str | None, number: int) -> Routing:
    names = (addressee,) if addressee else ()
    parent = f"msg-{number}" if number else None
    return Routing(resolved_addressees=names, raw_next_markers=names, parent_message_id=parent)


def _cutting(random: Random, pool: str, characters: int) -> str:
    start = random.randrange(len(pool) - LARGEST)
    return pool[start : start + characters]


def _with_emoji(random: Random, text: str) -> str:
    place = random.randrange(len(text))
    return f"{text[:place]} {random.choice(EMOJI)} {text[place:]}"


@cache
def _prose_pool() -> str:
    return _pool(WORDS.split(), " ", ".\n")


@cache
def _code_pool() -> str:
    return _pool(CODE.splitlines(), "\n", "\n\n")


@cache
def _chinese_pool() -> str:
    return _pool(CHINESE.split(), "，", "。\n")


def _pool(parts: list[str], between: str, after: str) -> str:
    random = Random(SEED)
    pieces: list[str] = []
    characters = 0
    while characters < POOL_CHARACTERS:
        piece = between.join(random.choices(parts, k=random.randint(4, 16))) + after
        pieces.append(piece)
        characters += len(piece)
    return "".join(pieces)
