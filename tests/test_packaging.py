"""What is installed: the name of the distribution, its extras, and what make installs for what."""

import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path
from shutil import copy

import pytest
from tests import package

import bullpen
from bullpen import errors
from bullpen.errors import MissingExtra

ROOT = Path(__file__).parent.parent
TEXTS = (".py", ".md", ".toml", ".html", ".txt", ".sh", "Makefile")


def test_what_is_built_is_whole_and_says_what_it_is(tmp_path: Path) -> None:
    built = package.build(package.copied(tmp_path))

    assert [*package.contents(built), *package.metadata(built.wheel)] == []
    with zipfile.ZipFile(built.wheel) as archive:
        (place,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        needed = message_from_bytes(archive.read(place)).get_all("Requires-Dist", [])
    assert {"textual", "starlette"} <= {one.split(">")[0] for one in needed if one.endswith("extra == 'all'")}


def test_what_is_wrong_with_a_package_is_named(tmp_path: Path) -> None:
    source = package.copied(tmp_path)
    (source / "src/bullpen/stray.py").touch()
    (source / "src/bullpen/py.typed").unlink()
    settings = (source / "pyproject.toml").read_text().replace('bullpen-chat = "bullpen', 'other = "bullpen')
    (source / "pyproject.toml").write_text(settings.replace(">=3.11", ">=3.12"))

    built = package.build(source)

    wheel, sdist = built.wheel.name, built.sdist.name
    assert [*package.contents(built), *package.metadata(built.wheel)] == [
        f"{sdist} lacks src/bullpen/py.typed.",
        f"{sdist} has src/bullpen/stray.py, which git does not know.",
        f"{wheel} lacks bullpen/py.typed.",
        f"{wheel} has bullpen/stray.py, which git does not know.",
        f"{wheel} has the Requires-Python '>=3.12', not '>=3.11'.",
        f"{wheel} brings no program bullpen-chat.",
    ]


def test_a_hint_names_the_distribution_or_the_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = "This needs starlette, which is not installed. Try: pip install"

    assert str(MissingExtra("web", "starlette")) == f"{said} '{ROOT}[web]'"
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "site-packages" / "bullpen" / "errors.py"))
    assert str(MissingExtra("web", "starlette")) == f"{said} 'bullpen-chat[web]'"


def test_nothing_tells_people_to_install_somebody_elses_package() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    wrong = re.compile(r"(?:pipx?|tool) install .*[ '\"]bullpen(?![\w.-])|[ '\"]bullpen\[(?:tui|web|all)")
    files = [ROOT / name for name in listed.stdout.splitlines() if name.endswith(TEXTS)]
    if not files:
        pytest.skip("this is not a clone")

    read = {file: file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()}
    assert [file for file, text in read.items() if file != Path(__file__) and wrong.search(text)] == []


@pytest.mark.foreign  # make may be called otherwise
@pytest.mark.parametrize(("target", "installs_everything"), [("demo", False), ("example", False), ("test", True)])
def test_only_what_needs_it_installs_everything(target: str, installs_everything: bool, tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements.txt"):
        copy(ROOT / name, tmp_path)

    would_run = subprocess.run(["make", "-n", target], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert ("requirements.txt" in would_run) is installs_everything
    # Building the package takes longer than installing what it needs.
    assert ("--editable ." in would_run) is installs_everything


@pytest.mark.foreign  # pip looks for packages where it is told to: on the network
def test_after_the_demo_the_command_can_be_called_from_anywhere(tmp_path: Path) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        copy(ROOT / name, clone)
    (clone / "src").symlink_to(ROOT / "src")

    subprocess.run(["make", f"PYTHON={sys.executable}", ".venv/bin/bullpen"], cwd=clone, check=True)

    program = [str(clone / ".venv" / "bin" / "bullpen"), "--version"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"bullpen {bullpen.__version__}\n", "")
