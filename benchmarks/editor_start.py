"""Figure: how long an editor waits for a team: until the handshake is answered, and until a session is open."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import monotonic

from benchmarks.agents_stage import own_folder
from benchmarks.report import Figure, code, duration

GOAL_SECONDS = 0.15
ROUNDS, QUICK_ROUNDS = 30, 5
TEAM = '[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = ["cat"]\n'
# As little as a program can do that answers one line.
BARE = "import sys; sys.stdin.readline(); print('{}', flush=True); sys.stdin.readline(); print('{}', flush=True)"
PROGRAMS = {
    "python, which answers any line": ("-c", BARE),
    "bullpen acp": ("-m", "bullpen", "acp", "--trust"),
}
OURS = "bullpen acp"


def measure(*, quick: bool) -> Figure:
    """Start each in turn, shake hands, and begin a session."""
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in PROGRAMS}
    with own_folder() as folder:
        (folder / "team.toml").write_text(TEAM)
        for _ in range(QUICK_ROUNDS if quick else ROUNDS):
            for name, arguments in PROGRAMS.items():
                taken[name].append(_waits(arguments, folder))
    first, work, second = ({name: median(run[at] for run in runs) for name, runs in taken.items()} for at in range(3))
    best = min(hello for hello, _, _ in taken[OURS])
    return Figure(
        title="The handshake with an editor",
        goal=f"{code(OURS)} answers `initialize` within {duration(GOAL_SECONDS)}, in the median",
        met=first[OURS] <= GOAL_SECONDS,
        measured=f"{duration(first[OURS])}; {duration(best)} at best",
        columns=(
            "program",
            "from its start to the answer to `initialize`",
            "processor time of that",
            "to the answer to `session/new`",
        ),
        rows=[(code(name), *(duration(part[name]) for part in (first, work, second))) for name in PROGRAMS],
        meaning="Wall-clock times, in the median; on a busy machine, the processor time says more. What a conversation "
        "needs is imported after the handshake, while a person begins to type; here the session is asked for at once, "
        "so this is the longest that anybody waits. Other work on the machine meanwhile: a load of "
        f"{os.getloadavg()[0]:.0f} on {os.cpu_count()} processors.",
    )


def _waits(arguments: tuple[str, ...], folder: Path) -> tuple[float, float, float]:
    """Return the seconds until the first answer, the processor time of that, and the seconds until the second."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"HOME": str(folder), "BULLPEN_HOME": str(folder / "data")}
    pipe = subprocess.PIPE
    requests = [("initialize", {"protocolVersion": 1}), ("session/new", {"cwd": str(folder), "mcpServers": []})]
    began, seconds, work = monotonic(), [], []
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment, stdin=pipe, stdout=pipe
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, (method, params) in enumerate(requests):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if b'"error"' in answer or not answer:
                raise RuntimeError(answer.decode())
            seconds.append(monotonic() - began)
            work.append(_processor_seconds(process.pid))
    return seconds[0], work[0], seconds[1]


def _processor_seconds(pid: int) -> float:
    """Return how long a process has run so far, on one processor or several."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
