"""Figure: what storing a message takes in PostgreSQL on loopback, and in a file."""

from time import perf_counter, process_time

from benchmarks.agents_stage import own_folder
from benchmarks.measure import part
from benchmarks.report import Figure, duration
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store
from bullpen.store.postgres.store import PostgresStore
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.postgres import PostgresServer

GOAL_SECONDS, GOAL_PROCESSOR = 0.003, 0.0012
MESSAGES, QUICK_MESSAGES = 1_000, 100
ROUNDS = 4
WARM_UP = 20
TEXT = ("The budget of the context window 上下文窗口 is too small for this. " * 8)[:400]
KIM = Speaker(role_id="kim", role_name="Kim", type="human")
# As a server is set up: what is acknowledged is on disk.
SETTINGS = ("shared_buffers=128MB",)


def measure(*, quick: bool) -> Figure:
    """Append the same messages to both stores in turn."""
    count = QUICK_MESSAGES if quick else MESSAGES
    with (
        own_folder() as folder,
        PostgresServer(*SETTINGS) as server,
        SqliteStore(folder / "a.db") as file,
        PostgresStore(server.url()) as there,
    ):
        stores: dict[str, Store] = {"a file": file, "PostgreSQL": there}
        walls: dict[str, list[float]] = {name: [] for name in stores}
        processor = dict.fromkeys(stores, 0.0)
        for store in stores.values():
            store.create("c", team="", team_file="", started_at=0)
            _append(store, "warm", WARM_UP)
        for number in range(ROUNDS):
            for name, store in stores.items():
                taken, seconds = _append(store, str(number), count // ROUNDS)
                walls[name] += taken
                processor[name] += seconds
    used = {name: total / count for name, total in processor.items()}
    median = part(walls["PostgreSQL"], 0.5)
    return Figure(
        title="Storing a message in PostgreSQL",
        goal=f"on loopback at most {duration(GOAL_SECONDS)} until the commit is known (median), and "
        f"{duration(GOAL_PROCESSOR)} of processor time here",
        met=median <= GOAL_SECONDS and used["PostgreSQL"] <= GOAL_PROCESSOR,
        measured=f"{duration(median)}, and {duration(used['PostgreSQL'])} of processor time",
        columns=("store", "median", "99 of 100", "processor time here"),
        rows=[
            (name, duration(part(taken, 0.5)), duration(part(taken, 0.99)), duration(used[name]))
            for name, taken in walls.items()
        ],
        meaning="Wall-clock time of one append: a message of 400 characters, partly Chinese, that asks for one turn. "
        "Both wait for the disk. The server is on the same machine; on another one, two round trips come on top.",
    )


def _append(store: Store, name: str, count: int) -> tuple[list[float], float]:
    """Return how long each append took, and the processor time of all."""
    taken, processor = [], 0.0
    for number in range(count):
        message = ConversationMessage(id=f"{name}-{number}", content=TEXT, speaker=KIM, timestamp=number)
        turn = WaitingTurn(id=f"turn-{name}-{number}", member="lee", message_id=message.id, intent=2, step=0)
        before, used = perf_counter(), process_time()
        store.append("c", message, turns=[turn])
        taken.append(perf_counter() - before)
        processor += process_time() - used
        # Not measured: so that the queue stays short.
        store.update("c", at=number, drops=[turn.id])
    return taken, processor
