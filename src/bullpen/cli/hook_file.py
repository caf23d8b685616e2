"""The git hook that asks for a second opinion: where it goes, what is in it, and that it never replaces another one."""

import re
import shlex
import shutil
import sys
from pathlib import Path

from bullpen.cli.git import git_path
from bullpen.cli.typed_commands import PROGRAMS
from bullpen.errors import BullpenError

HOOK = """\
#!/bin/sh
# Written by `bullpen hook install`, and removed by `bullpen hook remove`. Once without it: git commit --no-verify
if [ -x {program} ]; then exec {command} hook run {words}; fi
if command -v bullpen > /dev/null; then exec bullpen hook run {words}; fi
echo 'bullpen is not installed any more, so nobody was asked about this commit.' >&2
exit {otherwise}
"""
_OURS = re.compile(re.sub(r"\\\{\w+\\\}", ".*", re.escape(HOOK)))
EXECUTABLE = 0o755


def hook_place() -> Path:
    """Return where git looks for the hook of this repository, for all of its worktrees."""
    folder = git_path("--git-path", "hooks")
    inside = [git_path("--show-toplevel"), git_path("--git-common-dir")]
    if not any(folder.is_relative_to(one) for one in inside):
        raise BullpenError(
            f"git is told to look for hooks in {folder} (core.hooksPath), which is not in this repository, so nothing "
            "was changed there. Add this line to a pre-commit hook of your own: bullpen hook run FILE || exit"
        )
    return folder / "pre-commit"


def install_hook(place: Path, team: Path, options: list[str], *, is_strict: bool) -> bool:
    """Write the hook, and return whether there was none of ours before; any other one stays as it is."""
    words = shlex.join([*options, str(team)])
    text = HOOK.format(
        program=shlex.quote(_bullpen()[0]),
        command=shlex.join(_bullpen()),
        words=words,
        otherwise=1 if is_strict else 0,
    )
    before = _hook(place)
    if before is not None and not _OURS.fullmatch(before):
        raise BullpenError(
            f"{place} exists already and was not changed. To ask for a second opinion as well, add this line to it: "
            f"bullpen hook run {words} || exit"
        )
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if before is not None:
            place.unlink()
        with place.open("x", encoding="utf-8") as file:
            file.write(text)
        place.chmod(EXECUTABLE)
    except OSError as error:
        raise BullpenError(f"{place} cannot be written: {error.strerror}.") from error
    return before is None


def remove_hook(place: Path) -> None:
    """Remove the hook if it is ours as we wrote it."""
    before = _hook(place)
    if before is None:
        raise BullpenError(f"There is no {place}.")
    if not _OURS.fullmatch(before):
        raise BullpenError(f"{place} is not as bullpen wrote it, so it was not removed. Remove `bullpen hook` from it.")
    place.unlink()


def _hook(place: Path) -> str | None:
    """Return what is in a hook that is there; None if there is none. A link that leads nowhere is one, too."""
    if not place.exists() and not place.is_symlink():
        return None
    try:
        return "" if place.is_symlink() else place.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _bullpen() -> list[str]:
    """Return the command that runs bullpen as it runs now: a hook may be started where the PATH is another one."""
    program = shutil.which(sys.argv[0]) if Path(sys.argv[0]).name in PROGRAMS else None
    # Without -P, a folder called bullpen in the repository would be run instead.
    return [str(Path(program).absolute())] if program else [sys.executable, "-P", "-m", "bullpen"]


def top_folder() -> Path:
    """Return the top folder of the worktree that we are in."""
    return git_path("--show-toplevel")
