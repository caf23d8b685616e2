"""Nodes and workers are killed and frozen at random moments: nothing acknowledged is lost, and nothing runs twice."""

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.cluster.processes import Processes, Started
from tests.cluster.stage import POOL, WORKER

from bullpen.store.base import Store
from bullpen.store.postgres.store import PostgresStore
from bullpen.team.file import load_team

TALKING = "tests.cluster.talking_process"
KILLS = int(os.environ.get("BULLPEN_TEST_CLUSTER_KILLS", "12"))
CONVERSATIONS = 4
AGENT = """
import random, re, sys, time
prompt = sys.stdin.read()
word = re.findall(r"word-\\d+-of-[a-z0-9-]+-end", prompt)[-1]
with open(sys.argv[1], "a") as file:
    file.write(word + "\\n")
time.sleep(random.uniform(0.02, 0.4))
# Without the word: the next turn is told what this one had begun to say.
print("done with " + word.split("-")[1])
"""


class Field:
    """Two nodes and two workers, and their conversations."""

    def __init__(self, folder: Path, url: str, processes: Processes) -> None:
        self.url = url
        self.starts, self.notes = folder / "starts", folder / "notes"
        self.starts.touch()
        self.notes.touch()
        agent = folder / "agent.py"
        agent.write_text(AGENT)
        command = f'["{sys.executable}", "{agent}", "{self.starts}"]'
        self.worker_file = folder / "worker.toml"
        self.worker_file.write_text(f'commands = [{command}]\n[folders]\nproject = "{folder}"\n')
        self.team = folder / "team.toml"
        self.team.write_text(
            f'name = "kills"\nhand_over_note = false\n[limits]\nidentical_replies = 100000\nback_and_forth = 100000\n'
            f'[[member]]\nname = "kim"\n[[member]]\nname = "max"\npool = "{POOL}"\nwindow = 0\ncommand = {command}\n'
        )
        self.ids: list[str] = []
        self._processes = processes

    def node(self) -> Started:
        started = self._processes.start(TALKING, self.url, str(self.team), str(self.notes), *self.ids)
        started.line()
        return started

    def worker(self) -> Started:
        return self._processes.start(WORKER, self.url, POOL, str(self.worker_file))

    def create(self, store: Store) -> None:
        self.ids = [f"calm-oak-{number:06}" for number in range(CONVERSATIONS)]
        loaded = load_team(self.team)
        for one in self.ids:
            store.create(one, team="kills", team_file=loaded.text, team_path=str(loaded.path), started_at=0)

    def wait_for_more(self, store: Store, more: int) -> None:
        """Wait until so many more messages are stored."""
        wanted = self._messages(store) + more
        deadline = time.monotonic() + 90
        while self._messages(store) < wanted:
            assert time.monotonic() < deadline, "the conversations are stuck"
            time.sleep(0.05)

    def _messages(self, store: Store) -> int:
        return sum(store.conversation(one).messages for one in self.ids)


@pytest.mark.timeout(600)
def test_nodes_and_workers_die_and_freeze_and_nothing_is_lost_or_done_twice(
    tmp_path: Path, url: str, processes: Processes
) -> None:
    field = Field(tmp_path, url, processes)
    with PostgresStore(url) as store:
        field.create(store)
        nodes, workers = [field.node(), field.node()], [field.worker(), field.worker()]
        frozen: list[Started] = []
        for _ in range(KILLS):
            field.wait_for_more(store, 3)
            kind, start = random.choice([(nodes, field.node), (workers, field.worker)])
            victim = kind.pop(random.randrange(len(kind)))
            if random.random() < 0.3:
                victim.freeze()
                frozen.append(victim)
            else:
                victim.kill()
            kind.append(start())
            if frozen and random.random() < 0.5:
                frozen.pop(0).wake()
        for one in frozen:
            one.wake()
        field.wait_for_more(store, 3 * CONVERSATIONS)
        processes.end()

        check(store, field)


def check(store: Store, field: Field) -> None:
    starts = Counter(field.starts.read_text().split())
    assert [word for word, times in starts.items() if times > 1] == []
    acknowledged = [line.split() for line in field.notes.read_text().splitlines(keepends=True) if line.endswith("\n")]
    for one in field.ids:
        said = [stored.message for stored in store.messages(one)]
        ids = [message.id for message in said]
        assert len(ids) == len(set(ids))
        assert {message_id for conversation, message_id in acknowledged if conversation == one} <= set(ids)
        numbers = [int(message.id.removeprefix("kim-")) for message in said if message.speaker.role_id == "kim"]
        assert numbers == list(range(len(numbers)))
        answered = [message.content.removeprefix("done with ") for message in said if message.speaker.role_id == "max"]
        assert len(answered) == len(set(answered))
        assert answered == sorted(answered, key=int)
        # Each reply is of a turn whose agent was started, and every turn but the last has ended.
        assert all(f"word-{number}-of-{one}-end" in starts for number in answered)
        turns = store.turns(one)
        assert {turn.state for turn in turns[:-1]} <= {"done", "interrupted", "failed", "cancelled"}
        assert not [turn.failure for turn in turns if turn.state == "failed"]
    assert store.fsck() == []
