"""Install PostgreSQL from Debian's packages where that is possible: `python tests/store/postgres/install.py`.

Whatever goes wrong is said in one line and is no failure, since the tests that need it are skipped without it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

TIMEOUT_SECONDS = 300
INSTALL = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "postgresql")


def main() -> None:
    """Install it if it is not there yet, and say so."""
    if os.environ.get("BULLPEN_TEST_POSTGRES"):
        print("PostgreSQL is where BULLPEN_TEST_POSTGRES says")
        return
    if not is_there() and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
    if is_there():
        print(f"PostgreSQL is in {is_there()}")
    else:
        print(
            "\n!!! THERE IS NO POSTGRESQL ON THIS SYSTEM, its tests will be skipped: apt-get install postgresql\n",
            file=sys.stderr,
        )


def is_there() -> str | None:
    """Return where the program is that creates a database."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return str(debian[-1]) if debian else shutil.which("initdb")


def _install() -> None:
    # Without a server of its own that would start with the system: the tests start theirs.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    try:
        subprocess.run(INSTALL, check=False, capture_output=True, timeout=TIMEOUT_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        print("apt-get took too long to install PostgreSQL", file=sys.stderr)


if __name__ == "__main__":
    main()
