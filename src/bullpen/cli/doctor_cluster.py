"""`bullpen doctor --cluster`: the nodes and workers of a cluster, what they announced, and what is wrong."""

from typing import TYPE_CHECKING

import msgspec

from bullpen.cli.cluster_option import cluster_address, need_cluster
from bullpen.terminal.tables import print_table, safe_line
from bullpen.text.numbers import counted, duration

if TYPE_CHECKING:
    from bullpen.cluster.survey import Seen, Survey

NO_REPLICA = "The server has no replica, so there is nothing to fail over to: see that it is backed up."


def examine_cluster(given: str, *, as_json: bool) -> int:
    """Print what is known of a cluster; 0 only if nothing is wrong with it."""
    address = cluster_address(given)
    need_cluster()
    from bullpen.cluster.survey import survey

    found = survey(address or "")
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        _print(found)
    return 1 if found.problems else 0


def _print(found: "Survey") -> None:
    print(safe_line(f"{found.server}:"))
    if found.processes:
        print_table(("", "name", "heard of", "pools or address"), [_row(found, seen) for seen in found.processes])
    else:
        print("There is no node and no worker now.")
    for seen in found.processes:
        for agent in seen.announced.agents:
            state = "is not ready: " + " ".join(agent.problems) if agent.problems else f"{agent.version} is ready."
            print(safe_line(f"{found.called(seen)}: {agent.name} {state}"))
        if seen.kind == "worker":
            print(safe_line(f"{found.called(seen)}: folders {', '.join(seen.announced.folders) or 'none'}."))
    for pool, count in found.waiting.items():
        print(safe_line(f"{pool}: {counted(count, 'turn')} waiting for a worker."))
    for name, state in found.replicas.items():
        print(safe_line(f"The replica {name} is {state or 'unknown'}."))
    if not found.replicas:
        print(NO_REPLICA)
    for problem in found.problems:
        print(safe_line(f"Wrong: {problem}"))


def _row(found: "Survey", seen: "Seen") -> tuple[str, str, str, str]:
    heard = f"{duration(seen.silent_seconds)} ago" + (", about to be given up" if seen.is_stale else "")
    return seen.kind, found.called(seen), heard, ", ".join(seen.pools) or seen.address
