"""`python -m tests.torture.with_mistake NAME ARGUMENTS`: the command line with a one-line mistake, "" for none."""

import sys
import tempfile
from pathlib import Path

from bullpen.agents import guardian, guardian_program
from bullpen.cli import main

IN_GUARDIAN = {
    "orphans are not adopted": ("_PR_SET_CHILD_SUBREAPER, 1", "_PR_SET_CHILD_SUBREAPER, 0"),
    "children are asked, not killed": ("os.kill(child, signal.SIGKILL)", "os.kill(child, signal.SIGTERM)"),
    "only the first generation is killed": ("        if not _has_children():\n", "        if True:\n"),
    "a family is only killed after a turn": (
        "    _end_children()\n    _say",
        "    is_over and _end_children()\n    _say",
    ),
}
"""What is written in the guardian, and what instead of it."""

NO_GUARDIAN = "no guardian"
"""Not a mistake, but a system on which there cannot be one."""


def plant(name: str, folder: Path) -> None:
    """Let this process use a guardian with a mistake."""
    right, wrong = IN_GUARDIAN[name]
    source = Path(guardian_program.__file__).read_text(encoding="utf-8")
    if source.count(right) != 1:
        raise ValueError(f"the guardian does not contain this exactly once: {right}")
    changed = folder / "guardian_program.py"
    changed.write_text(source.replace(right, wrong), encoding="utf-8")
    guardian_program.__file__ = str(changed)


if __name__ == "__main__":
    name = sys.argv.pop(1)
    with tempfile.TemporaryDirectory() as folder:
        if name == NO_GUARDIAN:
            guardian.is_possible = False
        elif name:
            plant(name, Path(folder))
        sys.exit(main())
