"""Tools that edit files show what they change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.turn_events import ToolStarted
from bullpen.view.edits import MOST_ROWS, edits_of
from bullpen.view.steps import Steps

OLD, NEW = "a = 1\nb = 2\n", "a = 1\nb = 3\n"
REPLACED = [" a = 1", "-b = 2", "+b = 3"]
PATCH = """*** Begin Patch
*** Update File: a.py
*** Move to: b.py
@@ def login():
 a = 1
-b = 2
+b = 3
*** Add File: new.py
+x
*** Delete File: gone.py
*** End Patch
"""


def rows_of(tool: str, given: dict[str, Any]) -> dict[str, list[str]]:
    signs = {"context": " ", "added": "+", "removed": "-", "note": "!"}
    return {file.path: [signs[row.kind] + row.text for row in file.rows] for file in edits_of(tool, given)}


@pytest.mark.parametrize(
    ("tool", "given", "rows"),
    [
        ("Edit", {"file_path": "a.py", "old_string": OLD, "new_string": NEW, "replace_all": False}, REPLACED),
        ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": OLD, "new_string": NEW}] * 2}, 2 * REPLACED),
        ("Write", {"file_path": "a.py", "content": "x\ny"}, ["+x", "+y"]),
        ("NotebookEdit", {"notebook_path": "a.py", "new_source": "x"}, ["+x"]),
        ("replace", {"file_path": "a.py", "old_string": OLD, "new_string": NEW, "instruction": "why"}, REPLACED),
        ("edit", {"file_path": "a.py", "old_string": OLD, "new_string": NEW}, REPLACED),
        ("write_file", {"file_path": "a.py", "content": "x\n"}, ["+x"]),
        ("file_change", {"changes": [{"path": "a.py", "kind": "update"}]}, []),
        (
            "file_change",
            {"changes": [{"path": "a.py", "kind": "update", "diff": "@@ -1 +1 @@\n-x\n+y\n"}]},
            ["-x", "+y"],
        ),
    ],
)
def test_every_edit_tool_has_its_rows(tool: str, given: dict[str, Any], rows: list[str]) -> None:
    assert rows_of(tool, given) == {"a.py": rows}


def test_the_patch_that_codex_writes_is_read() -> None:
    assert rows_of("apply_patch", {"input": PATCH}) == {"b.py": REPLACED, "new.py": ["+x"], "gone.py": []}
    found = [(one.title, one.about) for one in edits_of("apply_patch", {"input": PATCH})]
    assert found == [("a.py → b.py", "renamed, +1 −1"), ("new.py", "new, +1"), ("gone.py", "deleted")]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": "ls"}),
        ("Edit", {"file_path": 3, "old_string": "a", "new_string": "b"}),
        ("Edit", {"file_path": "a", "old_string": ["a"], "new_string": "b"}),
        ("MultiEdit", {"file_path": "a", "edits": "none"}),
        ("MultiEdit", {"file_path": "a", "edits": ["x", {"old_string": 1}]}),
        ("apply_patch", {"input": "*** Move to: x\n*** End Patch"}),
        ("file_change", {"changes": ["x", {"kind": "add"}]}),
    ],
)
def test_what_is_not_understood_stays_as_it_is(tool: str, given: dict[str, Any]) -> None:
    assert edits_of(tool, given) == ()
    (step,) = Steps([ToolStarted(id="1", name=tool, input=given)])
    assert step.input


@given(st.text(st.sampled_from("*+-@ \nabc"), max_size=200))
def test_no_patch_is_an_error(noise: str) -> None:
    edits_of("apply_patch", {"input": PATCH.replace("def login():", noise)})
    edits_of("apply_patch", {"input": noise.replace("*", "*** Update File: ")})


def test_a_step_shows_its_diff_in_the_place_of_its_input() -> None:
    (step,) = Steps(
        [ToolStarted(id="1", name="Edit", input={"file_path": "a.py", "old_string": OLD, "new_string": NEW})]
    )

    assert (step.summary, step.input, len(step.edits)) == ("a.py +1 −1", "", 1)


def test_long_edits_are_bounded() -> None:
    edits = [{"old_string": "", "new_string": "x" * 1000}] * 1000

    (file,) = edits_of("MultiEdit", {"file_path": "a", "edits": edits})

    rows = list(file.rows)
    assert len(rows) == MOST_ROWS + 1
    assert rows[-1].text == "… 700 more lines"
    assert (file.added, len(rows[0].text)) == (1000, 501)
