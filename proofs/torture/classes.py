"""The classes of torture that there are: every module here that has a TORTURE."""

import importlib
import pkgutil

import proofs.torture
from proofs.torture.outcome import Torture


def all_classes() -> list[Torture]:
    """Return every class in the order of the page."""
    names = [module.name for module in pkgutil.iter_modules(proofs.torture.__path__) if is_class(module.name)]
    modules = [importlib.import_module(f"proofs.torture.{name}") for name in names]
    found = [module.TORTURE for module in modules if hasattr(module, "TORTURE")]
    return sorted(found, key=lambda torture: (torture.order, torture.name))


def is_class(name: str) -> bool:
    """Tell whether a module may be a class of torture, which importing a test or the command is not."""
    return not name.startswith(("test_", "__"))
