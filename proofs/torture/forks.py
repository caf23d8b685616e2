"""A process behind the shim that forks one child for each thing to try, which is ten times quicker than starting it."""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from proofs.torture.shim import environment

LONGEST_SECONDS = 60


class Server:
    """The process, seen from the outside."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests = requests
        self._answers = answers

    def ask(self, **request: object) -> Any:
        """Return what a new child answers."""
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError("The process behind the shim has ended")
        return json.loads(answer)


@contextmanager
def server(module: str, *arguments: str) -> Iterator[Server]:
    """Start a module that calls `serve`, and end it afterwards."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Server(process.stdin, process.stdout)
        process.stdin.close()


def serve(work: Callable[..., object]) -> None:
    """Answer every request in a child of its own; one that ends without an answer, or hangs, is an answer too."""
    for line in sys.stdin:
        output, pipe = os.pipe()
        child = os.fork()
        if child == 0:
            _answer(work, json.loads(line), pipe)
        os.close(pipe)
        with os.fdopen(output) as answers:
            answer = answers.read()
        _, status = os.waitpid(child, 0)
        print(answer or json.dumps({"failure": f"the process ended with {status}"}), flush=True)


def _answer(work: Callable[..., object], request: dict[str, object], pipe: int) -> None:
    # Whoever hangs is ended by the system, and has not answered.
    signal.alarm(LONGEST_SECONDS)
    try:
        answer: object = work(**request)
    except BaseException:
        answer = {"failure": traceback.format_exc(limit=-6)}
    os.write(pipe, json.dumps(answer).encode())
    # Nothing is closed, as if the process had been killed.
    os._exit(0)
