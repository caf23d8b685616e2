"""The model of the database in proofs/simulation does what PostgreSQL does, whatever is done to both."""

import random
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest
from proofs.simulation.conversations import ConversationsModel
from proofs.simulation.model import ClusterModel, Key, Kind
from proofs.torture.planting import one_line

from bullpen.context.prompt import AssemblerOutput
from bullpen.context.report import PromptReport
from bullpen.errors import BullpenError
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Owner, PoolOrder, TurnEnd
from bullpen.store.postgres.store import PostgresStore

SPEAKER = Speaker(role_id="kim", role_name="kim", type="human")
GIVEN = AssemblerOutput(prompt="", report=PromptReport(agent_type="", max_bytes=1, section_bytes={}))
IDS = ("c0", "c1")
POOLS = ("al", "bo")
LONG, LATE = 3600.0, 60.0
STEPS = 400
OWNERS = tuple(Owner(token=f"t{number}", pid=number, start_time=0, boot_id="") for number in range(3))


OWNERS_OF = "SELECT conversation, turn, owner FROM orders"


class Real:
    """What is compared, in PostgreSQL."""

    def __init__(self, url: str, store: PostgresStore) -> None:
        self._store = store
        self._db = psycopg.connect(url, autocommit=True, options="-c search_path=bullpen_cluster")

    def close(self) -> None:
        self._db.close()

    def ask(self, query: str, *given: object) -> list[Any]:
        cursor = self._db.execute(query.encode(), given)
        return [] if cursor.description is None else cursor.fetchall()

    def join_cluster(self, kind: Kind, pools: tuple[str, ...]) -> int:
        return int(self.ask("SELECT join_cluster(%s, 'n', '', %s::text[], '')", kind, list(pools))[0][0])

    def beat(self, process: int) -> list[Key] | None:
        rows = self.ask("SELECT conversation, turn FROM beat(%s)", process)
        return sorted((conversation, turn) for conversation, turn in rows if turn is not None) if rows else None

    def be_silent(self, process: int, seconds: float) -> None:
        silent = "UPDATE processes SET beat_at = beat_at - make_interval(secs => %s) WHERE id = %s"
        self.ask(silent, seconds, process)

    def reap(self, stale: float, gone: float) -> list[int]:
        query = "SELECT reap(0, make_interval(secs => %s), make_interval(secs => %s), interval '0')"
        return [row[0] for row in self.ask(query, stale, gone)]

    def give_up(self, process: int) -> None:
        self.ask("SELECT leave_cluster(%s)", process)

    def deliver_again(self, key: Key) -> None:
        again = "UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL"
        which = "id = (SELECT job FROM orders WHERE conversation = %s AND turn = %s)"
        self.ask(f"{again} WHERE status = 'doing' AND NOT abort_requested AND {which}", *key)

    def next_order(self, worker: int, attempt: int) -> Key | None:
        rows = self.ask("SELECT conversation, turn FROM next_order(%s, %s, false)", worker, attempt)
        return (rows[0][0], rows[0][1]) if rows else None

    def end_order(self, worker: int, key: Key, how: str) -> bool:
        return bool(self.ask("SELECT end_order(%s, %s, %s, %s, '')", worker, *key, how)[0][0])

    def cancel_order(self, node: int, key: Key) -> bool:
        return bool(self.ask("SELECT cancel_order(%s, %s, %s)", node, *key)[0][0])

    def settle_order(self, node: int, key: Key) -> None:
        self.ask("SELECT settle_order(%s, %s, %s)", node, *key)

    def adopt_order(self, key: Key, node: int) -> bool:
        rows = self.ask("SELECT lives FROM adopt_order(%s, %s, %s)", node, *key)
        return bool(rows) and bool(rows[0][0])

    def claim(self, conversation: str, owner: Owner) -> bool:
        return self._store.claim(conversation, owner, is_alive=lambda _: False)

    def release(self, conversation: str, owner: Owner) -> None:
        self._store.release(conversation, owner)

    def append(
        self, conversation: str, message: str, owner: Owner, turns: tuple[WaitingTurn, ...], finishes: str | None
    ) -> bool:
        said = ConversationMessage(id=message, content=message, speaker=SPEAKER, timestamp=1)
        end = None if finishes is None else TurnEnd(turn_id=finishes, state="done", at=1)
        return self._store.append(conversation, said, owner=owner, turns=turns, finishes=end).already_stored

    def start_turn(self, conversation: str, turn: str, owner: Owner, pool: str, node: int) -> None:
        order = PoolOrder(pool=pool, work=b"", token="t", node=node)
        self._store.start_turn(conversation, turn, owner=owner, given=GIVEN, at=1, order=order)

    def end_turn(self, conversation: str, turn: str, owner: Owner) -> None:
        self._store.end_turn(conversation, TurnEnd(turn_id=turn, state="interrupted", at=1), owner=owner)

    def adopt(self, conversation: str, turns: tuple[str, ...], owner: Owner) -> None:
        self._store.adopt(conversation, turns, owner=owner)

    def recover(self, conversation: str, owner: Owner) -> list[str]:
        return [turn.id for turn in self._store.recover(conversation, at=1, owner=owner)]

    def state(self) -> dict[str, Any]:
        """Return all that is compared after each step."""
        runs = self.ask("SELECT conversation, turn, worker FROM runs")
        outcomes = self.ask("SELECT conversation, turn, kind FROM outcomes")
        processes = self.ask("SELECT id, ended_at IS NOT NULL FROM processes ORDER BY id")
        rows: dict[str, Any] = {}
        for one in IDS:
            stored = self._store.conversation(one)
            turns = {turn.id: turn.state for turn in self._store.turns(one)}
            messages = [message.message.id for message in self._store.messages(one)]
            rows[one] = stored.owner.token if stored.owner else None, messages, turns
        return {
            "orders": sorted(self.ask("SELECT conversation, turn FROM orders")),
            "owners": {(one, turn): [owner] for one, turn, owner in self.ask(OWNERS_OF)},
            "runs": sorted(runs),
            "outcomes": sorted(outcomes),
            "given up": [one for one, is_ended in processes if is_ended],
            "living": [one for one, is_ended in processes if not is_ended],
            **rows,
        }


