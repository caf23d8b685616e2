"""Processes that tests fork: killed, or beginning together."""

import os
import pickle
import signal
import traceback
from collections.abc import Callable
from functools import partial
from typing import TypeVar

Result = TypeVar("Result")


class Child:
    """A process that runs a function, forked so that it starts at once; what it writes can be read here."""

    def __init__(self, function: Callable[[int], None]) -> None:
        self.output, pipe = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            run_and_exit(function, pipe)
        os.close(pipe)

    def kill(self, *, after_lines: int) -> bytes:
        """Kill it when it has written so many lines, whatever it does then; return all that it wrote."""
        written = b""
        while written.count(b"\n") < after_lines and (more := os.read(self.output, 4096)):
            written += more
        os.kill(self.pid, signal.SIGKILL)
        return written + self.wait()

    def wait(self) -> bytes:
        with os.fdopen(self.output, "rb") as output:
            written = output.read()
        os.waitpid(self.pid, 0)
        return written


def run_and_exit(function: Callable[[int], None], pipe: int) -> None:
    try:
        function(pipe)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def in_parallel(function: Callable[[int], Result], count: int) -> list[Result]:
    """Return what a function returns in several processes that begin together, each with its number."""
    gate, opener = os.pipe()

    def wait_and_run(number: int, pipe: int) -> None:
        os.close(opener)
        os.read(gate, 1)
        os.write(pipe, pickle.dumps(function(number)))

    children = [Child(partial(wait_and_run, number)) for number in range(count)]
    os.close(gate)
    os.close(opener)
    return [pickle.loads(child.wait()) for child in children]
