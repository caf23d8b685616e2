"""From a conversation's history to one agent's prompt: pure and synchronous, without I/O.

Each name is imported when it is first used, so `import bullpen.context` is fast.
"""

from importlib import import_module

# Type checkers treat this name as true. Importing it from typing would double this module's import time.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from bullpen.context.agent_types import normalize_agent_type
    from bullpen.context.assemblers import (
        ClaudeContextAssembler,
        CodexContextAssembler,
        ContextAssembler,
        GeminiContextAssembler,
        PlainTextAssembler,
        PromptLayout,
    )
    from bullpen.context.builder import PromptInput, PromptOutput, build_prompt
    from bullpen.context.manager import MAX_TEAM_TASK_BYTES, ContextManager
    from bullpen.context.prompt import (
        DEFAULT_CONTEXT_WINDOW_SIZE,
        DEFAULT_MAX_BYTES,
        AssemblerInput,
        AssemblerOutput,
        PromptContextMessage,
    )
    from bullpen.context.report import PromptReport
    from bullpen.context.snapshot import ContextSnapshot
    from bullpen.errors import InvalidSnapshot, PromptTooLarge, UnknownMessage
    from bullpen.markers.grammar import read_markers
    from bullpen.markers.stripping import strip_all_markers
    from bullpen.messages import ConversationMessage, MessageDraft, Routing, Speaker
    from bullpen.text.clean import truncate_to_bytes

_MODULE_OF = {
    "DEFAULT_CONTEXT_WINDOW_SIZE": "bullpen.context.prompt",
    "DEFAULT_MAX_BYTES": "bullpen.context.prompt",
    "MAX_TEAM_TASK_BYTES": "bullpen.context.manager",
    "AssemblerInput": "bullpen.context.prompt",
    "AssemblerOutput": "bullpen.context.prompt",
    "ClaudeContextAssembler": "bullpen.context.assemblers",
    "CodexContextAssembler": "bullpen.context.assemblers",
    "ContextAssembler": "bullpen.context.assemblers",
    "ContextManager": "bullpen.context.manager",
    "ContextSnapshot": "bullpen.context.snapshot",
    "ConversationMessage": "bullpen.messages",
    "GeminiContextAssembler": "bullpen.context.assemblers",
    "InvalidSnapshot": "bullpen.errors",
    "MessageDraft": "bullpen.messages",
    "PlainTextAssembler": "bullpen.context.assemblers",
    "PromptContextMessage": "bullpen.context.prompt",
    "PromptInput": "bullpen.context.builder",
    "PromptLayout": "bullpen.context.assemblers",
    "PromptOutput": "bullpen.context.builder",
    "PromptReport": "bullpen.context.report",
    "PromptTooLarge": "bullpen.errors",
    "Routing": "bullpen.messages",
    "Speaker": "bullpen.messages",
    "UnknownMessage": "bullpen.errors",
    "build_prompt": "bullpen.context.builder",
    "normalize_agent_type": "bullpen.context.agent_types",
    "read_markers": "bullpen.markers.grammar",
    "strip_all_markers": "bullpen.markers.stripping",
    "truncate_to_bytes": "bullpen.text.clean",
}

__all__ = [
    "DEFAULT_CONTEXT_WINDOW_SIZE",
    "DEFAULT_MAX_BYTES",
    "MAX_TEAM_TASK_BYTES",
    "AssemblerInput",
    "AssemblerOutput",
    "ClaudeContextAssembler",
    "CodexContextAssembler",
    "ContextAssembler",
    "ContextManager",
    "ContextSnapshot",
    "ConversationMessage",
    "GeminiContextAssembler",
    "InvalidSnapshot",
    "MessageDraft",
    "PlainTextAssembler",
    "PromptContextMessage",
    "PromptInput",
    "PromptLayout",
    "PromptOutput",
    "PromptReport",
    "PromptTooLarge",
    "Routing",
    "Speaker",
    "UnknownMessage",
    "build_prompt",
    "normalize_agent_type",
    "read_markers",
    "strip_all_markers",
    "truncate_to_bytes",
]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
