"""The same line at once, again and again: `python -m proofs.torture.same_line_trials ROUNDS SEED MISTAKE FOLDER`.

Prints what it found as JSON. After a number of rounds another conversation begins, with new worktrees.
"""

import asyncio
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from proofs.torture.same_line_mistakes import plant

if __name__ == "__main__":
    # Before anything imports the module that has the mistake.
    plant(sys.argv[3], Path(sys.argv[4]))

from tests.conversation.repository_stage import OwnProject
from tests.conversation.same_line import Trials
from tests.conversation.stage import Stage

ROUNDS_PER_CONVERSATION = 25


def played(rounds: int, seed: int, folder: Path) -> dict[str, Any]:
    """Play so many rounds, in as many conversations as that takes."""
    counts: Counter[str] = Counter()
    problems = []
    for first in range(0, rounds, ROUNDS_PER_CONVERSATION):
        stage = Stage(folder / f"from-{first}")
        stage.folder.mkdir()
        stage.limits["identical_replies"] = 1000
        trials = Trials(OwnProject(stage), random.Random(f"{seed} {first}"))
        if wrong := asyncio.run(trials.play(first, min(ROUNDS_PER_CONVERSATION, rounds - first))):
            problems.append(f"seed {seed}, {wrong}")
        counts += trials.counts
    return {"counts": counts, "problems": problems}


if __name__ == "__main__":
    rounds_, seed_, _, folder_ = sys.argv[1:]
    print(json.dumps(played(int(rounds_), int(seed_), Path(folder_))))
