"""Nothing runs before the yes, over all CLIs: a few trials here, and a thousand in the torture."""

from pathlib import Path

import pytest
from tests.real_cli.trials import EVERY_CLI, Trials

TRIALS = 8
# OpenCode takes half a minute for a turn on a busy machine.
pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("cli", EVERY_CLI)
def test_nothing_runs_before_the_yes(cli: str, tmp_path: Path) -> None:
    trials = Trials(cli, tmp_path, seed=17)

    trials.run(TRIALS)

    assert trials.problems == []
    assert trials.counts["questions"] == TRIALS
    assert trials.counts["yes"]
    assert trials.counts["no"]
