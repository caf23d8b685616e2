"""Long streams made from the recordings: the same records repeated, with texts of the sizes that CLIs write."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from benchmarks.corpus import SEED, code, mixed, prose

RECORDINGS = Path(__file__).parents[1] / "tests" / "recordings"
ANSWER_CHARACTERS = 1_000
LONGEST_ANSWER_CHARACTERS = 256 * 1024
"""About 64,000 tokens: the most that Claude Code asks for at once."""
TOOL_OUTPUT_CHARACTERS = 3_000
CLAUDE_PIECE_CHARACTERS = 24
GEMINI_PIECE_CHARACTERS = 200

Record = dict[str, Any]


def streams(size: int) -> dict[str, tuple[str, bytes]]:
    """Return turns of about this size by their content, each with the CLI that writes it."""
    return {
        "claude, text in pieces": ("claude", _turn(_claude(ANSWER_CHARACTERS), size)),
        "claude, 256 KiB in pieces": ("claude", _turn(_claude(LONGEST_ANSWER_CHARACTERS), size)),
        "claude, with tools": ("claude", _turn(_claude(ANSWER_CHARACTERS, tools=True), size)),
        "codex, whole items": ("codex", _turn(_codex(), size)),
        "gemini, text in pieces": ("gemini", _turn(_gemini(), size)),
        "gemini, with tools": ("gemini", _turn(_gemini(tools=True), size)),
    }


def _turn(records: Iterator[Record], size: int) -> bytes:
    """Return an endless turn cut to about this size; the last line is whole."""
    lines: list[bytes] = []
    for record in records:
        lines.append(msgspec.json.encode(record) + b"\n")
        size -= len(lines[-1])
        if size <= 0:
            break
    return b"".join(lines)


def _claude(characters: int, *, tools: bool = False) -> Iterator[Record]:
    first, requesting, message_start, *_, message_delta, message_stop, _ = _records("claude/partial")
    yield first
    random = Random(SEED)
    for number in count():
        message_id = f"msg_{number}"
        yield requesting
        yield _with(message_start, message_id, "event", "message", "id")
        yield from _claude_text(message_id, _text(random, characters))
        if tools:
            yield from _claude_tool(message_id, code(random, TOOL_OUTPUT_CHARACTERS))
        yield message_delta
        yield message_stop


def _claude_text(message_id: str, text: str) -> Iterator[Record]:
    block_start, delta, _, _, whole, block_stop = _records("claude/partial")[10:16]
    yield block_start
    for piece in _pieces(text, CLAUDE_PIECE_CHARACTERS):
        yield _with(delta, piece, "event", "delta", "text")
    whole = _with(whole, message_id, "message", "id")
    yield _with(whole, text, "message", "content", 0, "text")
    yield block_stop


def _claude_tool(message_id: str, output: str) -> Iterator[Record]:
    delta = _records("claude/partial")[11]
    call, returned = _records("claude/tool_allowed")[1:3]
    for piece in _pieces('{"command": "sed -n 1,80p src/bullpen/context/budget.py"}', CLAUDE_PIECE_CHARACTERS):
        yield _with(delta, {"type": "input_json_delta", "partial_json": piece}, "event", "delta")
    yield _with(call, message_id, "message", "id")
    returned = _with(returned, output, "tool_use_result", "stdout")
    yield _with(returned, output, "message", "content", 0, "content")


def _codex() -> Iterator[Record]:
    first, second, call, returned, *_ = _records("codex/tool_workspace")
    thought, spoken = _records("codex/thinking")[2:4]
    yield first
    yield second
    random = Random(SEED)
    while True:
        yield _with(thought, prose(random, 200), "item", "text")
        yield call
        yield _with(returned, code(random, TOOL_OUTPUT_CHARACTERS), "item", "aggregated_output")
        yield _with(spoken, _text(random, ANSWER_CHARACTERS), "item", "text")


def _gemini(*, tools: bool = False) -> Iterator[Record]:
    first, _, call, returned, delta, *_ = _records("gemini/tool_yolo")
    yield first
    random = Random(SEED)
    while True:
        for piece in _pieces(_text(random, ANSWER_CHARACTERS), GEMINI_PIECE_CHARACTERS):
            yield _with(delta, piece, "content")
        if tools:
            yield call
            yield _with(returned, code(random, TOOL_OUTPUT_CHARACTERS), "output")


def _records(name: str) -> list[Record]:
    return [msgspec.json.decode(line) for line in (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines()]


def _with(record: Record, value: object, *place: str | int) -> Record:
    """Return the record with one value replaced."""
    changed = deepcopy(record)
    *path, last = place
    within: Any = changed
    for key in path:
        within = within[key]
    within[last] = value
    return changed


def _text(random: Random, characters: int) -> str:
    text = ""
    while len(text) < characters:
        text += mixed(random, 1000)
    return text[:characters]


def _pieces(text: str, characters: int) -> Iterator[str]:
    return (text[start : start + characters] for start in range(0, len(text), characters))