class Model:
    """The same in the model."""

    def __init__(self) -> None:
        self._time = 0.0
        self._cluster = ClusterModel(self._now)
        self._conversations = ConversationsModel()
        for one in IDS:
            self._conversations.create(one)

    def _now(self) -> float:
        self._time += 0.001
        return self._time

    def join_cluster(self, kind: Kind, pools: tuple[str, ...]) -> int:
        joined = self._cluster.join_cluster(kind, pools)
        # Nobody holds the lock of a process that has no bell.
        self._cluster.processes[joined].holds_lock = False
        return joined

    def claim(self, conversation: str, owner: Owner) -> bool:
        return self._conversations.become_owner(conversation, owner, self._conversations.rows[conversation].owner)

    def start_turn(self, conversation: str, turn: str, owner: Owner, pool: str, node: int) -> None:
        self._conversations.start_turn(conversation, turn, owner)
        self._cluster.place_order((conversation, turn), pool, node)

    def end_turn(self, conversation: str, turn: str, owner: Owner) -> None:
        self._conversations.end_turn(conversation, turn, "interrupted", owner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name, None) or getattr(self._conversations, name)

    def state(self) -> dict[str, Any]:
        cluster = self._cluster
        rows: dict[str, Any] = {}
        for one, row in self._conversations.rows.items():
            turns = {turn.waiting.id: turn.state for turn in row.turns.values()}
            rows[one] = row.owner.token if row.owner else None, row.messages, turns
        return {
            "orders": sorted(cluster.orders),
            "owners": {key: [order.owner] for key, order in cluster.orders.items()},
            "runs": sorted((*key, worker) for key, (worker, _) in cluster.runs.items()),
            "outcomes": sorted((*key, kind) for key, kind in cluster.outcomes.items()),
            "given up": [one for one, process in cluster.processes.items() if process.is_ended],
            "living": [one for one, process in cluster.processes.items() if not process.is_ended],
            **rows,
        }


Done = tuple[str, tuple[Any, ...]]
"""The name of a method, and what it is given."""


