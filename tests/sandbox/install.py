"""Install bubblewrap from Debian's packages where that is possible: `python -m tests.sandbox.install`.

Where it is missing afterwards, the tests that need it fail: what nobody has tried must not pass for tried.
"""

import shutil

from tests.debian import install


def main() -> None:
    """Install it if it is not there yet, and say so."""
    if shutil.which("bwrap") is None:
        install("bubblewrap")
    print(f"bubblewrap is in {shutil.which('bwrap') or 'no folder of the PATH: its tests will fail'}")


if __name__ == "__main__":
    main()
