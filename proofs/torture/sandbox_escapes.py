"""Random programs that try to get out of their sandbox, or to leave something in their folder that runs later."""

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from unittest.mock import patch

from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.planting import Planted, each_found, in_words
from proofs.torture.shim import scratch

from bullpen.permissions import Permission
from bullpen.sandbox import bubblewrap, held, layout
from bullpen.sandbox.held import held as holding
from bullpen.sandbox.layout import Surroundings
from bullpen.sandbox.mechanism import mechanism
from bullpen.sandbox.profile import Place
from bullpen.sandbox.rules import OwnFiles, OwnFolder, SandboxRules

bubblewrap_words = bubblewrap._words
SIZES: dict[Size, int] = {"small": 60, "full": 1_000}
TIMEOUT_SECONDS = 30
MOST_RUNS = 6
"""With a hole; what is random may miss it once."""
OWN = OwnFiles(folders=(OwnFolder(path=".tool", settings=("settings.json", "hooks")),), copies=(".tool.json",))
OTHER = OwnFiles(folders=(OwnFolder(path=".other"),))
OUTSIDE = ("home/precious", "beside", "home/.other/login", "home/.ssh/id", "data/conversations.db", "home/.tool.json")
HELD = (
    *(".git/hooks/pre-commit", ".git/config", ".git/info/attributes", ".git/commondir", "team.toml", "opencode.json"),
    *(".claude/settings.json", ".vscode/tasks.json", ".qwen/settings.json", ".pi/extensions/e.js", ".envrc"),
)
OWN_HELD = ("home/.tool/settings.json", "home/.tool/hooks/start")
WAYS = (
    "echo BAD > {target}",
    "echo BAD >> {target}",
    "mkdir -p $(dirname {target}); echo BAD > {target}",
    "rm -rf {target}; echo BAD > {target}",
    "rm -rf $(dirname {target}); mkdir -p $(dirname {target}); echo BAD > {target}",
    "mv $(dirname {target}) $(dirname {target}).old; mkdir -p $(dirname {target}); echo BAD > {target}",
    "rmdir $(dirname {target}); ln -s ../evil $(dirname {target}); echo BAD > {target}",
    "echo BAD > new; mv -f new {target}",
    "echo BAD > new; ln -f new {target}; cp new {target}",
    "ln {target} hard; echo BAD > hard",
    "ln -sf {target} soft; echo BAD > soft",
    "ln -sfn $(dirname {target}) way; echo BAD > way/$(basename {target})",
    "exec 3< {target}; echo BAD > /proc/self/fd/3",
    "echo BAD > /proc/self/root{target}",
    "echo BAD > /proc/1/root{target}",
    "chmod -R u+w $(dirname {target}); echo BAD > {target}",
    "umount -l $(dirname {target}); umount {target}; echo BAD > {target}",
    "mount -o remount,rw,bind $(dirname {target}); echo BAD > {target}",
    "unshare -Urm sh -c 'mount -o remount,rw,bind $(dirname {target}); umount -l {target}; echo BAD > {target}'",
    "unshare -Urm sh -c 'mkdir -p m; mount --rbind / m; echo BAD > m{target}'",
    "setsid -f sh -c 'sleep 0.02; echo BAD > {target}'; sleep 0.05",
    "(sleep 0.01; echo BAD > {target}) & (while :; do echo BAD > {target}; done) 2> /dev/null & sleep 0.03",
)
PERMISSIONS: tuple[Permission, ...] = ("read-only", "edit", "ask")
FIGURES = ("allowed edits that worked", "programs of one step", "programs of several steps")


def run(size: Size, seed: int) -> Outcome:
    """Run random programs, each in a folder, a home and a repository of its own."""
    by = mechanism()
    if not by.works:
        return Outcome(tried=0, unit="programs", failures=(f"nothing can be held here: {by.why_not}",))
    chance = random.Random(seed)
    failures: list[str] = []
    figures = dict.fromkeys(FIGURES, 0)
    with scratch() as folder:
        for number in range(SIZES[size]):
            place = folder / str(number)
            permission = chance.choice(PERMISSIONS)
            steps = [_step(chance, place) for _ in range(chance.choice((1, 1, 2, 4)))]
            figures[FIGURES[1 if len(steps) == 1 else 2]] += 1
            failures += [
                f"seed {seed}, program {number} ({permission}): {what}: {'; '.join(steps)}"
                for what in _broken(place, permission, steps, figures)
            ]
    return Outcome(tried=SIZES[size], unit="programs", failures=tuple(failures), figures=figures)


def _step(chance: random.Random, place: Path) -> str:
    target = chance.choice((*OUTSIDE, *OWN_HELD, *(f"project/{name}" for name in HELD)))
    return chance.choice(WAYS).format(target=place / target)


