"""A one-line mistake in a module of the product, made in this process only. It imports nothing of the product."""

import importlib
import importlib.util
import sys
from pathlib import Path


def plant_in(module: str, right: str, wrong: str, folder: Path) -> None:
    """Put something wrong in the place of what a module has exactly once, before anything has imported it."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    if source.count(right) != 1:
        raise ValueError(f"{module} does not contain this exactly once: {right}")
    if module in sys.modules:
        raise ValueError(f"{module} was imported too early")
    changed = folder / Path(spec.origin).name
    changed.write_text(source.replace(right, wrong), encoding="utf-8")
    mistaken = importlib.util.spec_from_file_location(module, changed)
    assert mistaken is not None
    assert mistaken.loader is not None
    made = importlib.util.module_from_spec(mistaken)
    sys.modules[module] = made
    package, _, last = module.rpartition(".")
    setattr(importlib.import_module(package), last, made)
    mistaken.loader.exec_module(made)
