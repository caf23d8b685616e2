"""Commands that end at once with a sentence, each as a real process."""

import os
import sys

from tests import forked


def refused(*words: str, exit_codes: tuple[int, ...] = (1,), **environment: str) -> str:
    """Return what a command says that does not start: never a traceback, and never that we have a bug."""
    ended = forked.run(
        [sys.executable, "-m", "bullpen", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in exit_codes, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "a bug in bullpen" not in ended.stderr
    return str(ended.stderr)
