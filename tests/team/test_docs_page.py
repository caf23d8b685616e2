"""docs/team-file.md says what is so: its files run, its errors print like that, its tables leave nothing out."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bullpen.cli import main
from bullpen.cli.trust_question import ensure_trusted
from bullpen.errors import NotTrusted
from bullpen.prices.price import Price
from bullpen.team.file import load_team
from bullpen.team.keys import (
    AGENT_KEYS,
    BUDGET_KEYS,
    CHECK_KEYS,
    DEFAULT_KEYS,
    LIMIT_KEYS,
    PERSON_KEYS,
    PRICE_KEYS,
    SUMMARY_KEYS,
    TEAM_KEYS,
)
from bullpen.team.team import Budget, Check, Limits, Member, SummaryRules, Team

PAGE = (Path(__file__).parents[2] / "docs" / "team-file.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) ?\| .*\|$", re.MULTILINE)
TABLES = [ROW.findall(table) for table in PAGE.split("|---|---|---|---|\n")[1:]]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder on a machine with claude and codex."""
    for name in ("claude", "codex"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "shop").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path.resolve() / "shop"


def test_the_first_file_runs_and_asks_for_trust_as_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(blocks("toml")[0])

    assert main(["check"]) == 0
    assert capsys.readouterr().out == blocks("text")[1]

    with pytest.raises(NotTrusted):
        ensure_trusted(load_team(Path("team.toml")), trust=False)
    assert capsys.readouterr().err.replace(str(folder), "/home/kim/shop") == blocks("text")[-1]


def test_errors_print_as_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text(blocks("toml")[1])

    assert main(["check"]) == 1
    assert capsys.readouterr().out.replace(str(folder), "/home/kim/shop") == blocks("text")[0]


def test_the_commands_of_the_page_work(folder: Path) -> None:
    [console] = blocks("console")
    commands = [line.removeprefix("$ bullpen ").split("#")[0].split() for line in console.splitlines()]

    assert len(commands) == 4
    assert [main([*command, *([] if "shop/" in command else ["--force"])]) for command in commands] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("rows", "keys"),
    [
        (TABLES[0], TEAM_KEYS),
        (TABLES[1], LIMIT_KEYS),
        (TABLES[2], BUDGET_KEYS),
        (TABLES[3], SUMMARY_KEYS),
        (TABLES[4], PRICE_KEYS),
        (TABLES[5], PERSON_KEYS),
        (TABLES[6], {key: kind for key, kind in AGENT_KEYS.items() if key not in PERSON_KEYS}),
        (TABLES[7], CHECK_KEYS),
    ],
    ids=["team", "limits", "budget", "summaries", "prices", "people", "agents", "checks"],
)
def test_the_tables_hold_every_key_and_what_its_value_must_be(
    rows: list[tuple[str, ...]], keys: Mapping[str, Any]
) -> None:
    assert [(key, value) for key, value, _ in rows] == [(key, kind.words) for key, kind in keys.items()]


def test_the_page_lists_the_keys_of_defaults() -> None:
    start = PAGE.index("Its keys are those of")
    listed = PAGE[PAGE.index(":", start) : PAGE.index("`[limits]`", start)]

    assert re.findall(r"`(\w+)`", listed) == list(DEFAULT_KEYS)


def test_the_tables_hold_the_real_defaults() -> None:
    shapes: list[type[msgspec.Struct]] = [Team, Limits, Budget, SummaryRules, Price, Member, Member, Check]
    for shape, rows in zip(shapes, TABLES, strict=True):
        real = {field.name: field.default for field in msgspec.structs.fields(shape)} | {"name": "team"}
        for key, _, said in rows:
            if said.startswith("`"):
                assert said == f"`{shown(real[key])}`", key
            else:
                assert real[key] in (None, "", (), Budget(), msgspec.NODEFAULT) or key == "name", key


def shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case tuple():
            return str(list(value))
        case _:
            return str(value)
