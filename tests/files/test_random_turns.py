"""What a turn changed is known exactly, can be taken back, and nothing of the person's repository is touched."""

from pathlib import Path

import pytest
from tests.files.random_turns import check_turns


@pytest.mark.parametrize("seed", range(12))
def test_random_turns(seed: int, tmp_path: Path) -> None:
    check_turns(tmp_path, seed)
