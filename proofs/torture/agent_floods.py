"""One flood in a process of its own, and the most memory that it took."""

import subprocess
import sys

import msgspec
from benchmarks.agents_flood import Peak

PROGRAM = """
import msgspec
from benchmarks.agents_flood import report
{}
print(msgspec.json.encode(report({!r}, {!r})).decode())
"""


def peak(name: str, size: int, prelude: str = "pass") -> Peak:
    """Let an agent write so many bytes. The prelude is Python for the process that reads them."""
    program = PROGRAM.format(prelude, name, str(size))
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return msgspec.json.decode(done.stdout, type=Peak)
