"""All agent types: the modules of this folder with a SPEC, and those of other packages."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import ModuleInfo, iter_modules

from msgspec.structs import replace

import bullpen.agents
from bullpen.agents.command import command_agent
from bullpen.agents.spec import AgentSpec
from bullpen.errors import UnknownAgent

ENTRY_POINT_GROUP = "bullpen.agents"


@cache
def known_agents() -> dict[str, AgentSpec]:
    """Return every CLI's spec by its name, our own first; a package that cannot be loaded is left out."""
    known = {name: spec for name, spec in _our_own().items() if not spec.needs_command}
    for spec in _from_other_packages():
        if isinstance(spec, AgentSpec):
            known.setdefault(spec.name, spec)
    return known


def short_names() -> list[str]:
    """Return what team files call every CLI."""
    return [spec.short_name for spec in known_agents().values()]


def not_loaded() -> list[str]:
    """Return a sentence for each agent of another package that cannot be loaded."""
    return [problem for problem in _from_other_packages() if isinstance(problem, str)]


def agent_spec(name: str) -> AgentSpec:
    """Return the spec of an agent type, by its name or an alias, in any case."""
    # Looking for other packages takes longer than everything else here, so that is done only if it must be.
    found = _named(name, _our_own()) or _named(name, known_agents())
    if found is None:
        raise UnknownAgent(name, short_names())
    return found


def _named(name: str, specs: Mapping[str, AgentSpec]) -> AgentSpec | None:
    wanted = name.lower()
    fitting = (spec for spec in specs.values() if wanted in (spec.name.lower(), *map(str.lower, spec.aliases)))
    return next(fitting, None)


def spec_for(agent: str, command: Sequence[str] = (), *, name: str = "") -> AgentSpec:
    """Return what a member runs: a known CLI, perhaps with another command, or any other program.

    An unknown agent type needs a command, and so does a protocol; without one this raises UnknownAgent.
    """
    if not command:
        spec = agent_spec(agent)
        if spec.needs_command:
            raise UnknownAgent(agent, short_names(), f"{agent!r} needs a command: that of a program that speaks it.")
        return spec
    if is_known(agent):
        spec = agent_spec(agent)
        asking = spec.asking and replace(spec.asking, command=(*command, *spec.asking.command[1:]))
        return replace(spec, command=(*command, *spec.command[1:]), asking=asking)
    return command_agent(command, name=agent or name)


def is_known(agent: str) -> bool:
    """Return whether an agent type is one of ours, or of another package."""
    try:
        return bool(agent) and bool(agent_spec(agent))
    except UnknownAgent:
        return False


def is_restricted(agent: str) -> bool:
    """Return whether bullpen decides what an agent of this type may do; what any other does unasked, it does."""
    return is_known(agent) and not agent_spec(agent).needs_command


@cache
def _our_own() -> dict[str, AgentSpec]:
    specs = [spec for spec in map(_spec_in, iter_modules(bullpen.agents.__path__)) if spec is not None]
    return {spec.name: spec for spec in specs}


def _spec_in(module: ModuleInfo) -> AgentSpec | None:
    spec = getattr(import_module(f"{bullpen.agents.__name__}.{module.name}"), "SPEC", None)
    return spec if isinstance(spec, AgentSpec) else None


def _from_other_packages() -> Iterator[AgentSpec | str]:
    """Yield the specs of other packages, and a sentence for each that cannot be used."""
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            spec = entry_point.load()
        except Exception as error:
            yield f"{entry_point.value} cannot be loaded: {type(error).__name__}: {error}."
            continue
        yield (
            spec
            if isinstance(spec, AgentSpec)
            else f"{entry_point.value} is not an AgentSpec but a {type(spec).__name__}."
        )
