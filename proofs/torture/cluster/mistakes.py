"""One-line mistakes in what keeps the promises of many machines, and how each is seen. It imports nothing of ours."""

from pathlib import Path

from msgspec import Struct
from proofs.torture.planting import plant_in

SQL = Path(__file__).parents[3] / "src" / "bullpen" / "cluster" / "sql"


class Mistake(Struct, frozen=True, kw_only=True):
    """What is written exactly once in a module, or in a function in sql/, and what is written instead."""

    module: str = ""
    function: str = ""
    right: str
    wrong: str
    mishaps: tuple[str, ...]
    """What to do until it is seen."""
    seen_as: str


MISTAKES = {
    "an order that is delivered twice runs twice": Mistake(
        function="next_order",
        right="by_worker, with_attempt) ON CONFLICT DO NOTHING;",
        wrong="by_worker, with_attempt) ON CONFLICT ON CONSTRAINT runs_pkey DO UPDATE "
        "SET worker = by_worker, attempt = with_attempt;",
        mishaps=("deliver twice",),
        seen_as="^run twice",
    ),
    "who writes need not be the owner": Mistake(
        module="bullpen.store.postgres.place",
        right="        self._fence = (owner,)\n",
        wrong="        self._fence = None\n",
        mishaps=("freeze a node for long",),
        seen_as="^late",
    ),
    "two become the owner at once": Mistake(
        module="bullpen.store.postgres.store",
        right="            is_ours = place.found().owner == before\n",
        wrong="            is_ours = True\n",
        mishaps=("claim",),
        seen_as="^claimed",
    ),
    "the living are given up as well": Mistake(
        function="is_stale",
        right="process.beat_at < clock_timestamp() - stale_after OR",
        wrong="process.beat_at < clock_timestamp() - stale_after / 10 OR",
        mishaps=("kill a worker",),
        seen_as="^living",
    ),
    "what is acknowledged is not on disk yet": Mistake(
        module="bullpen.store.postgres.connections",
        right="        CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
        "ELSE current_setting('synchronous_commit') END,\n",
        wrong="        'off',\n",
        mishaps=("stop the database",),
        seen_as=r"^lost: kim-\d+ was acknowledged",
    ),
    "what runs on a worker is interrupted with its node": Mistake(
        module="bullpen.conversation.state",
        right="        adopted = tuple(turn for turn in self.lost if turn.member in members)\n",
        wrong="        adopted: tuple[WaitingTurn, ...] = ()\n",
        mishaps=("kill a node",),
        seen_as="^lost: the reply|^overlapping",
    ),
    "a node that is stopped cancels what runs on workers": Mistake(
        module="bullpen.conversation.running_turn",
        right="        return self.may_be_left and self.is_recorded\n",
        wrong="        return False\n",
        mishaps=("stop a node",),
        seen_as="^lost: turn .* was cancelled by nobody",
    ),
    "nobody is spared after a crash of the server": Mistake(
        function="reap",
        right="backend_start > clock_timestamp() - spared_for)",
        wrong="backend_start > clock_timestamp())",
        mishaps=("stop the database",),
        seen_as="^living",
    ),
}


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module, if it is in one; "" makes none."""
    if name and MISTAKES[name].module:
        plant_in(MISTAKES[name].module, MISTAKES[name].right, MISTAKES[name].wrong, folder)


def plant_in_database(name: str, url: str) -> None:
    """Make a mistake in a function of a database, if it is in one; "" makes none."""
    import psycopg

    if not name or not MISTAKES[name].function:
        return
    mistake = MISTAKES[name]
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL search_path = bullpen_cluster")
        connection.execute(with_mistake(mistake).encode())


def with_mistake(mistake: Mistake) -> str:
    """Return the statement that makes a function with a mistake."""
    script = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SQL.glob("*.sql")))
    function = script.rpartition(f"CREATE FUNCTION {mistake.function}(")[2].partition("\n$$;\n")[0]
    if function.count(mistake.right) != 1:
        raise ValueError(f"the function {mistake.function} does not contain this exactly once: {mistake.right}")
    wrong = function.replace(mistake.right, mistake.wrong)
    return f"CREATE OR REPLACE FUNCTION {mistake.function}({wrong}\n$$;\n"
