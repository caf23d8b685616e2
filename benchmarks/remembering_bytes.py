"""Figure: what a turn sends to its model that the model's vendor cannot have in a cache, with and without own sessions.

The genuine CLIs talk to models on loopback, in a network without a way out. Each request is compared with the one that
the same member sent before: tools and system text, then the messages.
"""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from msgspec import Struct
from tests.agents.real_cli.install import binaries, is_installed
from tests.agents.real_cli.isolation import loopback_only

from benchmarks.agents_stage import own_folder
from benchmarks.conversation_stage import MARKER
from benchmarks.corpus import drafts
from benchmarks.plot import Plot
from benchmarks.report import Figure
from bullpen.app import open_team
from bullpen.conversation.member_agent import Extra
from bullpen.rehearsal import SETUPS
from bullpen.testing.models import ModelRequest, ModelServer, Reply

GOAL_SHARE = 0.1
TURNS, QUICK_TURNS = 90, 9
GOAL_TURNS = 30
MARKS = (2, 4, 8, 16, 30)
"""The turns of each agent that are in the picture, each with the mean since the one before it."""
BYTES_PER_TOKEN = 4
SPECS = {"claude": "claude-code", "codex": "openai-codex", "qwen": "qwen-code"}
MODELS = {"claude": "claude-sonnet-5", "codex": "gpt-5.5", "qwen": "qwen3-coder-plus"}
KINDS = ("own", "shared")
MEMBER = """
[[member]]
name = "{cli}"
agent = "{cli}"
model = "{model}"
memory = "{kind}"
window = 1000
"""


class Sent(Struct, frozen=True):
    """What one request has that the one before it did not begin with, in bytes."""

    by_message: int
    """As a cache of whole messages counts: what differs counts to the end of the request."""
    by_byte: int
    """As a cache of any beginning counts."""
    all: int


def measure(*, quick: bool) -> Figure:
    """Hold the same conversation twice, and compare what was sent in each turn after a member's first."""
    if not is_installed():
        raise SystemExit("The genuine CLIs are not installed: python tests/agents/real_cli/install.py")
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{binaries()}{os.pathsep}{path}"
    with loopback_only() as is_isolated, own_folder() as folder:
        if not is_isolated:
            raise SystemExit("There is no network without a way out here, so the genuine CLIs are not run.")
        turns = QUICK_TURNS if quick else TURNS
        sent = {kind: asyncio.run(_conversation(folder / kind, kind, turns)) for kind in KINDS}
    os.environ["PATH"] = path
    return _figure(sent, turns)


async def _conversation(folder: Path, kind: str, turns: int) -> dict[str, list[Sent]]:
    """Return what each member's requests had that was new, one for each of its turns after the first."""
    project = folder / "project"
    project.mkdir(parents=True)
    team = project / "team.toml"
    members = "".join(MEMBER.format(cli=cli, model=model, kind=kind) for cli, model in MODELS.items())
    team.write_text(f'name = "bytes"\n[[member]]\nname = "kim"\n{members}', encoding="utf-8")
    texts = _texts()
    requests: dict[str, list[ModelRequest]] = {cli: [] for cli in SPECS}
    async with AsyncExitStack() as stack:
        models = {cli: await stack.enter_async_context(ModelServer()) for cli in SPECS}
        extra = {cli: _extra(cli, models[cli], folder / "home" / cli) for cli in SPECS}
        conversation = await stack.enter_async_context(open_team(team, db=folder / "c.db", extra=extra))
        for number in range(turns):
            cli = list(SPECS)[number % len(SPECS)]
            models[cli].script(Reply(text=next(texts)))
            await conversation.say(f"[NEXT: {cli}] {next(texts)}")
            await conversation.until_quiet()
            if conversation.undecided:
                raise RuntimeError(conversation.undecided[0].failure)
            requests[cli].append(models[cli].requests[-1])
    return {cli: [_sent(*pair) for pair in pairwise(found)] for cli, found in requests.items()}


def _texts() -> Iterator[str]:
    """Yield the same texts every time."""
    for draft in drafts(1_000):
        yield draft.content.partition(MARKER)[0]


def _extra(cli: str, models: ModelServer, home: Path) -> Extra:
    settings = SETUPS[SPECS[cli]].settings(models.base_url, home)
    arguments = [argument for argument in settings.arguments if argument not in ("-m", "gpt-5.5")]
    return Extra(env=settings.env, arguments=tuple(arguments))


def _sent(before: ModelRequest, now: ModelRequest) -> Sent:
    old, new = _parts(before), _parts(now)
    same = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(old))
    earlier, later = "".join(old).encode(), "".join(new).encode()
    return Sent(
        sum(len(part.encode()) for part in new[same:]),
        len(later) - _same_bytes(earlier, later),
        len(later),
    )


def _same_bytes(one: bytes, other: bytes) -> int:
    """Return how many bytes two begin with that are the same."""
    same, most = 0, min(len(one), len(other))
    while same < most:
        middle = (same + most + 1) // 2
        same, most = (middle, most) if one[same:middle] == other[same:middle] else (same, middle - 1)
    return same


