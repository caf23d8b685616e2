"""Install PostgreSQL from Debian's packages where that is possible: `python -m tests.store.postgres.install`.

Whatever goes wrong is said in one line and is no failure, since the tests that need it are skipped without it.
"""

import os
import shutil
import sys
from pathlib import Path

from tests.debian import install


def main() -> None:
    """Install it if it is not there yet, and say so."""
    if os.environ.get("BULLPEN_TEST_POSTGRES"):
        print("PostgreSQL is where BULLPEN_TEST_POSTGRES says")
        return
    if not is_there():
        install("postgresql")
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


if __name__ == "__main__":
    main()
