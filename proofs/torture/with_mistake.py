"""`python -m proofs.torture.with_mistake NAME ARGUMENTS`: the command line with a one-line mistake, "" for none."""

import importlib
import sys
import tempfile
from pathlib import Path

from proofs.torture.planting import plant_in

MISTAKES = {
    "orphans are not adopted": (
        "guardian_program",
        "libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)",
        "libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)",
    ),
    "children are asked to end, not killed": (
        "guardian_program",
        "os.kill(child, signal.SIGKILL)",
        "os.kill(child, signal.SIGTERM)",
    ),
    "only the first generation is killed": (
        "guardian_program",
        "        family = _kill_family()\n",
        "        return not [os.kill(child, signal.SIGKILL) for child in _children(os.getpid())]\n",
    ),
    "one generation is killed after the other": (
        "guardian_program",
        "        family = _kill_family()\n",
        "        family = [os.kill(child, signal.SIGKILL) for child in _children(os.getpid())]\n",
    ),
    "a family is killed only after a turn": (
        "guardian_program",
        "    if not _end_family():\n",
        "    if not (is_over and _end_family()):\n",
    ),
    "every owner is taken for alive": (
        "crash_records",
        "return _is_here(record) and process_tree.is_alive(record.owner)",
        "return _is_here(record)",
    ),
    "what was left is only asked to end": (
        "process_tree",
        "signal.SIGTERM if is_patient else signal.SIGKILL",
        "signal.SIGTERM",
    ),
    "the mark of a turn is not looked for": (
        "crash_records",
        "return [*process_tree.processes_of_turn(record.turn_id), *families, *child]",
        "return [*families, *child]",
    ),
    "descendants are not looked for": (
        "crash_records",
        "return [*process_tree.processes_of_turn(record.turn_id), *families, *child]",
        "return [*process_tree.processes_of_turn(record.turn_id), *child]",
    ),
    "a pid is enough to be killed": (
        "process_tree",
        "        if process_id(process.pid) == process:\n            signal.pidfd",
        "        if True:\n            signal.pidfd",
    ),
    "a pid is enough to be an agent": (
        "crash_records",
        "if root is not None and process_tree.is_alive(root)]",
        "if root is not None]",
    ),
    "a pid is enough to be alive": (
        "process_tree",
        "state is not None and state.start_time == process.start_time and not",
        "state is not None and not",
    ),
    "nothing is masked": ("secrets", "    if not text:\n", "    if True:\n"),
    "notices are not masked": (
        "transcript",
        "text=self._shown(text)[:MAX_NOTICE_CHARACTERS]",
        "text=str(text)[:MAX_NOTICE_CHARACTERS]",
    ),
    "output is kept as it is": ("transcript", 'self._shown(line).encode(errors="replace")', "line"),
    "the last lines are cut before they are masked": (
        "transcript",
        "strip_escape_sequences(self._stderr.decode(",
        "strip_escape_sequences(self._stderr[-STDERR_TAIL_BYTES:].decode(",
    ),
    "a private key ends with a dash": (
        "secrets",
        ".*?(?:{_BORDER_OF_KEY.format('END')}|\\Z)",
        "[^-]*",
    ),
    "a block is not a private key": ("secrets", "PRIVATE KEY(?: BLOCK)? ?-", "PRIVATE KEY ?-"),
    "a quotation ends with any mark": ("secrets", "(?:\\\\[^\\n]?+|(?!\\4)[^\\n\\\\])++", "(?:(?!\\4)[^\\n])++"),
    "what is escaped is written in capital letters": ("secrets", "*in_addresses, *lower,", "*in_addresses,"),
    "an address without a name has no password": (
        "secrets",
        "    text = _TOKEN_IN_ADDRESS.sub(",
        "    _TOKEN_IN_ADDRESS.sub(",
    ),
}
"""By name: the module, what is written there exactly once, and what is written instead."""
NO_GUARDIAN = "no guardian"
"""Not a mistake, but a system on which there cannot be one."""


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module."""
    file, right, wrong = MISTAKES[name]
    package = "agents" if file != "secrets" else "text"
    plant_in(f"bullpen.{package}.{file}", right, wrong, folder)


def main() -> None:
    """Run the command line."""
    name = sys.argv.pop(1)
    with tempfile.TemporaryDirectory() as folder:
        if name == NO_GUARDIAN:
            setattr(importlib.import_module("bullpen.agents.guardian"), "is_possible", False)  # noqa: B010
        elif name:
            plant(name, Path(folder))
        sys.exit(importlib.import_module("bullpen.cli").main())


if __name__ == "__main__":
    main()
