"""`python -m proofs.torture.reused_pids COUNT MISTAKE FOLDER`: strangers that have the pids of processes long dead.

In each round there are two records of a crash. One names a stranger's pid for the agent, its guardian and bullpen, the
other for bullpen alone, beside an agent that still runs. Prints as JSON what went wrong.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from proofs.torture.with_mistake import plant

if TYPE_CHECKING:
    from bullpen.agents.process_tree import ProcessId

STRANGER = ["sh", "-c", "sleep 600 & echo $!; wait"]


def round_of_strangers(folder: Path) -> list[str]:
    """Return the promises that were broken in one round."""
    from bullpen.agents import process_tree
    from bullpen.agents.crash_records import CrashRecords, Record

    def recorded(turn_id: str, child: "ProcessId", guardian: "ProcessId | None", owner: "ProcessId") -> None:
        here = {"boot_id": process_tree.boot_id(), "namespace": process_tree.pid_namespace()}
        record = Record(turn_id=turn_id, child=child, guardian=guardian, owner=owner, **here)
        (folder / f"{turn_id}.json").write_bytes(msgspec.json.encode(record))

    import msgspec

    stranger = subprocess.Popen(STRANGER, stdout=subprocess.PIPE, start_new_session=True)
    agent = subprocess.Popen(["sleep", "600"], start_new_session=True)
    assert stranger.stdout is not None
    its_child = process_tree.process_id(int(stranger.stdout.readline()))
    now, left = process_tree.process_id(stranger.pid), process_tree.process_id(agent.pid)
    assert its_child is not None
    assert now is not None
    assert left is not None
    dead = process_tree.ProcessId(now.pid, now.start_time - 1)
    recorded("all-reused", child=dead, guardian=dead, owner=dead)
    recorded("owner-reused", child=left, guardian=None, owner=dead)
    CrashRecords(folder).end_all()
    process_tree.end([dead])
    # Who was killed needs a moment to die.
    time.sleep(0.05)
    broken = []
    if stranger.poll() is not None:
        broken.append("a stranger was ended that had the pid of a dead agent")
    elif not process_tree.is_alive(its_child):
        broken.append("the child of a stranger was ended that had the pid of a dead agent")
    if agent.poll() is None:
        broken.append("an agent runs on whose bullpen is dead, since a stranger has the pid of that")
    for process in (stranger, agent):
        process.kill()
        process.wait()
    process_tree.end([its_child])
    stranger.stdout.close()
    return broken


if __name__ == "__main__":
    count, mistake, folder = sys.argv[1:]
    if mistake:
        plant(mistake, Path(folder))
    records = Path(folder, "records")
    records.mkdir()
    found = [f"round {number}: {broken}" for number in range(int(count)) for broken in round_of_strangers(records)]
    print(json.dumps(found))
