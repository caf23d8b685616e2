"""Our side of a comparison: a peer's environment, and the program that runs there."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".cache" / "peers"


class Peer:
    """A program that keeps messages and trims them on request."""

    def __init__(self, process: "subprocess.Popen[str]", version: str) -> None:
        self._process = process
        self.version = version

    def ask(self, do: str, candidate: str, length: int) -> float | str:
        """Return the seconds that filling or trimming took, or a text that says why it failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "candidate": candidate, "length": length}) + "\n")
        self._process.stdin.flush()
        seconds: float | str = json.loads(self._process.stdout.readline())
        return seconds


@contextmanager
def running(module: str, package: str, texts: list[str], max_bytes: int) -> Iterator[Peer | None]:
    """Yield the peer, ready for requests, or None if it cannot be installed."""
    try:
        python = _python(package)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"{package} could not be installed: {error}", file=sys.stderr)
        yield None
        return
    # Only the benchmarks can be imported there, not bullpen.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT)}
    command = [str(python), "-m", f"benchmarks.peers.{module}"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"texts": texts, "max_bytes": max_bytes}) + "\n")
        try:
            yield Peer(process, _version(python, package))
        finally:
            process.kill()


def _python(package: str) -> Path:
    environment = ENVIRONMENTS / package
    python = environment / "bin" / "python"
    if not (environment / "ready").exists():
        venv.create(environment, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
        subprocess.run(install, check=True, capture_output=True)
        (environment / "ready").touch()
    return python


def _version(python: Path, package: str) -> str:
    program = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", program], check=True, capture_output=True, text=True).stdout.strip()
