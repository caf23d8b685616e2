"""A real bullpen whose agent has a family that does not want to end, and files that grow while any of it lives."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from proofs.torture.shim import ROOT

from bullpen.agents.process_tree import ProcessId, is_alive, process_id

GROW = "while :; do echo >> {file}; sleep 0.05; done"
"""What every member does: it edits a file."""
GENERATIONS = 120
"""So many that they would live for seconds if one were killed after the other."""
CHAIN = """
import os, sys
for _ in range(int(sys.argv[1])):
    if os.fork():
        break
    os.setsid()
else:
    os.execv("/bin/sh", ["/bin/sh", sys.argv[2]])
os.wait()
"""
KINDS: Mapping[str, str] = {
    "child": "{grow} &",
    "child in a session of its own": "setsid {grow} &",
    "orphan": "({grow} &)",
    "orphan in a session of its own": "(setsid {grow} &)",
    "child without its environment": "env -i {grow} &",
    "child in a session of its own without its environment": "setsid env -i {grow} &",
    "orphan in a session of its own without its environment": "(setsid env -i {grow} &)",
    "child of a child": "sh -c 'setsid {grow} & wait' &",
    "child that is ended by signals": "(trap - TERM INT HUP; exec {grow}) &",
    f"the last of {GENERATIONS} generations, each in a session of its own": "env -i {last} &",
}
HIDDEN = "orphan in a session of its own without its environment"
"""Only its guardian knows where it belongs."""
PATIENCE_SECONDS = 30.0


class Family:
    """An agent that ignores every signal that can be ignored, and what it has started."""

    def __init__(self, folder: Path, kinds: Sequence[str], *, fault: str = "") -> None:
        self.folder, self.kinds = folder, kinds
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.environment = os.environ | {
            "BULLPEN_HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }
        self._write_team()
        program = [sys.executable, "-m", "proofs.torture.with_mistake", fault]
        command = [*program, "run", "--trust", str(self.team), "Go.", "--db", str(self.db)]
        self.bullpen = subprocess.Popen(command, cwd=folder, env=self.environment, stdout=subprocess.DEVNULL)
        _until(lambda: all(file.exists() for file in self._files()), "the family began")
        agent = process_id(int((folder / "agent").read_text()))
        assert agent is not None
        self.agent = agent
        self.guardian = process_id(_parent(agent.pid))
        self.members = self.living()

    @property
    def team(self) -> Path:
        """The team file."""
        return self.folder / "team.toml"

    @property
    def db(self) -> Path:
        """The database."""
        return self.folder / "conversations.db"

    def living(self) -> list[ProcessId]:
        """Return what works in the agent's folder: the whole family, whatever else it has thrown away."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and (entry / "cwd").readlink() == self.work:
                    found.append(process_id(int(entry.name)))
        return [process for process in found if process is not None and is_alive(process)]

    def kill_bullpen(self) -> None:
        """Kill bullpen alone, with -9."""
        self.bullpen.kill()
        self.bullpen.wait()

    def kill_bullpen_and_guardian(self) -> None:
        """Kill both, so that neither can do anything after the other's death."""
        assert self.guardian is not None
        for pid in (self.bullpen.pid, self.guardian.pid):
            os.kill(pid, signal.SIGSTOP)
        os.kill(self.guardian.pid, signal.SIGKILL)
        self.kill_bullpen()

    def open_again(self, fault: str = "") -> subprocess.CompletedProcess[bytes]:
        """Open the conversation that was killed, as a person would, and leave it again."""
        program = [sys.executable, "-m", "proofs.torture.with_mistake", fault, "chat", "--plain", "--trust"]
        command = [*program, "--resume", "last", "--db", str(self.db), str(self.team)]
        return subprocess.run(command, cwd=self.folder, env=self.environment, input=b"/quit\n", capture_output=True)

    def grows(self) -> bool:
        """Return whether anything is still edited."""
        before = self._sizes()
        return _comes_true(lambda: self._sizes() != before, seconds=1.0)

    def is_gone_within(self, seconds: float) -> bool:
        """Wait for the end of the whole family, and return whether it came."""
        return _comes_true(lambda: not self.living(), seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing, whatever bullpen has left."""
        with contextlib.suppress(ProcessLookupError):
            self.bullpen.send_signal(signal.SIGCONT)
        self.bullpen.kill()
        self.bullpen.wait()
        while living := self.living():
            for process in living:
                with contextlib.suppress(OSError):
                    os.kill(process.pid, signal.SIGKILL)
            time.sleep(0.01)

    def _sizes(self) -> list[int]:
        return [file.stat().st_size for file in self._files()]

    def _files(self) -> list[Path]:
        return [self.folder / f"grows-{number}" for number in range(len(self.kinds) + 1)]

    def _write_team(self) -> None:
        # A shell that says whom somebody killed must not end of that when nobody reads it any more.
        lines = ["trap '' TERM INT HUP", "exec 2> /dev/null", f"echo $$ > {self.folder}/agent", "cat > /dev/null"]
        chain = self.folder / "chain.py"
        chain.write_text(CHAIN)
        for number, kind in enumerate(self.kinds):
            grower = self.folder / f"grower-{number}.sh"
            grower.write_text(GROW.format(file=self._files()[number]))
            last = f"{sys.executable} -I -S {chain} {GENERATIONS} {grower}"
            lines.append(KINDS[kind].format(grow=f"/bin/sh {grower}", last=last))
        lines.append(GROW.format(file=self._files()[-1]))
        script = self.folder / "agent.sh"
        script.write_text("\n".join(lines))
        command = json.dumps(["/bin/sh", str(script)])
        member = f'[[member]]\nname = "ada"\ncommand = {command}\ncwd = {json.dumps(str(self.work))}\n'
        self.team.write_text(f'[[member]]\nname = "kim"\n{member}')


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def _comes_true(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _until(condition: Callable[[], bool], what: str) -> None:
    if not _comes_true(condition, PATIENCE_SECONDS):
        raise TimeoutError(f"this did not happen: {what}")
