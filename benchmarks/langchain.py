"""langchain-core's trim_messages on the same messages, from its own environment: bullpen does not depend on it."""

import json
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import duration
from bullpen.context.prompt import DEFAULT_MAX_BYTES

ENVIRONMENT = Path(__file__).parents[1] / ".cache" / "langchain"
SCRIPT = Path(__file__).with_name("langchain_trim.py")

NOTE = (
    'The last column is `trim_messages(strategy="last")` of langchain-core, counting UTF-8 bytes of content against '
    "the same limit, once warm; it returns the messages that fit, and leaves writing the prompt to its caller."
)


def trim_seconds(texts: list[str], lengths: Sequence[int]) -> dict[int, str]:
    """Return, for each length, how long trimming the newest so many texts takes, or in words why that is not known."""
    try:
        python = _python()
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"langchain-core could not be installed: {error}", file=sys.stderr)
        return dict.fromkeys(lengths, "could not be installed")
    request = json.dumps({"texts": texts, "lengths": lengths, "max_bytes": DEFAULT_MAX_BYTES})
    answer = subprocess.run([python, SCRIPT], input=request, text=True, capture_output=True, check=True).stdout
    return {
        int(length): duration(taken) if isinstance(taken, float) else taken
        for length, taken in json.loads(answer).items()
    }


def _python() -> Path:
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "ready").exists():
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "langchain-core"]
        subprocess.run(install, check=True, capture_output=True)
        (ENVIRONMENT / "ready").touch()
    return python
