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
    from bullpen.context.manager import ContextManager
    from bullpen.context.prompt import AssemblerInput, AssemblerOutput, PromptContextMessage
    from bullpen.context.report import PromptReport
    from bullpen.context.snapshot import ContextSnapshot
    from bullpen.errors import PromptTooLarge
    from bullpen.markers.grammar import read_markers
    from bullpen.markers.stripping import strip_all_markers
    from bullpen.text.clean import truncate_to_bytes

_MODULE_OF = {
    "AssemblerInput": "bullpen.context.prompt",
    "AssemblerOutput": "bullpen.context.prompt",
    "ClaudeContextAssembler": "bullpen.context.assemblers",
    "CodexContextAssembler": "bullpen.context.assemblers",
    "ContextAssembler": "bullpen.context.assemblers",
    "ContextManager": "bullpen.context.manager",
    "ContextSnapshot": "bullpen.context.snapshot",
    "GeminiContextAssembler": "bullpen.context.assemblers",
    "PlainTextAssembler": "bullpen.context.assemblers",
    "PromptContextMessage": "bullpen.context.prompt",
    "PromptInput": "bullpen.context.builder",
    "PromptLayout": "bullpen.context.assemblers",
    "PromptOutput": "bullpen.context.builder",
    "PromptReport": "bullpen.context.report",
    "PromptTooLarge": "bullpen.context.assemblers",
    "build_prompt": "bullpen.context.builder",
    "normalize_agent_type": "bullpen.context.agent_types",
    "read_markers": "bullpen.markers.grammar",
    "strip_all_markers": "bullpen.markers.stripping",
    "truncate_to_bytes": "bullpen.text.clean",
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
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
