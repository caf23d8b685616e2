"""A fork is a process like one that was started."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import forked

FACTS = """
import json, os, signal, sys
told = sys.stdin.read()
signals = [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)]
streams = [(one.fileno(), one.encoding, one.errors, one.line_buffering) for one in (sys.stdin, sys.stdout, sys.stderr)]
opened = sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []
place = [os.getcwd(), dict(os.environ), sys.argv, sys.path[0], __name__, os.getsid(0) == os.getpid()]
print(json.dumps([told, [one.partition(" at ")[0] for one in signals], streams, opened, place], sort_keys=True))
print("wrong", file=sys.stderr)
"""
ENDS = {
    "nothing": "pass",
    "a number": "import sys; sys.exit(7)",
    "words": "import sys; sys.exit('no')",
    "nothing to say": "import sys; sys.exit()",
    "a mistake": "1 / 0",
    "a thread": "import threading, time; threading.Thread(target=lambda: print('late')).start()",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}
Run = Callable[..., "subprocess.CompletedProcess[Any]"]


@pytest.mark.parametrize("is_session", [False, True])
def test_it_finds_what_a_process_finds(is_session: bool, tmp_path: Path) -> None:
    def facts(run: Run) -> str:
        command = [sys.executable, "-c", FACTS, "one", "two words"]
        keys = {"cwd": tmp_path, "env": {**os.environ, "A": "b"}, "start_new_session": is_session}
        done = run(command, input="hé", capture_output=True, encoding="utf-8", check=True, **keys)
        assert done.stderr == "wrong\n"
        return str(done.stdout)

    assert facts(forked.run) == facts(subprocess.run)


def test_it_ends_as_a_process_ends() -> None:
    def end(run: Run, program: str) -> tuple[int, str, str]:
        done = run([sys.executable, "-c", program], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr.strip().rpartition("\n")[2]

    for name, program in ENDS.items():
        assert end(forked.run, program) == end(subprocess.run, program), name


def test_it_is_signalled_as_a_process_is() -> None:
    program = "import sys, time; print('ready', flush=True); time.sleep(600)"
    for number in (signal.SIGTERM, signal.SIGKILL):
        with forked.start([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            assert process.poll() is None
            process.send_signal(number)
            assert process.wait(60) == -number


def test_one_that_is_left_is_ended_and_named() -> None:
    process = forked.start([sys.executable, "-c", "import time; time.sleep(600)"])

    assert [line.partition("-c")[2] for line in forked.left()] == ["', 'import time; time.sleep(600)']"]
    assert process.returncode == -signal.SIGKILL
