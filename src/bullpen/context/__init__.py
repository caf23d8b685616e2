"""From a conversation's history to one agent's prompt: pure, synchronous, no input or output.

Each name is imported when it is first used, so `import bullpen.context` costs next to nothing.
"""

from importlib import import_module

# Type checkers take this name for true. Importing it from typing would double the cost of this module.
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
    from bullpen.context.manager import ContextManager
    from bullpen.context.markers import read_markers
    from bullpen.context.prompt import AssemblerInput, AssemblerOutput, PromptContextMessage
    from bullpen.context.report import PromptReport
    from bullpen.context.snapshot import ContextSnapshot
    from bullpen.context.stripping import strip_all_markers
    from bullpen.context.text import truncate_to_bytes
    from bullpen.errors import PromptTooLarge

_MODULE_OF = {
    "AssemblerInput": "prompt",
    "AssemblerOutput": "prompt",
    "ClaudeContextAssembler": "assemblers",
    "CodexContextAssembler": "assemblers",
    "ContextAssembler": "assemblers",
    "ContextManager": "manager",
    "ContextSnapshot": "snapshot",
    "GeminiContextAssembler": "assemblers",
    "PlainTextAssembler": "assemblers",
    "PromptContextMessage": "prompt",
    "PromptInput": "builder",
    "PromptLayout": "assemblers",
    "PromptOutput": "builder",
    "PromptReport": "report",
    "PromptTooLarge": "assemblers",
    "build_prompt": "builder",
    "normalize_agent_type": "agent_types",
    "read_markers": "markers",
    "strip_all_markers": "stripping",
    "truncate_to_bytes": "text",
}

__all__ = [
    "AssemblerInput",
    "AssemblerOutput",
    "ClaudeContextAssembler",
    "CodexContextAssembler",
    "ContextAssembler",
    "ContextManager",
    "ContextSnapshot",
    "GeminiContextAssembler",
    "PlainTextAssembler",
    "PromptContextMessage",
    "PromptInput",
    "PromptLayout",
    "PromptOutput",
    "PromptReport",
    "PromptTooLarge",
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
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
