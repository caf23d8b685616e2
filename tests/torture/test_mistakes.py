"""The mistakes that torture plants fit the product as it is."""

import importlib
from pathlib import Path

import pytest
from tests.torture.file_mistakes import MISTAKES


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_exactly_one_place(name: str) -> None:
    mistake = MISTAKES[name]
    file = importlib.import_module(mistake.module).__file__

    assert file is not None
    assert Path(file).read_text(encoding="utf-8").count(mistake.right) == 1