def _broken(place: Path, permission: Permission, steps: list[str], figures: dict[str, int]) -> Iterator[str]:
    """Yield what a program has changed that it should not."""
    _furnish(place)
    before = _state(place, permission)
    kernel = Path("/proc/sys/kernel/domainname").read_text(encoding="utf-8")
    script = "\n".join([*(f"({step})" for step in steps), "echo good > edited", "echo z > /proc/sys/kernel/domainname"])
    around = Surroundings(
        folder=place / "project",
        command=("sh",),
        environment={"HOME": str(place / "home"), "PATH": os.environ["PATH"]},
        own=OWN,
        others=(OTHER,),
        ours=(place / "data",),
    )
    with holding(around, SandboxRules(is_on=True), permission, mechanism(), place / "notes") as how:
        command = [*how.prefix, "sh", "-c", script]
        subprocess.run(command, check=False, capture_output=True, timeout=TIMEOUT_SECONDS)
    was_edited = (place / "project" / "edited").exists()
    figures[FIGURES[0]] += was_edited
    if was_edited == (permission == "read-only"):
        yield f"its own folder was {'' if was_edited else 'not '}written"
    after = _state(place, permission)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"changed {name}"
    now = Path("/proc/sys/kernel/domainname").read_text(encoding="utf-8")
    if now != kernel:
        Path("/proc/sys/kernel/domainname").write_text(kernel, encoding="utf-8")
        yield "changed a setting of the kernel"


def _furnish(place: Path) -> None:
    project = place / "project"
    for name in (".claude", ".vscode", "evil"):
        (project / name).mkdir(parents=True)
    (place / "evil").mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True, capture_output=True)
    for name in (*OUTSIDE, OWN_HELD[0], *(f"project/{one}" for one in ("team.toml", "opencode.json", ".envrc"))):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("good\n", encoding="utf-8")
    for name in (".claude/settings.json", ".vscode/tasks.json"):
        (project / name).write_text("good\n", encoding="utf-8")


def _state(place: Path, permission: Permission) -> dict[str, str]:
    """Return what must stay as it is: everything outside of the folder, and in it what makes programs run.

    With `ask`, a person's yes is what a file of an editor needs.
    """
    outside = [
        path
        for path in place.rglob("*")
        if path.is_file()
        and not path.is_relative_to(place / "project")
        and "notes" not in path.parts
        # What was set aside makes nothing run.
        and ".set-aside-" not in str(path)
    ]
    asked = (".vscode/tasks.json", ".envrc") if permission == "ask" else ()
    inside = [place / "project" / name for name in HELD if name not in asked]
    return {
        str(path.relative_to(place)): path.read_text(encoding="utf-8", errors="replace")
        for path in (*outside, *inside)
        if path.is_file()
    }


def _without(name: str, value: object) -> Callable[[], AbstractContextManager[object]]:
    return partial(patch.object, layout, name, value)


def _read_is_written(place: Place) -> Iterator[str]:
    yield from bubblewrap_words(Place(path=place.path, access="write") if place.access == "read" else place)


HOLES: dict[str, tuple[Callable[[], AbstractContextManager[object]], str]] = {
    "what may be read may be written": (
        partial(patch.object, bubblewrap, "_words", _read_is_written),
        "changed (home/precious|beside)",
    ),
    "hooks of git are not held": (_without("_OF_GIT", ("config", "info", "modules")), "changed project/.git/hooks"),
    "settings of git are not held": (_without("_OF_GIT", ("hooks", "info", "modules")), "changed project/.git/config"),
    "what is new in .git stays": (_without("_NEW_IN_GIT", ()), "changed project/.git/commondir"),
    "no folder stands in for what is missing": (_without("OF_AGENTS", ()), "changed project/.qwen"),
    "nothing directly in the folder is held": (
        partial(patch.object, layout, "held_in", lambda *_: ()),
        "changed project/(team.toml|opencode|.envrc|.claude|.vscode)",
    ),
    "what could not be held is not put back": (
        partial(patch.object, held, "_put_back", lambda _: ()),
        "changed (home/.tool/hooks|project/.git/commondir)",
    ),
    "settings of the kernel may be written": (
        partial(patch.object, bubblewrap, "KERNEL", ()),
        "changed a setting of the kernel",
    ),
}


def _found(seed: int) -> Iterator[str]:
    for more in range(MOST_RUNS):
        yield from run("small", seed + more).failures


FAULTS = {
    name: Planted(plant, _found, seen_as)
    for name, (plant, seen_as) in HOLES.items()
    # Only root may write those at all.
    if os.getuid() == 0 or "kernel" not in name
}


def run_with_fault(seed: int) -> Outcome:
    """Plant one hole after the other."""
    return each_found(FAULTS, seed)


TORTURE = Torture(
    name="ways out of the sandbox",
    does="Random programs write where they may not, in one step or in several: through links, hard links, "
    "descriptors, /proc, mounts and namespaces of their own, with another folder in place of one, in the background.",
    promise="outside of its folder nothing changes, nor in it what makes programs run; its other files do.",
    run=run,
    fault=in_words(HOLES),
    run_with_fault=run_with_fault,
    seen_as="each of them was found",
    order=24,
)
