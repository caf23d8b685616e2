"""Processes of a cluster: nodes and workers that a test kills, freezes and wakes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


class Started:
    """A process of ours."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; one that is frozen has not."""
        return self._process.poll() is None

    def line(self) -> str:
        """Return the next line that it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def stop(self) -> int:
        """Ask it to leave, and wait."""
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait for its end."""
        return self._process.wait()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)


class Processes:
    """All that were started by a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[Started] = []

    def start(self, module: str, *arguments: str, **environment: str) -> Started:
        """Start a module."""
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        ours = os.environ | {
            "PYTHONPATH": paths,
            "XDG_STATE_HOME": str(self.folder / "state"),
            "BULLPEN_HOME": str(self.folder / "home"),
        }
        with (self.folder / "log").open("a") as log:
            started = Started(
                subprocess.Popen(
                    [sys.executable, "-m", module, *arguments],
                    env=ours | environment,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    encoding="utf-8",
                )
            )
        self._started.append(started)
        return started

    def end(self) -> None:
        for started in self._started:
            started.wake()
            started.kill()
