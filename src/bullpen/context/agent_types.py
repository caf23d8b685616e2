"""The assembler for each agent type, under any of its names."""

import logging

from bullpen.context.assemblers import (
    ClaudeContextAssembler,
    CodexContextAssembler,
    ContextAssembler,
    GeminiContextAssembler,
    PlainTextAssembler,
)

logger = logging.getLogger(__name__)

ALIASES = {
    "claude": "claude-code",
    "claude-code": "claude-code",
    "codex": "openai-codex",
    "openai-codex": "openai-codex",
    "gemini": "google-gemini",
    "google-gemini": "google-gemini",
}

KINDS: dict[str, type[ContextAssembler]] = {
    kind.agent_type: kind for kind in (ClaudeContextAssembler, CodexContextAssembler, GeminiContextAssembler)
}


def normalize_agent_type(agent_type: str) -> str:
    """Return the full name of a known agent type, in any case; others are returned unchanged."""
    if not isinstance(agent_type, str):
        raise TypeError(f"Agent type must be a string, not {type(agent_type).__name__}")
    return ALIASES.get(agent_type.lower(), agent_type)


def has_own_layout(agent_type: str) -> bool:
    """Return whether the specification has a layout for this agent type."""
    return normalize_agent_type(agent_type) in KINDS


def unknown_type_warning(agent_type: str) -> str:
    """Return the specification's warning about an unknown agent type."""
    normalized = normalize_agent_type(agent_type)
    return f'[ContextManager] Unknown agentType "{agent_type}" (normalized: "{normalized}"), using PlainTextAssembler'


class AssemblerSet:
    """One assembler of each kind, and plain text for unknown agents."""

    def __init__(self, *, as_specified: bool = False) -> None:
        self._as_specified = as_specified
        self._made: dict[type[ContextAssembler], ContextAssembler] = {}
        self._warned: set[str] = set()

    def for_agent(self, agent_type: str) -> ContextAssembler:
        """Return the assembler for an agent type; warn once about an unknown one."""
        normalized = normalize_agent_type(agent_type)
        kind = KINDS.get(normalized)
        if kind is None and normalized not in self._warned:
            self._warned.add(normalized)
            logger.warning("%s", unknown_type_warning(agent_type))
        return self.of_kind(kind or PlainTextAssembler)

    def of_kind(self, kind: type[ContextAssembler]) -> ContextAssembler:
        """Return the one assembler of a kind, created on first use. It caches its lines."""
        if kind not in self._made:
            self._made[kind] = kind(as_specified=True) if self._as_specified else kind()
        return self._made[kind]
