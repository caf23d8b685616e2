"""Patterns that are compiled when they are first used."""

import re
import subprocess
import sys

from bullpen.text.patterns import pattern


def test_it_is_used_like_a_compiled_pattern() -> None:
    lazy = pattern("(a)|b", re.IGNORECASE)

    for _ in range(2):
        assert [found[0] for found in lazy.finditer("xAbx")] == ["A", "b"]
        assert lazy.sub("-", "aBc") == "--c"
        assert lazy.fullmatch("ab") is None
    assert (lazy.pattern, lazy.groups) == ("(a)|b", 1)


def test_the_grammar_of_markers_is_not_compiled_before_somebody_writes() -> None:
    program = "import re, bullpen.markers.grammar as grammar; print(any('TEAM_TASK' in str(key) for key in re._cache))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
