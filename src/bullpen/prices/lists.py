"""Prices: the price of each model. A team file says it, else what a person has imported, else the list we come with."""

import logging
import math
import re
import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.config import prices_file
from bullpen.errors import BullpenError
from bullpen.prices.price import MILLION, Price
from bullpen.turn_events import Usage

logger = logging.getLogger(__name__)

OURS = "list.toml"
# A vendor's names end with a day, and some CLIs put the vendor before them.
_DAY = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d)$")


class PriceList(Struct, frozen=True, kw_only=True):
    """Prices that were true on a day."""

    date: str
    prices: dict[str, Price]


class Prices:
    """What models cost in a conversation. Lists are read when the first model is asked for."""

    def __init__(self, of_team: Mapping[str, Price]) -> None:
        self._of_team = of_team

    @cached_property
    def _all(self) -> list[dict[str, Price]]:
        try:
            imported = imported_list()
        except BullpenError as error:
            # `bullpen prices` says so; a turn does not fail because of it.
            logger.warning("%s", error)
            imported = None
        found = (self._of_team, imported.prices if imported else {}, our_list().prices)
        return [{form: price for model, price in one.items() for form in _forms(model)[::-1]} for one in found]

    def estimated(self, usage: Usage, model: str, named: str = "") -> Usage:
        """Return what a turn used with what that costs, if its CLI reports no money. The unknown stays so."""
        usage = replace(usage, model=model)
        if usage.cost_usd is not None or (price := self.of(model) or self.of(named)) is None:
            return usage
        return replace(usage, cost_usd=price.of(usage), is_estimate=True)

    def of(self, model: str | None) -> Price | None:
        """Return the price of a model; None if nobody knows it."""
        for prices in self._all:
            for form in _forms(model or ""):
                if price := prices.get(form):
                    return price
        return None


def _forms(model: str) -> list[str]:
    """Return a name as it is, without its vendor, and without its day; the most exact first."""
    name = model.lower()
    short = name.rpartition("/")[2]
    return list(dict.fromkeys([name, _DAY.sub("", name), short, _DAY.sub("", short)]))


@cache
def our_list() -> PriceList:
    """Return the list that bullpen comes with."""
    return msgspec.toml.decode(Path(__file__).with_name(OURS).read_bytes(), type=PriceList)


def imported_list() -> PriceList | None:
    """Return the list that a person has imported; None if there is none. A broken one raises BullpenError."""
    path = prices_file()
    try:
        return read_list(path, path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BullpenError(f"{path} cannot be read: {error.strerror}. Fix that, or remove it.") from error


def read_list(path: Path, content: bytes) -> PriceList:
    """Return the list in a file: TOML as ours, or JSON with the cost of a token of each model."""
    try:
        if not content.lstrip().startswith(b"{"):
            found = tomllib.loads(content.decode())
        elif "prices" not in (found := msgspec.json.decode(content, type=dict[str, Any])):
            return _checked(PriceList(date="", prices=dict(_of_each_token(found))))
        return _checked(msgspec.convert({**found, "date": str(found.get("date", ""))}, PriceList))
    except (ValueError, OverflowError, RecursionError) as error:
        like = '"my-model" = { input = 1.25, output = 10 } below [prices]'
        raise BullpenError(f"{path} is not a list of prices: {error}. Write, for example, {like}.") from error


def _checked(found: PriceList) -> PriceList:
    for model, price in found.prices.items():
        if not all(0 <= number < math.inf for number in (price.input, price.output, price.cached or 0)):
            raise ValueError(f"the price of {model} is not a number of US dollars, 0 or more")
    return found


def _of_each_token(models: Mapping[str, Any]) -> list[tuple[str, Price]]:
    """Return the prices of a public list in JSON: for each model, the dollars of one token."""
    prices = []
    for model, about in models.items():
        names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
        costs = [about.get(name) for name in names] if isinstance(about, dict) else []
        entered, said, cached = (_per_million(cost) for cost in costs or (None, None, None))
        if entered is not None and said is not None:
            prices.append((model, Price(input=entered, output=said, cached=cached)))
    if not prices:
        raise ValueError("no model in it has an input_cost_per_token and an output_cost_per_token")
    return prices


def _per_million(cost: object) -> float | None:
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    return round(float(cost) * MILLION, 6) if is_number and cost >= 0 else None  # type: ignore[arg-type, operator]
