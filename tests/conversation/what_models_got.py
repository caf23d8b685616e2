"""Whether what each model got is what was said: found out from the logs of the scripted agents, not from bullpen.

Every message of the conversation begins with a word that no other has, so that it can be counted in what a model got.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bullpen.store.base import Store, StoredMessage, Turn

NOT_SHOWN = re.compile(r"\(([\d,]+) earlier messages? (?:is|are) not shown")
MOST = 100_000


def what_was_asked(homes: Path) -> list[dict[str, Any]]:
    """Return every request to every model: its session, and its messages."""
    logs = sorted(homes.rglob("*.asked"))
    return [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()]


def problems(store: Store, conversation_id: str, asked: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what a model missed or got twice in a turn that ended well."""
    messages = store.messages(conversation_id, limit=MOST)
    turns = store.turns(conversation_id)
    by_prompt: dict[str, list[dict[str, Any]]] = {}
    for request in asked:
        by_prompt.setdefault(request["messages"][-1]["text"], []).append(request)
    for turn in turns:
        record = store.record(conversation_id, turn.id) if turn.state == "done" else None
        if record is None or record.report.session is None:
            continue
        requests = by_prompt.get(record.prompt, [])
        if not requests:
            yield f"turn {turn.id} of {turn.member}: its model never got the prompt that is stored"
        current = _answered(turn, turns, messages)
        for request in requests:
            for problem in _in_request(request, current, messages):
                yield f"turn {turn.id} of {turn.member} ({record.report.session.origin}): {problem}"


def _in_request(request: Mapping[str, Any], current: int, messages: list[StoredMessage]) -> Iterator[str]:
    """Yield what is missing, and what was sent although it had been; the answered one may have been context before."""
    texts = [message["text"] for message in request["messages"]]
    before, sent = "\n".join(texts[:-1]), texts[-1]
    unseen = max((int(count.replace(",", "")) for text in texts for count in NOT_SHOWN.findall(text)), default=0)
    missing = []
    for stored in messages:
        word, is_current = stored.message.content.split()[0], stored.sequence == current
        known, count = _count(word, before), _count(word, sent)
        if count > 1:
            yield f"message {stored.sequence} ({word}) is in one prompt {count} times"
        if known and count and not is_current:
            yield f"message {stored.sequence} ({word}) was sent again"
        if is_current and count == 0:
            yield f"message {current} ({word}), which it answers, was not sent"
        if stored.sequence < current and not known and not count:
            missing.append(stored.sequence)
    if len(missing) > unseen:
        yield f"messages {missing} are missing before {current}, and the prompts say {unseen}"


def _count(word: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w:]){re.escape(word)}(?![\w:])", text))


def _answered(turn: Turn, turns: list[Turn], messages: list[StoredMessage]) -> int:
    """Return the number of the message that a turn answers: in a relay, the last reply of the steps before."""
    numbers = {stored.message.id: stored.sequence for stored in messages}
    own = numbers[turn.reply_id or ""]
    replies = [
        numbers[other.reply_id]
        for other in turns
        if other.message_id == turn.message_id and other.step < turn.step and other.reply_id is not None
    ]
    return max((reply for reply in replies if reply < own), default=numbers[turn.message_id])
