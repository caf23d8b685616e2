"""Genuine CLIs, each asked for a yes before each command; tests/agents/real_cli/trials.py does it."""

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture
from tests.agents.real_cli import install, isolation
from tests.agents.real_cli.trials import EVERY_CLI, Trials

from bullpen.agents.dialogue import Dialogue
from bullpen.approvals import Answer
from bullpen.turn_events import ApprovalAsked

COMMANDS: dict[Size, int] = {"small": 4, "full": 200}
"""For each CLI."""
IN_ONE_TURN = 20
"""More would reach limits of CLIs: of steps, and of refusals in a turn."""
EARLY = "every question is answered with yes before a person has answered"


def run(size: Size, seed: int) -> Outcome:
    """Let one CLI after the other ask."""
    return _outcome(EVERY_CLI, COMMANDS[size], seed)


def run_with_fault(seed: int) -> Outcome:
    """Do it with one of them, and a yes before people have answered."""
    return _outcome(("codex",), 3 * COMMANDS["small"], seed, EARLY)


def _outcome(clis: tuple[str, ...], commands: int, seed: int, fault: str = "") -> Outcome:
    if not install.is_installed():
        return Outcome(tried=0, unit="questions", skipped="the genuine agent CLIs are not installed")
    found = tortured("commands_of_clis", ",".join(clis), str(commands), str(seed), fault)
    counts = Counter(found["counts"])
    return Outcome(
        tried=counts.pop("questions", 0), unit="questions", failures=tuple(found["problems"]), figures=dict(counts)
    )


def answer_early() -> None:
    """Let every agent hear a yes at once."""
    real = Dialogue.on_asked

    def on_asked(self: Dialogue, question: ApprovalAsked) -> None:
        real(self, question)
        self._driver.answer(question.id, Answer(verdict="yes"))
        self.send()

    setattr(Dialogue, "on_asked", on_asked)  # noqa: B010


def trials_of(clis: list[str], commands: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return what all trials found, some of them in each turn."""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    for cli in clis:
        for number, first in enumerate(range(0, commands, IN_ONE_TURN)):
            trials = Trials(cli, Path(tempfile.mkdtemp(dir=folder)), seed + number)
            try:
                trials.run(min(IN_ONE_TURN, commands - first))
            except Exception as error:
                problems.append(f"{cli}: {type(error).__name__}: {error}")
            counts["questions"] += trials.counts["questions"]
            counts.update({f"{cli}: {answer}": trials.counts[answer] for answer in ("yes", "no")})
            problems += trials.problems
    return {"counts": counts, "problems": problems}


TORTURE = Torture(
    name="nothing runs before the yes",
    does=(
        'The genuine Claude Code, Codex, Gemini CLI, Qwen Code and OpenCode run with `permissions = "ask"`, each with '
        "a model that wants one command after the other, and the same ones again. People say yes or no at random."
    ),
    promise="no command writes anything before its yes, each yes lets it run once, and none runs after a no.",
    run=run,
    fault=f"{EARLY}.",
    seen_as="ran without a yes",
    run_with_fault=run_with_fault,
    order=7,
)


if __name__ == "__main__":
    clis_, commands_, seed_, fault_, folder_ = sys.argv[1:]
    os.environ["PATH"] = f"{install.binaries()}{os.pathsep}{os.environ['PATH']}"
    os.environ["XDG_STATE_HOME"] = f"{folder_}/state"
    if fault_:
        answer_early()
    with isolation.loopback_only():
        print(json.dumps(trials_of(clis_.split(","), int(commands_), int(seed_), Path(folder_))))
