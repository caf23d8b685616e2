"""ClusterModel: what cluster/sql does, as plain data. Each method is one commit; their names are those of SQL."""

import heapq
from collections.abc import Callable, Sequence
from typing import Literal

Key = tuple[str, str]
"""A conversation and a turn."""
Kind = Literal["node", "worker"]


class Process:
    """A row of processes."""

    def __init__(self, kind: Kind, pools: Sequence[str], beat_at: float) -> None:
        self.kind = kind
        self.pools = tuple(pools)
        self.beat_at = beat_at
        self.is_ended = False
        self.holds_lock = True
        self.attempt = 0
        """The last one that was given an order."""


class Order:
    """A row of orders, and the job that belongs to it."""

    def __init__(self, pool: str, owner: int, job: int) -> None:
        self.pool = pool
        self.owner = owner
        self.job = job
        self.status: Literal["todo", "doing", "cancelled", "finished"] = "todo"
        self.abort_requested = False


class ClusterModel:
    """Processes, orders, runs and outcomes."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.processes: dict[int, Process] = {}
        self._living: dict[int, None] = {}
        """Those that were not given up; who has beaten last is last."""
        self.orders: dict[Key, Order] = {}
        self._todo: dict[str, list[tuple[int, Key]]] = {}
        self.runs: dict[Key, tuple[int, int]] = {}
        self._runs_of: dict[int, set[Key]] = {}
        self._attempts: dict[tuple[int, int], Key] = {}
        self.outcomes: dict[Key, str] = {}
        self._jobs = 0
        self.on_given_up: Callable[[int], None] = lambda _: None
        self.on_outcome: Callable[[Key, str], None] = lambda _, __: None
        self.on_order: Callable[[str], None] = lambda _: None

    # Processes

    def join_cluster(self, kind: Kind, pools: Sequence[str] = ()) -> int:
        """Return who one is from now on."""
        process_id = len(self.processes) + 1
        self.processes[process_id] = Process(kind, pools, self._now())
        self._living[process_id] = None
        return process_id

    def beat(self, process_id: int) -> list[Key] | None:
        """Say that a process lives, and return which of its turns to end; None: it was given up."""
        process = self.processes[process_id]
        if process.is_ended:
            return None
        process.beat_at = self._now()
        del self._living[process_id]
        self._living[process_id] = None
        mine = self._runs_of.get(process_id, ())
        return sorted(key for key in mine if self._is_to_be_aborted(self.orders[key]))

    def reap(self, stale_after: float, gone_after: float) -> list[int]:
        """Give up those of whom nothing is heard."""
        now, late = self._now(), []
        for process_id in self._living:
            process = self.processes[process_id]
            if process.beat_at >= now - gone_after and process.beat_at >= now - stale_after:
                break
            if process.beat_at < now - stale_after or not process.holds_lock:
                late.append(process_id)
        for process_id in late:
            self.give_up(process_id)
        return late

    def give_up(self, process_id: int) -> None:
        """Call a process dead: what it ran is lost."""
        process = self.processes[process_id]
        if process.is_ended:
            return
        process.is_ended = True
        del self._living[process_id]
        for key in sorted(self._runs_of.get(process_id, ())):
            if key not in self.outcomes:
                self.end_turn(key, "lost")
        self.on_given_up(process_id)

    def _is_to_be_aborted(self, order: Order) -> bool:
        return order.abort_requested and order.status != "finished"

    def be_silent(self, process_id: int, seconds: float) -> None:
        """Let a process have said for so long nothing more."""
        self.processes[process_id].beat_at -= seconds
        self._living = dict.fromkeys(sorted(self._living, key=lambda one: self.processes[one].beat_at))

    # Orders

    def place_order(self, key: Key, pool: str, owner: int) -> None:
        """Order a turn, once."""
        if key in self.orders:
            return
        self._jobs += 1
        self.orders[key] = Order(pool, owner, self._jobs)
        self._offer(key)

    def deliver_again(self, key: Key) -> None:
        """Do what an engine may do at worst: hand out again what was handed out, and nobody wants to end."""
        order = self.orders.get(key)
        if order is not None and order.status == "doing" and not order.abort_requested:
            order.status = "todo"
            self._offer(key)

    def next_order(self, worker: int, attempt: int) -> Key | None:
        """Hand out an order and note that it runs; asked again with the same attempt, it is the same one."""
        me = self.processes[worker]
        if me.is_ended:
            return None
        if attempt <= me.attempt:
            return self._attempts.get((worker, attempt))
        while (key := self._fetch_job(me.pools)) is not None:
            if key in self.outcomes:
                self.orders[key].status = "finished"
            elif self._note_run(key, worker, attempt):
                return key
        return None

    def end_order(self, worker: int, key: Key, how: str) -> bool:
        """Let a worker end what it runs, if it has not ended; return whether that is its end."""
        return key in self.runs and self.runs[key][0] == worker and self.end_turn(key, how)

    def end_turn(self, key: Key, how: str) -> bool:
        """End a turn once."""
        if key not in self.orders or key in self.outcomes:
            return False
        self._end(key, how)
        return True

    def cancel_order(self, node: int, key: Key) -> bool:
        """Ask for the end of a turn of this node."""
        if self._is_order_of(node, key):
            self._request_end(key)
            return True
        return False

    def _is_order_of(self, node: int, key: Key) -> bool:
        return key in self.orders and self.orders[key].owner == node and not self.processes[node].is_ended

    def _request_end(self, key: Key) -> None:
        """Ask for the end of a turn; one that does not run has ended with that."""
        if key in self.outcomes:
            return
        if key in self.runs:
            self._request_abort(self.orders[key])
        else:
            self.end_turn(key, "cancelled")

    def settle_order(self, node: int, key: Key) -> None:
        """Remove an order of this node that has ended."""
        if not self._is_order_of(node, key):
            return
        self._request_end(key)
        if key in self.outcomes:
            del self.orders[key], self.outcomes[key]
            if run := self.runs.pop(key, None):
                self._runs_of[run[0]].discard(key)
                self._attempts.pop(run, None)

    def adopt_order(self, key: Key, owner: int) -> bool:
        """Become the one who hears what is said in a turn; return whether that can be."""
        if key not in self.orders or self.processes[owner].is_ended:
            return False
        self.orders[key].owner = owner
        return True

    def _request_abort(self, order: Order) -> None:
        """Do as procrastinate_cancel_job_v1."""
        if order.status in ("todo", "doing"):
            order.abort_requested = True
            order.status = "cancelled" if order.status == "todo" else "doing"

    def _end(self, key: Key, how: str) -> None:
        self.outcomes[key] = how
        if self.orders[key].status != "cancelled":
            self.orders[key].status = "finished"
        self.on_outcome(key, how)

    def _note_run(self, key: Key, worker: int, attempt: int) -> bool:
        """Insert into runs, on conflict do nothing; return whether that was done."""
        if key in self.runs:
            return False
        self.runs[key] = worker, attempt
        self._attempts[worker, attempt] = key
        self.processes[worker].attempt = attempt
        self._runs_of.setdefault(worker, set()).add(key)
        return True

    def _offer(self, key: Key) -> None:
        order = self.orders[key]
        heapq.heappush(self._todo.setdefault(order.pool, []), (order.job, key))
        self.on_order(order.pool)

    def _fetch_job(self, pools: Sequence[str]) -> Key | None:
        """Take the oldest job of some pools."""
        heads = [queue[0] for pool in pools if (queue := self._waiting(pool))]
        if not heads:
            return None
        _, key = min(heads)
        heapq.heappop(self._todo[self.orders[key].pool])
        self.orders[key].status = "doing"
        return key

    def _waiting(self, pool: str) -> list[tuple[int, Key]]:
        queue = self._todo.get(pool, [])
        while queue and not self._is_todo(*queue[0]):
            heapq.heappop(queue)
        return queue

    def _is_todo(self, job: int, key: Key) -> bool:
        order = self.orders.get(key)
        return order is not None and order.job == job and order.status == "todo"
