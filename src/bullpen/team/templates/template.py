"""Template: a way to work together, read from its TOML file."""

import tomllib
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from bullpen.permissions import Permission

NAMES = ("build-review-until-approved", "plan-build-test", "review", "debate", "second-opinion", "triage")
"""In the order in which they are listed; the first is the one that people get who name none."""
RENAMED = {"pair": "build-review-until-approved", "design-build-test": "plan-build-test"}


class Role(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of one agent in a template."""

    name: str
    role: str
    instruction: str
    permissions: Permission = "read-only"
    line: str
    """What it says when it is scripted."""
    keys: dict[str, str | int] = {}
    """Other keys of its entry in the team file."""


class Template(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way to work together. Unless it says otherwise, the first role answers first."""

    name: str = ""
    purpose: str
    lead: str = ""
    """Who answers first, as in [NEXT: …], if that is not only the first role."""
    checks_tests: bool = False
    """Whether the project's tests run after each turn that changes files, and go back to who broke them."""
    then: str = "bullpen chat {file}"
    """What a person types next."""
    roles: tuple[Role, ...]


@cache
def template(name: str) -> Template:
    """Return a template by its name, or by a name that it had; raise KeyError if there is none."""
    known = RENAMED.get(name, name)
    if known not in NAMES:
        raise KeyError(name)
    text = (Path(__file__).parent / f"{known}.toml").read_text(encoding="utf-8")
    return msgspec.convert({"name": known, **tomllib.loads(text)}, Template)


def templates() -> tuple[Template, ...]:
    """Return every template, in the order of their names."""
    return tuple(map(template, NAMES))
