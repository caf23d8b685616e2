"""Build what would be published, and check it: `make package`. Nothing is published.

The wheel and the source distribution are built twice, in different folders, and once more from the source distribution.
Then the wheel is installed into an empty environment of every Python that bullpen supports, and the demo runs there.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.other_pythons import newest_python

import bullpen

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13")
EVERYTHING_ON = VERSIONS[-1]
"""Where all extras are installed, too."""
SCRIPTS = ("bullpen", "bullpen-chat")
"""`uvx bullpen-chat` and `pipx run bullpen-chat` run the program that is named as the package."""
WANTED = {
    "Metadata-Version": "2.4",
    "Name": "bullpen-chat",
    "Version": bullpen.__version__,
    "Requires-Python": ">=3.11",
    "License-Expression": "Apache-2.0",
    "License-File": "LICENSE",
    "Description-Content-Type": "text/markdown",
}
DEMO_SECONDS = 300


class Built(NamedTuple):
    """What one build made."""

    wheel: Path
    sdist: Path


def main() -> int:
    """Build and check; put what was built into dist/ if nothing is wrong with it."""
    with TemporaryDirectory(prefix="bullpen-package-") as name:
        folder = Path(name)
        built = build(copied(folder / "one"))
        problems = [*differences(built, folder), *contents(built), *metadata(built.wheel)]
        problems += [] if problems else installations(built.wheel, folder)
        if not problems:
            shutil.rmtree(DIST, ignore_errors=True)
            DIST.mkdir()
            print("Nothing is wrong. Built:", *(shutil.copy2(path, DIST) for path in built), sep="\n  ")
    print(*problems, sep="\n", end="\n" if problems else "")
    return int(bool(problems))


def copied(folder: Path) -> Path:
    """Copy every file that git knows into a folder, as it is now."""
    for file in known_files():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, folder / file)
    return folder


def known_files() -> list[str]:
    """Return every file that git knows, as a path below the root."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def build(source: Path) -> Built:
    """Build both in a folder with the sources."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", "dist"]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,), (sdist,) = (source / "dist").glob("*.whl"), (source / "dist").glob("*.tar.gz")
    return Built(wheel, sdist)


def differences(built: Built, folder: Path) -> Iterator[str]:
    """Yield what is not the same, byte for byte, in a second build and in one from the source distribution."""
    second = build(copied(folder / "another" / "place"))
    yield from (f"{a.name} differs between two builds." for a, b in zip(built, second, strict=True) if not same(a, b))
    with tarfile.open(built.sdist) as archive:
        archive.extractall(folder / "from-sdist", filter="data")
    (unpacked,) = (folder / "from-sdist").iterdir()
    if not same(built.wheel, build(unpacked).wheel):
        yield f"{built.wheel.name} differs if it is built from {built.sdist.name}."


def same(one: Path, other: Path) -> bool:
    """Return whether two files have the same name and the same bytes."""
    return one.name == other.name and one.read_bytes() == other.read_bytes()


def contents(built: Built) -> Iterator[str]:
    """Yield every file that is missing in what was built, or should not be there."""
    known = known_files()
    with tarfile.open(built.sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    yield from _compared(built.sdist.name, packed, {*known, "PKG-INFO"})
    with zipfile.ZipFile(built.wheel) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    yield from _compared(built.wheel.name, packed, {name[4:] for name in known if name.startswith("src/")})


def _compared(name: str, packed: set[str], wanted: set[str]) -> Iterator[str]:
    yield from (f"{name} lacks {file}." for file in sorted(wanted - packed))
    yield from (f"{name} has {file}, which git does not know." for file in sorted(packed - wanted))


def metadata(wheel: Path) -> Iterator[str]:
    """Yield what the wheel says of itself and should not."""
    with zipfile.ZipFile(wheel) as archive:
        (place,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        said = message_from_bytes(archive.read(place))
        scripts = archive.read(place.replace("METADATA", "entry_points.txt")).decode()
    for name, value in WANTED.items():
        if said[name] != value:
            yield f"{wheel.name} has the {name} {said[name]!r}, not {value!r}."
    named = [one.rpartition(" :: ")[2] for one in said.get_all("Classifier", []) if " :: Python :: 3." in one]
    if tuple(named) != VERSIONS:
        yield f"{wheel.name} is for Python {', '.join(named)}, not {', '.join(VERSIONS)}."
    if not str(said.get_payload()).startswith("# bullpen"):
        yield f"{wheel.name} does not begin its description with README.md."
    for script in SCRIPTS:
        if f"{script} = bullpen.cli:main" not in scripts.splitlines():
            yield f"{wheel.name} brings no program {script}."


def installations(wheel: Path, folder: Path) -> list[str]:
    """Return what goes wrong where the wheel is installed."""
    with ThreadPoolExecutor() as threads:
        return [problem for problem in threads.map(lambda one: installation(wheel, folder, one), VERSIONS) if problem]


def installation(wheel: Path, folder: Path, version: str) -> str:
    """Install the wheel with a version of Python, and run the demo; return what goes wrong, or nothing."""
    python = newest_python(version) or shutil.which(f"python{version}")
    if python is None:
        print(f"Python {version} is not tried: neither pyenv nor the PATH has it.")
        return ""
    home = folder / f"home-{version}"
    home.mkdir()
    programs = folder / f"python-{version}" / "bin"
    wanted = f"{wheel}[all]" if version == EVERYTHING_ON else str(wheel)
    pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    alone = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    try:
        _run([str(python), "-m", "venv", str(programs.parent)], {**os.environ})
        _run([*pip, "install", "--no-compile", wanted], {**os.environ})
        _run([*pip, "check"], {**os.environ})
        for script in SCRIPTS:
            _run([str(programs / script), "--version"], alone)
        _run([str(programs / "bullpen"), "demo"], alone)
        if version == EVERYTHING_ON:
            _run([str(programs / "python"), "-c", "import bullpen.tui.app, bullpen.web.app"], alone)
    except subprocess.SubprocessError as error:
        return f"With Python {version}: {error}\n{getattr(error, 'output', '')}"
    print(f"With {python}: installed, and the demo ran.")
    return ""


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(
        command,
        env=environment,
        cwd=environment["HOME"],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=DEMO_SECONDS,
    )


if __name__ == "__main__":
    sys.exit(main())
