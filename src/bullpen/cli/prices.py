"""`bullpen prices`: what models cost, for the money of CLIs that report tokens only."""

import argparse
from pathlib import Path

import msgspec

from bullpen.config import prices_file
from bullpen.errors import BullpenError
from bullpen.prices.lists import imported_list, our_list, read_list
from bullpen.prices.price import Price
from bullpen.team.given_file import open_given
from bullpen.team.kept_file import KeptFile
from bullpen.terminal.tables import print_table, safe_line
from bullpen.text.numbers import counted

COLUMNS = ("model", "input", "cached", "output", "from")
OURS, IMPORTED = "bullpen", "imported"
ABOUT = (
    "US dollars for a million tokens. bullpen's own list is of {}. A list of yours: bullpen prices --import FILE. "
    'One model, in a team file: [prices] "my-model" = {{ input = 1.25, output = 10 }}.'
)
MOST_BYTES = 16 * 1024 * 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("models", metavar="MODEL", nargs="*", help="only models with these words in their names")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--import",
        metavar="FILE",
        type=Path,
        help='use the prices in a file: TOML with [prices] "model" = { input = 1.25, output = 10 }, or JSON with '
        "input_cost_per_token and output_cost_per_token for each model",
    )
    what.add_argument("--forget", action="store_true", help="remove what was imported")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    """Print the prices that count, or change them."""
    if (file := vars(options)["import"]) is not None:
        return _import(file)
    if options.forget:
        prices_file().unlink(missing_ok=True)
        print(f"Only bullpen's own list of {our_list().date} counts now.")
        return 0
    prices = {model: price for model, price in _all().items() if all(word in model for word in options.models)}
    if options.json:
        print(msgspec.json.encode({model: price for model, (price, _) in prices.items()}).decode())
    elif prices:
        print_table(COLUMNS, (_row(model, *found) for model, found in sorted(prices.items())))
        print(f"\n{ABOUT.format(our_list().date)}")
    else:
        print(f"No price is known of such a model. {ABOUT.format(our_list().date)}")
    return 0 if prices else 1


def _import(path: Path) -> int:
    try:
        with open_given(path) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BullpenError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > MOST_BYTES:
        raise BullpenError(f"{path} is larger than {MOST_BYTES // 1024 // 1024} MB: it is not a list of prices.")
    found = read_list(path, content)
    KeptFile(prices_file()).change(lambda _: msgspec.to_builtins(found))
    print(
        safe_line(f"{counted(len(found.prices), 'price')} from {path} count now, before those of bullpen's own list.")
    )
    return 0


def _all() -> dict[str, tuple[Price, str]]:
    imported = imported_list()
    found = {model: (price, OURS) for model, price in our_list().prices.items()}
    return found | ({model: (price, IMPORTED) for model, price in imported.prices.items()} if imported else {})


def _row(model: str, price: Price, source: str) -> tuple[str, ...]:
    cached = price.input if price.cached is None else price.cached
    return (model, *(f"{number:g}" for number in (price.input, cached, price.output)), source)
