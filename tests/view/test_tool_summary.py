"""What a tool was asked, in a few words, for every CLI's way to say it."""

from typing import Any

import pytest

from bullpen.text.tool_words import asked_of


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ""),
        ({"command": "pytest -q", "description": "Run the tests"}, "pytest -q"),
        ({"command": "/bin/bash -lc 'ls src'"}, "ls src"),
        ({"cmd": ["git", "commit", "-m", "a b"]}, "git commit -m 'a b'"),
        ({"file_path": "a.py", "old_string": "x"}, "a.py"),
        ({"command": "", "path": "src"}, "src"),
        ({"path": "src", "pattern": "price.*"}, "price.*"),
        ({"changes": [{"path": "a.py", "kind": "update"}, {"path": "b.py"}, "odd"]}, "a.py, b.py"),
        ({"changes": [], "reason": "none"}, '{"changes": [], "reason": "none"}'),
        ({"todo": "write 你好"}, "write 你好"),
        ({"depth": 2}, '{"depth": 2}'),
        ({"a": "x", "b": None}, '{"a": "x", "b": null}'),
        ({"command": {"nested": 1}, "other": 2}, '{"command": {"nested": 1}, "other": 2}'),
    ],
)
def test_the_words_that_tell_most(given: dict[str, Any], words: str) -> None:
    assert asked_of(given) == words
