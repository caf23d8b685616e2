"""Run the torture at full size and write docs/reliability.md; with --only NAME one class, merged into the page."""

import argparse
import sys
import time
from datetime import date

from proofs.torture.classes import all_classes
from proofs.torture.outcome import DEFAULT_SEED, Size, Torture, shown
from proofs.torture.page import Result, merged, read_results, write_page


def main() -> int:
    """Return 1 if any promise was broken, or a planted fault was not caught."""
    classes = {torture.name: torture for torture in all_classes()}
    options = _options(list(classes))
    chosen = [classes[name] for name in options.only or classes]
    results = []
    for torture in chosen:
        print(f"{torture.name} …", flush=True)
        result = _result(torture, options.size, options.seed)
        print(f"  {result.sentence}\n{shown(result.failures)}", flush=True)
        results.append(result)
        if options.size == "full":
            # After each, since the whole takes long and may be ended; and only this one, since others may run too.
            write_page(merged(read_results(), [result]))
    return int(not all(result.is_good for result in results))


def _options(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proofs.torture", description=__doc__)
    parser.add_argument("--only", metavar="NAME", choices=names, action="append", help=", ".join(names))
    parser.add_argument("--size", choices=("small", "full"), default="full")
    parser.add_argument("--seed", type=int, help="what to do again (default: at full size another one every day)")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = date.today().toordinal() if options.size == "full" else DEFAULT_SEED
    return options


def _result(torture: Torture, size: Size, seed: int) -> Result:
    began = time.monotonic()
    outcome = torture.run(size, seed)
    seconds = time.monotonic() - began
    caught = not outcome.skipped and torture.catches_its_fault(seed)
    return Result.of(torture, outcome, seed=seed, seconds=round(seconds), fault_caught=caught)


if __name__ == "__main__":
    sys.exit(main())
