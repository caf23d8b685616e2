"""bullpen: one conversation, every coding agent."""

__version__ = "0.1.0"

# Type checkers treat this name as true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from bullpen.app import open_team
    from bullpen.conversation.conversation import Conversation

__all__ = ["Conversation", "__version__", "open_team"]

_MODULE_OF = {"Conversation": "bullpen.conversation.conversation", "open_team": "bullpen.app"}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULE_OF[name]), name)
