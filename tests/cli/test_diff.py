"""bullpen diff and /diff, on a real file."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.view.changed import RECORDS, write_changes

from bullpen.cli import main
from bullpen.cli.plain.diff import diff_lines
from bullpen.store.sqlite import SqliteStore
from bullpen.terminal.colors import Colours
from bullpen.testing.conversations import EXAMPLE_ID

Printed = pytest.CaptureFixture[str]

TURN_1 = """\
max changed 3 files in turn 1 (+2 −1).  2025-03-03 09:02

src/login.py  +2 −1
@@ -1,4 +1,5 @@ import http
1 1   def login(user):
2   −     return None
  2 +     cookie = "\ufffd[2J深"
  3 +     return cookie
3 4
4 5   # end

moved b.txt  renamed

logo.png  new, binary
"""
TURN_1 = TURN_1.replace("moved b.txt  r", "notes b.txt → moved b.txt  r")
TURN_3 = """\
sarah changed 1 file in turn 3 (+2).  2025-03-03 09:06

test_login.py  new, +2
@@ -0,0 +1,2 @@
  1 + def test_login():
  2 +     assert login("kai")
"""


@pytest.fixture
def changed(database: Path) -> Path:
    with SqliteStore(database) as store:
        write_changes(store)
    return database


def printed(capsys: Printed, *words: str, code: int = 0) -> str:
    assert main(["diff", *words]) == code
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1"], TURN_1),
        (["#2", "--session", "q"], TURN_1),
        (["3"], TURN_3),
        ([], TURN_3),
        (["2"], "What max changed in turn 2 is not known. There is no git here.  2025-03-03 09:04\n"),
    ],
)
def test_what_a_turn_changed(changed: Path, capsys: Printed, words: list[str], expected: str) -> None:
    assert printed(capsys, *words) == expected


def test_from_one_turn_to_another_with_what_people_changed_meanwhile(changed: Path, capsys: Printed) -> None:
    assert printed(capsys, "1..2", "--stat").splitlines() == [
        "max changed 3 files in turn 1 (+2 −1).  2025-03-03 09:02",
        "Somebody changed 1 file between turns (+1 −1).  2025-03-03 09:03",
        "What max changed in turn 2 is not known. There is no git here.  2025-03-03 09:04",
        "",
        "logo.png  new, binary",
        "notes b.txt → moved b.txt  renamed",
        "src/login.py  +3 −2",
        "3 files, +3 −2",
    ]
    assert "# the end" in printed(capsys, "1..3")
    assert "# the end" not in printed(capsys, "2..")
    assert printed(capsys, "..1") == TURN_1


def test_what_was_merged_as_it_was_is_shown_once(changed: Path, capsys: Printed) -> None:
    turn = RECORDS[0]
    merge = replace(turn, kind="merge", changes=replace(turn.changes, folder="/shared"))
    with SqliteStore(changed) as store:
        store.add_changes(EXAMPLE_ID, merge)
    lines = printed(capsys, "1", "--stat").splitlines()
    assert lines[1].startswith("max, turn 1, merged: 3 files (+2 −1).")
    assert lines[3:] == [
        "logo.png  new, binary",
        "notes b.txt → moved b.txt  renamed",
        "src/login.py  +2 −1",
        "3 files, +2 −1",
    ]
    whole = printed(capsys, "1")
    assert (whole.count("src/login.py"), whole.count("merged: 3 files")) == (1, 1)
    assert main(["sessions", "export", EXAMPLE_ID, "--format", "md"]) == 0
    exported = capsys.readouterr().out
    assert (exported.count("return cookie"), exported.count("turn 1, merged: 3 files (+2 −1).")) == (1, 1)
    assert len(json.loads(printed(capsys, "1", "--json"))) == 2


def test_a_merge_that_differs_from_its_turn_is_shown_too(changed: Path, capsys: Printed) -> None:
    turn = RECORDS[0]
    merge = replace(turn, kind="merge", changes=replace(turn.changes, folder="/shared", files=turn.changes.files[:1]))
    with SqliteStore(changed) as store:
        store.add_changes(EXAMPLE_ID, merge)
    assert printed(capsys, "1").count("src/login.py") == 2


def test_what_was_taken_back_is_not_left_in_the_end(changed: Path, capsys: Printed) -> None:
    lines = printed(capsys, "all", "--stat").splitlines()

    assert "kai took back turn 3: 1 file (−2).  2025-03-03 09:06" in lines
    assert "test_login.py" not in "\n".join(lines)


def test_json_has_everything_and_with_stat_no_patch(changed: Path, capsys: Printed) -> None:
    (whole,) = json.loads(printed(capsys, "1", "--json"))
    (names,) = json.loads(printed(capsys, "1", "--json", "--stat"))

    assert whole["changes"]["patch"] == RECORDS[0].changes.patch
    assert (whole["number"], whole["member"], len(whole["changes"]["files"])) == (1, "max", 3)
    assert "patch" not in names["changes"]


def test_nothing_that_was_changed_is_said(database: Path, capsys: Printed) -> None:
    assert printed(capsys, code=1).startswith(f"No change of files is recorded in {EXAMPLE_ID}.")
    assert printed(capsys, "--json", code=1) == "[]\n"


def test_a_turn_without_changes_is_said(changed: Path, capsys: Printed) -> None:
    said = printed(capsys, "4", code=1)
    command = f"bullpen diff all --stat --session {EXAMPLE_ID}"
    assert said == f"No change of files is recorded there. `{command}` shows everything in this conversation.\n"
    assert main(command.split()[1:]) == 0


@pytest.mark.parametrize("reference", ["77", "3..1", "#1", "1..77"])
def test_a_turn_that_there_is_not_is_refused(changed: Path, capsys: Printed, reference: str) -> None:
    assert main(["diff", reference]) == 1
    assert capsys.readouterr().err.startswith("bullpen: ")


def test_colours_are_ours_and_nothing_else_is_obeyed() -> None:
    lines = list(diff_lines(RECORDS[:1], Colours(None, on=True)))

    assert any("\x1b[1m" in line for line in lines)
    plain = list(diff_lines(RECORDS[:1], Colours(None, on=False)))
    assert not set("".join(plain)) & set("\x1b\r\t")
    assert "\ufffd[2J深" in "".join(plain)


def test_messages_are_listed_with_what_was_changed_after_them(changed: Path, capsys: Printed) -> None:
    assert main(["sessions", "show", "--last", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert [line for line in lines if line.startswith("±")] == [
        "± What max changed in turn 2 is not known. There is no git here.",
        "± sarah changed 1 file in turn 3 (+2).",
        "± kai took back turn 3: 1 file (−2).",
    ]
