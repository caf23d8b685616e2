"""A process that takes too long is killed, and no other."""

import subprocess
from signal import SIGKILL

from bullpen.files.time_limit import limited

SLEEP = ("sleep", "600")


def test_who_takes_too_long_is_killed_also_while_others_have_more_time() -> None:
    with subprocess.Popen(SLEEP) as patient, limited(patient, 600):
        for _ in range(2):
            with subprocess.Popen(SLEEP) as late, limited(late, 0):
                assert late.wait(60) == -SIGKILL

        assert patient.poll() is None
        patient.kill()


def test_who_is_ready_in_time_is_left_alone() -> None:
    with subprocess.Popen(SLEEP) as ready:
        with limited(ready, 600):
            pass
        with subprocess.Popen(SLEEP) as late, limited(late, 0):
            assert late.wait(60) == -SIGKILL

        assert ready.poll() is None
        ready.kill()
