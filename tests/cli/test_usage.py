"""bullpen usage, on real files."""

import csv
import io
import json
from pathlib import Path

import pytest

from bullpen.cli import main
from bullpen.conversation.owner import this_process
from bullpen.messages import ConversationMessage
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, KAI, prompt_for, write_example
from bullpen.turn_events import Usage

Printed = pytest.CaptureFixture[str]
DAY = 24 * 3600 * 1000
NOON = 1_794_830_400_000 - 1_794_830_400_000 % DAY + DAY // 2


def printed(capsys: Printed, *words: str) -> str:
    assert main(["usage", *words]) == 0
    return capsys.readouterr().out


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "conversations.db"
    with SqliteStore(path) as store:
        write_example(store)
    return path


def add_turns(path: Path, *used: tuple[str, int, Usage | None]) -> None:
    """Store a conversation with one turn for each: of whom, when, and what it used."""
    team = '[[member]]\nname = "kai"\n[[member]]\nname = "max"\nagent = "codex"\nmodel = "mine"\n'
    with SqliteStore(path) as store:
        store.create("new", team="t", team_file=team, started_at=NOON)
        owner = this_process()
        store.claim("new", owner, is_alive=lambda _: False)
        for number, (member, at, usage) in enumerate(used, start=1):
            asked = ConversationMessage(id=f"m{number}", content="Go", speaker=KAI, timestamp=at)
            turn = WaitingTurn(id=str(number), member=member, message_id=asked.id)
            store.append("new", asked, turns=[turn], owner=owner)
            store.start_turn("new", turn.id, owner=owner, given=prompt_for(member, [asked]), at=at)
            store.end_turn("new", TurnEnd(turn_id=turn.id, state="cancelled", at=at + 1500, usage=usage), owner=owner)
        store.release("new", owner)


def test_what_members_used(database: Path, capsys: Printed) -> None:
    lines = printed(capsys, "--db", str(database)).splitlines()

    assert lines[0].split() == ["member", "turns", "failed", "time", "in", "cached", "out", "cost"]
    assert [line.split()[0] for line in lines[1:]] == ["max", "sarah", "total"]
    assert lines[1].split()[1:3] == ["3", "1"]
    assert lines[-1].split()[-1] == "$0.0369"
    assert "~" not in "".join(lines)


def test_estimates_are_marked_and_what_nobody_knows_is_not_nothing(database: Path, capsys: Printed) -> None:
    estimate = Usage(input_tokens=1000, output_tokens=10, cost_usd=0.5, is_estimate=True, model="gpt-5")
    add_turns(database, ("max", NOON, estimate), ("max", NOON + DAY, Usage(input_tokens=7)), ("max", NOON, None))

    said = printed(capsys, "--by", "model", "--db", str(database))
    assert [line.split()[0] for line in said.splitlines()[1:5]] == ["gpt-5", "unknown", "mine", "total"]
    assert "~$0.50" in said
    assert "~ is an estimate" in said
    assert "1 turn used tokens whose price nobody knows" in said


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("member", {"max", "sarah"}),
        ("agent", {"claude", "codex"}),
        ("conversation", {EXAMPLE_ID, "new"}),
        ("model", {"unknown", "mine", "gpt-5"}),
    ],
)
def test_what_a_row_is(database: Path, capsys: Printed, by: str, names: set[str]) -> None:
    add_turns(database, ("max", NOON, Usage(input_tokens=7, model="gpt-5")), ("max", NOON, Usage(input_tokens=7)))

    table = json.loads(printed(capsys, "--by", by, "--json", "--db", str(database)))
    assert table["by"] == by
    assert {row["name"] for row in table["rows"]} == names
    for key in ("turns", "failures", "input_tokens", "output_tokens", "unpriced"):
        assert table["total"][key] == sum(row[key] for row in table["rows"])


def test_days_are_in_order_and_older_ones_can_be_left_out(database: Path, capsys: Printed) -> None:
    add_turns(database, ("max", NOON + DAY, None), ("max", NOON, None))
    only = ("new", "--by", "day", "--csv", "--db", str(database))

    header, *rows = csv.reader(io.StringIO(printed(capsys, *only)))
    assert header[:4] == ["day", "turns", "failures", "seconds"]
    assert [row[1:4] for row in rows] == [["1", "0", "1.5"]] * 2
    assert rows == sorted(rows)
    (later,) = list(csv.reader(io.StringIO(printed(capsys, *only, "--since", rows[1][0]))))[1:]
    assert later == rows[1]


def test_nothing_and_nonsense(tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    assert printed(capsys) == "Nothing has been used: no turn has ended.\n"
    with pytest.raises(SystemExit, match="2"):
        main(["usage", "--since", "yesterday"])
    assert "must be a day such as 2026-11-16" in capsys.readouterr().err
    assert main(["usage", "--db", str(tmp_path / "none.db")]) == 1
