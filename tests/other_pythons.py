"""Run the pure tests with the other versions of Python that pyenv has: `python -m tests.other_pythons`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.12", "3.13")
PURE = ("text", "markers", "context", "routing", "team", "prices")
"""Folders of tests that start nothing."""


def main() -> int:
    """Run them with each version that is there, and say which is not."""
    failed = []
    for version in VERSIONS:
        program = newest_python(version)
        if program is None:
            print(f"Python {version} is not tried: pyenv has none.")
        elif not _pass(version, program):
            failed.append(version)
    if failed:
        print(f"Tests fail with Python {' and '.join(failed)}.")
    return int(bool(failed))


def newest_python(version: str) -> Path | None:
    """Return the newest Python of a version in pyenv, wherever that is."""
    homes = {os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv"), sys.base_prefix.partition("/versions/")[0]}
    found = [
        program
        for home in homes
        if home
        for program in Path(home, "versions").glob(f"{version}.*/bin/python")
        if program.exists()
    ]
    return max(
        found, default=None, key=lambda path: [int(part) for part in path.parts[-3].split(".") if part.isdigit()]
    )


def _pass(version: str, program: Path) -> bool:
    folder = ROOT / ".cache" / f"python-{version}"
    python = str(folder / "bin" / "python")
    if not (folder / "ready").exists():
        subprocess.run([str(program), "-m", "venv", "--clear", str(folder)], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*install, "--no-deps", "--require-hashes", "-r", "requirements.txt"], cwd=ROOT, check=True)
        (folder / "lib" / f"python{version}" / "site-packages" / "bullpen.pth").write_text(str(ROOT / "src"))
        (folder / "ready").touch()
    print(f"With {program}:", flush=True)
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "auto",
        "-m",
        "not foreign and not torture",
    ]
    return subprocess.run([*command, *(f"tests/{name}" for name in PURE)], cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
