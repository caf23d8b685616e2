"""What must hold after everything that was done to the processes of a field. Each problem begins with what broke."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from proofs.torture.cluster import witness
from proofs.torture.cluster.field import Field

from bullpen.errors import UnknownConversation

ENDED = {"done", "interrupted", "failed", "cancelled"}


def problems_in(field: Field) -> Iterator[str]:
    """Yield every broken promise."""
    url, runs = field.server.url(), Runs(field)
    yield from (f"run twice: {word}, {times} times" for word, times in runs.starts.items() if times > 1)
    yield from witness.late_writes(url)
    yield from witness.wrongs(url)
    ends = Counter((conversation, turn) for conversation, turn, _ in witness.ends(url))
    yield from (f"doubled: {count} ends of turn {turn} in {one}" for (one, turn), count in ends.items() if count > 1)
    acknowledged = [line.split() for line in field.notes.read_text().splitlines(keepends=True) if line.endswith("\n")]
    for one in field.ids:
        yield from _in_conversation(field, one, runs, {said for where, said in acknowledged if where == one})
    yield from _replies(field)
    yield from (f"chain: {finding.conversation_id}: {finding.text}" for finding in field.store.fsck())


def _in_conversation(field: Field, one: str, runs: "Runs", acknowledged: set[str]) -> Iterator[str]:
    try:
        said = [stored.message for stored in field.store.messages(one)]
    except UnknownConversation:
        yield f"lost: the conversation {one}"
        return
    ids = Counter(message.id for message in said)
    yield from (f"doubled: {message_id} in {one}" for message_id, times in ids.items() if times > 1)
    yield from (f"lost: {message_id} was acknowledged in {one}" for message_id in sorted(acknowledged - set(ids)))
    numbers = [int(message.id.removeprefix("kim-")) for message in said if message.speaker.role_id == "kim"]
    if numbers != list(range(len(numbers))):
        yield f"out of order: what kim said in {one} is {numbers}"
    answered = [message.content.removeprefix("done with ") for message in said if message.speaker.role_id == "max"]
    yield from (f"doubled: the reply to {word} in {one}" for word, times in Counter(answered).items() if times > 1)
    if answered != sorted(answered, key=int):
        yield f"out of order: what max said in {one} is {answered}"
    words = [f"word-{number}-of-{one}-end" for number in answered]
    yield from (f"lost: the agent never started for {word}" for word in words if word not in runs.starts)
    yield from runs.overlapping(words)
    turns = field.store.turns(one)
    yield from (f"stuck: turn {turn.id} of {one} is {turn.state}" for turn in turns[:-1] if turn.state not in ENDED)
    yield from (f"lost: turn {turn.id} of {one} failed: {turn.failure}" for turn in turns if turn.state == "failed")
    # Nobody cancels anything here, and an order is only removed when the end of its turn is stored.
    yield from (f"lost: turn {turn.id} of {one} was cancelled by nobody" for turn in turns if turn.state == "cancelled")
    gone = [turn.id for turn in turns if turn.failure is not None and "order is gone" in turn.failure.message]
    yield from (f"lost: the order of turn {turn_id} of {one}" for turn_id in gone)


def _replies(field: Field) -> Iterator[str]:
    """Yield the replies that a worker has handed in, and that nobody has stored."""
    for conversation, turn_id, kind in witness.ends(field.server.url()):
        state = field.store.turn(conversation, turn_id).state
        if kind == "ended" and state not in ("done", "running"):
            yield f"lost: the reply of turn {turn_id} of {conversation}, which is {state}"


class Runs:
    """What the agents themselves have noted of their runs."""

    def __init__(self, field: Field) -> None:
        lines = [line.split() for line in field.starts.read_text().splitlines()]
        self.starts = Counter(word for what, word, _ in lines if what == "start")
        self._began = {word: float(at) for what, word, at in lines if what == "start"}
        self._ended = {word: float(at) for what, word, at in lines if what == "end"}

    def overlapping(self, words: list[str]) -> Iterator[str]:
        """Yield runs of one conversation that were answered, and the next of which began before they had ended."""
        for word, following in pairwise(words):
            if word in self._ended and following in self._began and self._began[following] < self._ended[word]:
                yield f"overlapping: {word} and {following}"
