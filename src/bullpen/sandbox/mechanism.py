"""What can hold a program on this machine; tried once, by letting it hold one that does nothing."""

import os
import shutil
import subprocess
import sys
from functools import cache

from msgspec import Struct

from bullpen.config import program_path
from bullpen.sandbox import bubblewrap

PROBE_SECONDS = 10.0
INSTALL = "Install bubblewrap, for example with: apt-get install bubblewrap"


class Mechanism(Struct, frozen=True, kw_only=True):
    """What holds programs here, or why nothing does."""

    program: str = ""
    why_not: str = ""
    hint: str = ""

    @property
    def works(self) -> bool:
        """Whether programs are held."""
        return bool(self.program)


def mechanism() -> Mechanism:
    """Return what holds programs here. The first time takes as long as to start one."""
    if sys.platform != "linux":
        return Mechanism(why_not="on macOS nothing holds programs yet")
    found = shutil.which(bubblewrap.PROGRAM, path=program_path())
    if found is None:
        return Mechanism(why_not="bubblewrap is not installed", hint=INSTALL)
    return _tried(os.path.realpath(found))


@cache
def _tried(program: str) -> Mechanism:
    command = bubblewrap.probe(program, is_root=os.getuid() == 0)
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=PROBE_SECONDS, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Mechanism(why_not=f"{program} cannot be run: {error}")
    if done.returncode == 0:
        return Mechanism(program=program)
    said = done.stderr.decode(errors="replace").strip().splitlines()[:1] or [f"exit code {done.returncode}"]
    return Mechanism(why_not=f"{program} does not work here: {said[0]}", hint=_hint(said[0]))


def _hint(said: str) -> str:
    if "uid map" in said or "namespace" in said or "ermission" in said:
        return (
            "Unprivileged user namespaces must be allowed: kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns, or the settings of the container."
        )
    return ""
