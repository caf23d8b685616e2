"""Programs that the tests need, installed from Debian's packages where that is possible."""

import os
import shutil
import subprocess
import sys

TIMEOUT_SECONDS = 600
INSTALL = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends")
UPDATE = ("apt-get", "update", "--quiet")


def install(*packages: str) -> None:
    """Install packages if we may. A failure is said and is not an error: what needs them is skipped."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print(f"Installing {', '.join(packages)} ...", flush=True)
    try:
        if _fails(*INSTALL, *packages):
            # The lists of packages may be old, or not there yet.
            _fails(*UPDATE)
            _fails(*INSTALL, *packages)
    except subprocess.TimeoutExpired:
        print(f"apt-get took too long to install {', '.join(packages)}", file=sys.stderr)


def _fails(*command: str) -> bool:
    # Without a server of its own that would start with the system: the tests start theirs.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    done = subprocess.run(command, check=False, capture_output=True, timeout=TIMEOUT_SECONDS, env=environment)
    return done.returncode != 0
