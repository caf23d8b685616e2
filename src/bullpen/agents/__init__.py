"""Running one turn of one agent: its own CLI, its stream as events, its answer as a reply.

Each name is imported when it is first used.
"""

from importlib import import_module

# Type checkers treat this name as true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from bullpen.agents.command import command_agent
    from bullpen.agents.registry import agent_spec, known_agents
    from bullpen.agents.runner import Reply, run_turn
    from bullpen.agents.spec import AgentSpec
    from bullpen.permissions import Permission

_MODULE_OF = {
    "AgentSpec": "spec",
    "Permission": "spec",
    "Reply": "runner",
    "agent_spec": "registry",
    "command_agent": "command",
    "known_agents": "registry",
    "run_turn": "runner",
}

__all__ = ["AgentSpec", "Permission", "Reply", "agent_spec", "command_agent", "known_agents", "run_turn"]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return __all__