class Doing:
    """Chooses what is done next: mostly something that can be done."""

    def __init__(self, seed: int, model: Model) -> None:
        self._model = model
        self._chance = random.Random(seed)
        self._attempts = 0
        self._messages = 0
        self._turns = 0

    def next(self) -> Done:
        """Return what is done next."""
        choices: dict[Callable[[], Done], int] = {
            self._join: 1,
            lambda: ("beat", (self._worker(),)): 4,
            lambda: ("be_silent", (self._worker(), LONG)): 1,
            lambda: ("reap", (LATE, LATE)): 1,
            lambda: ("give_up", (self._worker(),)): 1,
            lambda: ("deliver_again", (self._key(),)): 3,
            self._next_order: 12,
            self._end_order: 6,
            lambda: ("cancel_order", self._order()): 10,
            lambda: ("settle_order", self._order()): 3,
            lambda: ("adopt_order", (self._key(), self._worker())): 2,
            lambda: ("claim", (self._chance.choice(IDS), self._chance.choice(OWNERS))): 3,
            lambda: ("release", self._conversation()): 1,
            self._append: 12,
            self._start_turn: 12,
            self._end_turn: 3,
            self._adopt: 3,
            lambda: ("recover", self._conversation()): 1,
        }
        choose = self._chance.choices([*choices], [*choices.values()])[0]
        return choose() if self._model.state()["living"] else self._join()

    def _join(self) -> Done:
        return "join_cluster", ("worker", tuple(self._chance.sample(POOLS, self._chance.randint(1, 2))))

    def _next_order(self) -> Done:
        self._attempts += self._chance.random() < 0.7
        late = self._chance.choice([0, 0, 0, 1, 5])
        return "next_order", (self._worker(), self._attempts - late)

    def _end_order(self) -> Done:
        how = self._chance.choice(["ended", "cancelled"])
        conversation, turn, worker = self._one_of(self._model.state()["runs"], (*self._key(), self._worker()))
        return "end_order", (worker, (conversation, turn), how)

    def _append(self) -> Done:
        conversation, owner = self._conversation()
        self._messages += self._chance.random() < 0.7
        message = f"m{self._messages}"
        new = []
        for _ in range(self._chance.randint(0, 2)):
            self._turns += 1
            new.append(WaitingTurn(id=str(self._turns), member="al", message_id=message))
        if new and self._chance.random() < 0.1:
            new[0] = WaitingTurn(id=self._turn(conversation, ""), member="al", message_id=message)
        finishes = self._turn(conversation, "running") if self._chance.random() < 0.3 else None
        return "append", (conversation, message, owner, tuple(new), finishes)

    def _start_turn(self) -> Done:
        conversation, owner = self._conversation()
        given = self._turn(conversation, "queued"), owner, self._chance.choice(POOLS), self._worker()
        return "start_turn", (conversation, *given)

    def _end_turn(self) -> Done:
        conversation, owner = self._conversation()
        return "end_turn", (conversation, self._turn(conversation, "running"), owner)

    def _adopt(self) -> Done:
        conversation, owner = self._conversation()
        return "adopt", (conversation, (self._turn(conversation, "running"), self._turn(conversation, "")), owner)

    def _one_of(self, likely: list[Any], otherwise: Any) -> Any:
        return self._chance.choice(likely) if likely and self._chance.random() < 0.85 else otherwise

    def _worker(self) -> int:
        state = self._model.state()
        return int(self._one_of(state["living"], self._chance.choice([*state["living"], *state["given up"]])))

    def _conversation(self) -> tuple[str, Owner]:
        """Return a conversation, and who might own it."""
        one = self._chance.choice(IDS)
        present = [owner for owner in OWNERS if owner.token == self._model.state()[one][0]]
        return one, self._one_of(present, self._chance.choice(OWNERS))

    def _turn(self, conversation: str, state: str) -> str:
        turns = self._model.state()[conversation][2]
        return str(self._one_of([one for one in turns if turns[one] == state], self._chance.choice([*turns, "0"])))

    def _order(self) -> tuple[int, Key]:
        """Return who might have an order, and the order."""
        key = self._key()
        return self._one_of(self._model.state()["owners"].get(key, []), self._worker()), key

    def _key(self) -> Key:
        one = self._chance.choice(IDS)
        found: Key = self._one_of(self._model.state()["orders"], (one, self._turn(one, "")))
        return found


def done(to: Real | Model, name: str, given: tuple[Any, ...]) -> object:
    """Return what came of something, or the name of the error."""
    try:
        return getattr(to, name)(*given)
    except BullpenError as error:
        return type(error).__name__


def compare(url: str, seed: int) -> set[tuple[str, str]]:
    """Do the same to both, and return what was done and what came of it."""
    model = Model()
    doing = Doing(seed, model)
    with PostgresStore(url) as store, closing(Real(url, store)) as real:
        for one in IDS:
            store.create(one, team="t", team_file="", started_at=0)
        outcomes = set()
        for step in range(STEPS):
            name, given = doing.next()
            expected = done(model, name, given)
            assert (done(real, name, given), step, name, given) == (expected, step, name, given)
            outcomes.add((name, str(expected)[:12]))
            if step % 5 == 0:
                assert real.state() == model.state(), (step, name, given)
        assert real.state() == model.state()
    return outcomes


@pytest.mark.parametrize("seed", range(4))
def test_the_model_does_what_postgresql_does(url: str, seed: int) -> None:
    outcomes = compare(url, seed)

    # What is fenced was tried both ways.
    assert {
        *(("start_turn", "NotTheOwner"), ("start_turn", "None"), ("end_order", "True")),
        *(("cancel_order", "True"), ("cancel_order", "False"), ("adopt_order", "True"), ("adopt_order", "False")),
    } <= outcomes


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        (ClusterModel.end_turn, "or key in self.outcomes", ""),
        (ClusterModel.next_order, "if attempt <= me.attempt:", "if attempt < me.attempt:"),
        (ClusterModel.next_order, "if attempt <= me.attempt:", "if (worker, attempt) in self._attempts:"),
        (ClusterModel._request_end, "if key in self.runs:", "if key in self.outcomes:"),
        (ClusterModel._is_order_of, "self.orders[key].owner == node", "True"),
        (ClusterModel._is_order_of, " and not self.processes[node].is_ended", ""),
        (ConversationsModel.recover, "turn.owner != token", "turn.owner == token"),
        (ConversationsModel.append, "if message in row.messages:", "if not message:"),
    ],
    ids=["ends", "attempts", "late attempts", "cancelling", "fence", "life", "recovering", "messages"],
)
def test_a_model_that_differs_is_noticed(url: str, rule: object, right: str, wrong: str) -> None:
    with one_line(rule, right, wrong)(), pytest.raises(AssertionError):
        compare(url, 1)
