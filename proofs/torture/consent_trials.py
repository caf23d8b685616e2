"""Consent, again and again: `python -m proofs.torture.consent_trials PART COUNT SEED MISTAKE FOLDER`.

Prints what it found as JSON.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from proofs.torture.consent_mistakes import plant

if __name__ == "__main__":
    # Before anything imports the module that has the mistake.
    plant(sys.argv[4], Path(sys.argv[5]))

from proofs.torture.consent_team import HostileTeam, let_commands_ask_as_clis
from proofs.torture.consent_wants import HOSTILE_FILES, attacks, by_another_way, disguised, hostile_folder
from tests.agents.test_every_driver import permitted
from tests.routing.test_verdicts import REASONS, REFUSALS, verdict
from tests.team.test_risky_options import command, documented_rules

from bullpen.agents import agent_spec
from bullpen.agents.driver import Opening
from bullpen.agents.process_tree import TURN_VARIABLE
from bullpen.cli import COMMANDS
from bullpen.team.approval_rules import allowing
from bullpen.turn_events import ApprovalAsked

TURNS_OF_A_TEAM = 20
MOST_PROBLEMS = 50
FREE_COMMANDS = frozenset({"acp", "check", "completion", "doctor", "help", "hook", "mcp", "prices"})
"""They show nothing of a conversation, and change nothing."""
FOUND = dict[str, Any]


def questions(count: int, seed: int, folder: Path) -> FOUND:
    """Let hostile agents ask so many questions."""
    let_commands_ask_as_clis()
    counts: Counter[str] = Counter()
    problems: list[str] = []
    number = 0
    while counts["questions"] < count and len(problems) < MOST_PROBLEMS:
        team = HostileTeam(folder / f"team-{number}", f"{seed} {number}")
        turns = min(TURNS_OF_A_TEAM, 1 + (count - counts["questions"]) // 10)
        asyncio.run(team.play(turns))
        problems += [f"seed {seed}, team {number}: {problem}" for problem in team.wrong(counts)]
        number += 1
    return {"counts": counts, "problems": problems}


def folders(count: int, seed: int, folder: Path) -> FOUND:
    """Ask every driver for edits of files that make programs run, in so many folders: none is done unasked."""
    counts: Counter[str] = Counter()
    problems = []
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        with tempfile.TemporaryDirectory(dir=folder) as name:
            root = Path(name, "project")
            root.mkdir()
            hostile_folder(root, chance)
            for file in chance.sample(HOSTILE_FILES, 4):
                path = by_another_way(root, file, chance)
                for dialect in ("codex", "gemini", "qwen", "opencode", "copilot"):
                    counts["edits of files that make programs run"] += 1
                    if not _is_asked(dialect, str(root), path):
                        problems.append(f"seed {seed}, folder {number}: {dialect} edits {path} unasked")
    counts["folders"] = count
    return {"counts": counts, "problems": problems}


def _is_asked(dialect: str, folder: str, path: str) -> bool:
    """Return whether an edit leads to a question, and to no yes."""
    from proofs.torture.consent_asker import Acp, Codex

    spec = agent_spec(dialect).with_permissions("ask")
    assert spec.driver is not None
    driver = spec.driver(Opening(prompt="x", folder=folder, permissions="ask"))
    speaks = Codex() if dialect == "codex" else Acp()
    replies = speaks.replies
    while driver.outgoing:
        sent, driver.outgoing[:] = list(driver.outgoing), []
        for one in sent:
            if "id" in one and one["method"] != "session/prompt":
                for _ in driver.parse({"jsonrpc": "2.0", "id": one["id"], "result": replies.get(one["method"], {})}):
                    pass
    events = [event for record in speaks.ask("7", "", path, "x\n", folder) for event in driver.parse(record)]
    return any(isinstance(event, ApprovalAsked) for event in events) and not permitted(driver.outgoing)


def rules(count: int, seed: int, _: Path) -> FOUND:
    """Try every rule of the docs with every attack, and so many disguises of what it covers."""
    chance, problems, tried = random.Random(seed), [], 0
    for rule in documented_rules():
        covered = rule.removesuffix("*").rstrip()
        texts = [*attacks(), *(disguised(covered, chance) for _ in range(count))]
        for text in texts:
            tried += 1
            # An assignment before a command, or a longer word, is another command.
            if allowing([rule], command(text)):
                problems.append(f"the rule {rule!r} allows {text!r}")
    return {"counts": {"rules of the docs": len(documented_rules()), "attacks on rules": tried}, "problems": problems}


def verdicts(count: int, seed: int, _: Path) -> FOUND:
    """Let reviewers refuse in so many ways."""
    chance = random.Random(seed)
    texts = [refusal.format(reason) for refusal, reason in product(REFUSALS, REASONS)]
    texts += [
        chance.choice(["", "Well.\n\n", "# Review\n", "> quoted\n\n"])
        + chance.choice(texts)
        + chance.choice(["", "\n", "\n\nSorry.", "\n[NEXT: max]"])
        for _ in range(count)
    ]
    problems = [f"this approves: {text!r}" for text in texts if verdict(text) == "approve"]
    return {"counts": {"refusals that mention approval": len(texts)}, "problems": problems}


def within(count: int, seed: int, folder: Path) -> FOUND:
    """Run every command as an agent would: those that are about conversations refuse."""
    del count, seed
    problems = []
    refused = sorted(set(COMMANDS) - FREE_COMMANDS)
    for name in refused:
        environment = os.environ | {TURN_VARIABLE: "7", "BULLPEN_HOME": str(folder / "home")}
        done = subprocess.run(
            [sys.executable, "-m", "bullpen", name, *ARGUMENTS.get(name, ())],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        if done.returncode == 0 or "agent" not in done.stderr:
            problems.append(f"`bullpen {name}` works within an agent: {done.stdout}{done.stderr}")
    return {"counts": {"commands within an agent": len(refused)}, "problems": problems}


ARGUMENTS = {
    "run": ("hello",),
    "explain": ("last",),
    "preview": ("--to", "max", "hello"),
    "rewind": ("1",),
    "backup": ("backup.db",),
    "restore": ("backup.db",),
    "worker": ("worker.toml", "--pool", "x"),
    "import": ("file.json",),
    "serve": ("--new-address",),
    "move": ("--from", "a.db", "--to", "b.db"),
}
PARTS = {"questions": questions, "folders": folders, "rules": rules, "verdicts": verdicts, "within": within}

if __name__ == "__main__":
    part_, count_, seed_, _, folder_ = sys.argv[1:]
    print(json.dumps(PARTS[part_](int(count_), int(seed_), Path(folder_))))
