"""What models cost: which list counts, under which names, and what is not a list."""

import json
import re
from datetime import date
from pathlib import Path

import pytest

from bullpen.cli import main
from bullpen.config import prices_file
from bullpen.errors import BullpenError
from bullpen.prices.lists import Prices, our_list, read_list
from bullpen.prices.price import Price
from bullpen.turn_events import Usage

MINE = Price(input=1.0, output=4.0, cached=0.5)
MILLION = 1_000_000


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))


def test_our_list_has_a_day_and_prices_that_can_be() -> None:
    ours = our_list()

    assert date.fromisoformat(ours.date)
    assert len(ours.prices) > 30
    for model, price in ours.prices.items():
        assert model == model.lower()
        assert 0 < (price.cached or price.input) <= price.input < price.output


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gpt-5.1", True),
        ("GPT-5.1", True),
        ("openai/gpt-5.1", True),
        ("gpt-5.1-2025-11-13", True),
        ("claude-haiku-4-5-20251001", True),
        ("gpt-5.1-turbo", False),
        ("gpt-5.", False),
        ("gpt", False),
        ("", False),
        (None, False),
    ],
)
def test_a_model_is_known_by_its_whole_name(model: str | None, known: bool) -> None:
    assert (Prices({}).of(model) is not None) is known


def test_tokens_cost_what_they_are() -> None:
    usage = Usage(input_tokens=3 * MILLION, cached_tokens=2 * MILLION, output_tokens=MILLION)

    assert MINE.of(usage) == 1 * 1.0 + 2 * 0.5 + 1 * 4.0
    assert Price(input=1.0, output=4.0).of(usage) == 3 * 1.0 + 4.0


@pytest.mark.parametrize("usage", [Usage(input_tokens=-5, output_tokens=-5), Usage(cached_tokens=9 * MILLION)])
def test_what_no_agent_can_have_used_costs_nothing(usage: Usage) -> None:
    assert MINE.of(usage) == 0


def test_an_estimate_is_marked_and_what_a_cli_reports_is_not_touched() -> None:
    prices, used = Prices({"mine": MINE}), Usage(input_tokens=MILLION)

    estimate = prices.estimated(used, "Mine")
    assert (estimate.cost_usd, estimate.is_estimate, estimate.model) == (1.0, True, "Mine")
    reported = prices.estimated(Usage(input_tokens=MILLION, cost_usd=0.0), "mine")
    assert (reported.cost_usd, reported.is_estimate) == (0.0, False)
    unknown = prices.estimated(used, "theirs")
    assert (unknown.cost_usd, unknown.is_estimate) == (None, False)


def test_a_team_file_counts_before_what_was_imported_and_that_before_ours(tmp_path: Path) -> None:
    file = tmp_path / "list.toml"
    file.write_text('[prices]\n"gpt-5" = { input = 7, output = 8 }\nmine = { input = 2, output = 3 }\n')
    assert main(["prices", "--import", str(file)]) == 0

    prices = Prices({"mine": MINE})
    assert prices.of("gpt-5") == Price(input=7.0, output=8.0)
    assert prices.of("mine") == MINE
    assert prices.of("gpt-5.1") == our_list().prices["gpt-5.1"]
    assert main(["prices", "--forget"]) == 0
    assert Prices({}).of("gpt-5") == our_list().prices["gpt-5"]


def test_a_public_list_in_json_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public = {
        "sample": {"max_tokens": 1},
        "a": {"input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1e-07},
        "b": {"input_cost_per_token": 0, "output_cost_per_token": "free"},
        "c": None,
    }
    file = tmp_path / "public.json"
    file.write_text(json.dumps(public))

    assert main(["prices", "--import", str(file)]) == 0
    assert "1 price from" in capsys.readouterr().out
    assert Prices({}).of("a") == Price(input=1.25, output=10.0, cached=0.1)
    assert main(["prices", "a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a"] == {"input": 1.25, "output": 10.0, "cached": 0.1}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"{",
        b"[prices",
        b"\xff",
        b"prices = 1",
        b"[prices]\na = 1",
        b"[prices]\na = { input = -1, output = 1 }",
        b"[prices]\na = { input = nan, output = 1 }",
        b"[prices]\na = { input = 1 }",
        b"[prices]\na = { input = 1, output = 1, cash = 1 }",
        b"{" * 100_000,
    ],
)
def test_what_is_not_a_list_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    with pytest.raises(BullpenError, match=re.escape(f"{file} is not a list of prices: ")):
        read_list(file, content)


def test_a_broken_import_is_told_of_and_lets_no_turn_fail(capsys: pytest.CaptureFixture[str]) -> None:
    prices_file().parent.mkdir(parents=True, exist_ok=True)
    prices_file().write_text("{")

    assert Prices({}).of("gpt-5") == our_list().prices["gpt-5"]
    assert main(["prices"]) == 1
    assert "is not a list of prices" in capsys.readouterr().err
    assert main(["prices", "--forget"]) == 0
    assert main(["prices"]) == 0


def test_the_table_says_of_which_day_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prices", "gpt-5.1-codex-mini"]) == 0
    head, row, _, about = capsys.readouterr().out.splitlines()
    assert head.split() == ["model", "input", "cached", "output", "from"]
    assert row.split() == ["gpt-5.1-codex-mini", "0.25", "0.025", "2", "bullpen"]
    assert our_list().date in about
    assert main(["prices", "nothing-like-it"]) == 1
