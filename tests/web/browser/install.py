"""Install Chromium from Debian's packages where that is possible, and axe-core into .cache/browser.

Once for each package.json: `python -m tests.web.browser.install`.

Whatever goes wrong is said in one line and is no failure, since the tests that need it are skipped without it.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tests.debian import install

PACKAGES = Path(__file__).with_name("package.json")
CACHE = Path(__file__).parents[3] / ".cache" / "browser"
TIMEOUT_SECONDS = 300
NPM_INSTALL = ("install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> None:
    """Install what is not there yet, and say what there is."""
    if browser() is None:
        # With fonts, so that Chinese and emoji are drawn.
        install("chromium", "fonts-noto-cjk", "fonts-noto-color-emoji")
    if browser() is None:
        print("\n!!! THERE IS NO CHROMIUM ON THIS SYSTEM, the tests in a browser will be skipped\n", file=sys.stderr)
    if not axe().exists():
        _install()
    if axe().exists():
        print(f"axe-core is in {axe()}")
    else:
        print("\n!!! AXE-CORE IS NOT INSTALLED, its test will be skipped: is npm there?\n", file=sys.stderr)


def browser() -> str | None:
    """Return the system's Chromium."""
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


def axe() -> Path:
    """Return where the script is, or would be."""
    return _folder() / "node_modules" / "axe-core" / "axe.min.js"


def _folder() -> Path:
    return CACHE / hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:16]


def _install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        return
    _folder().mkdir(parents=True, exist_ok=True)
    shutil.copy(PACKAGES, _folder())
    subprocess.run([npm, *NPM_INSTALL], cwd=_folder(), check=False, capture_output=True, timeout=TIMEOUT_SECONDS)


if __name__ == "__main__":
    main()
