"""Say which programs are missing here, so that nothing is skipped in silence: `python -m proofs.missing`.

`make test-all` ends with it.
"""

import os
import shutil
import sys

from proofs.torture.shim import why_not
from tests.agents.real_cli import install as clis
from tests.store.postgres import install as postgres
from tests.web.browser import install as browser

from bullpen.agents.registry import agent_spec


def missing() -> list[str]:
    """Return a line for each program that is missing, with what is not tried without it."""
    found = [f"{cli}: nothing is tried with it. Run python tests/agents/real_cli/install.py" for cli in clis.missing()]
    if shutil.which(agent_spec("vibe").program) is None:
        found.append("vibe-acp: nothing is tried with it. It is never installed; put mistral-vibe on the PATH")
    if browser.browser() is None:
        found.append("chromium: no page is tried in a browser. Install the package chromium")
    if not browser.axe().exists():
        found.append("axe-core: no page is looked at for accessibility. Run python -m tests.web.browser.install")
    if not os.environ.get("BULLPEN_TEST_POSTGRES") and postgres.is_there() is None:
        found.append("PostgreSQL: nothing of many machines is tried. Install the package postgresql")
    if shutil.which("systemd-analyze") is None:
        found.append("systemd-analyze: the units in deploy/ are not looked at. Install the package systemd")
    if why_not():
        found.append(f"cc: no disk is faulty and no power is cut, since {why_not()}")
    return found


def main() -> None:
    """Print a line for each."""
    for line in missing():
        print(f"!!! NOT TRIED HERE: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