def _parts(request: ModelRequest) -> list[str]:
    """Return a request in the order in which a model reads it: tools, system text, messages."""
    body = request.body
    fixed = [json.dumps(body.get(key), ensure_ascii=False) for key in ("tools", "system", "instructions")]
    return [*fixed, *(_plain(message) for message in body.get("input") or body["messages"])]


def _plain(message: Mapping[str, Any]) -> str:
    """Return what a model reads of a message, without ids and marks of where a cache ends.

    claude writes one text as a text or as a block.
    """
    read = {key: message[key] for key in message if key != "id" and "metadata" not in key}
    content = read.get("content")
    if isinstance(content, list):
        blocks = [{key: block[key] for key in block if key != "cache_control"} for block in content]
        texts = [block["text"] for block in blocks if list(block) == ["type", "text"]]
        content = texts[0] if len(texts) == len(blocks) == 1 else blocks
    return json.dumps({**read, "content": content}, ensure_ascii=False)


def _figure(sent: Mapping[str, Mapping[str, list[Sent]]], turns: int) -> Figure:
    few = min(GOAL_TURNS, turns)
    share = _share(sent, few, "by_message")
    return Figure(
        title="What a turn sends anew, with agents that remember",
        goal=f"over {GOAL_TURNS} turns of three agents at most {GOAL_SHARE:.0%} of what they send anew without own "
        f"sessions, knowing the same",
        met=share <= GOAL_SHARE,
        measured=f"{share:.1%} after {few} turns, {_share(sent, turns, 'by_message'):.1%} after {turns}; with a cache "
        f"of any beginning {_share(sent, few, 'by_byte'):.0%} and {_share(sent, turns, 'by_byte'):.0%}",
        columns=(
            *("agent", "own, whole messages", "shared, whole messages", "own ÷ shared"),
            *("own, bytes", "shared, bytes", "own ÷ shared"),
        ),
        rows=[row for count in dict.fromkeys((few, turns)) for row in _rows(sent, count)],
        meaning="Bytes in a turn that the agent's request before it did not begin with, and tokens of 4 bytes; each "
        "agent's first turn is left out. Requests are read as a model reads them: tools, system text, messages. A "
        "cache of whole messages, as Anthropic's, counts in whole messages: a window of the conversation is one "
        "message, new in every turn. A cache of any beginning, as OpenAI's, counts in bytes: a window that drops "
        "nothing begins as the one before it did, up to what follows the history. qwen sends its last message again "
        "without the date that it had added, so there its own session can send more than such a window. `shared` has "
        "a window that holds the whole conversation; one that drops its oldest messages begins differently in every "
        "turn, which is not measured here. No vendor's cache was observed.",
        reason=f"in {GOAL_TURNS} turns each of three agents has 10, and is sent 6 messages in each: 6 of 12, 6 of 18, "
        f"and at last 6 of 60. That is a sixth of all windows together, even if nothing else is sent. What an own "
        f"session sends stays the same, and a window grows, so the share shrinks with every turn.",
        plots=(_plot(sent),),
    )


def _rows(sent: Mapping[str, Mapping[str, list[Sent]]], turns: int) -> Iterator[tuple[str, ...]]:
    for cli in SPECS:
        only = {kind: {cli: sent[kind][cli]} for kind in KINDS}
        yield (f"{cli}, {turns} turns", *_cells(only, turns))
    yield (f"together, {turns} turns", *_cells(sent, turns))


def _cells(sent: Mapping[str, Mapping[str, list[Sent]]], turns: int) -> Iterator[str]:
    for unit in ("by_message", "by_byte"):
        for kind in KINDS:
            count = mean(_counts(sent, kind, turns, unit))
            yield f"{count:,.0f} ({count / BYTES_PER_TOKEN:,.0f} tokens)"
        yield f"{_share(sent, turns, unit):.1%}"


def _share(sent: Mapping[str, Mapping[str, list[Sent]]], turns: int, unit: str) -> float:
    return sum(_counts(sent, "own", turns, unit)) / sum(_counts(sent, "shared", turns, unit))


def _counts(sent: Mapping[str, Mapping[str, list[Sent]]], kind: str, turns: int, unit: str) -> list[int]:
    each = turns // len(SPECS) - 1
    return [getattr(one, unit) for found in sent[kind].values() for one in found[:each]]


def _plot(sent: Mapping[str, Mapping[str, list[Sent]]]) -> Plot:
    def line(kind: str, unit: str) -> list[tuple[float, float]]:
        return [
            (last, mean(getattr(one, unit) for one in ones))
            for first, last in pairwise((1, *MARKS))
            if (ones := [one for found in sent[kind].values() for one in found[first - 1 : last - 1]])
        ]

    return Plot(
        name="remembering",
        title="What a turn sends that its model's vendor cannot have cached",
        across="turns of each agent; three agents take turns",
        up="bytes in a turn, lower is better",
        unit="bytes",
        series={
            "shared: a window": line("shared", "by_message"),
            "shared, any beginning cached": line("shared", "by_byte"),
            "own session": line("own", "by_message"),
            "own, any beginning cached": line("own", "by_byte"),
        },
    )
