"""Which assembler an agent type gets, under any of its names."""

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


def normalize_agent_type(agent_type: str) -> str:
    """Return the full name of a known agent type, whatever its case; any other comes back as it is."""
    if not isinstance(agent_type, str):
        raise TypeError(f"Agent type must be a string, not {type(agent_type).__name__}")
    return ALIASES.get(agent_type.lower(), agent_type)


def unknown_type_warning(agent_type: str) -> str:
    """Return what the specification says of an agent type that nobody knows."""
    normalized = normalize_agent_type(agent_type)
    return f'[ContextManager] Unknown agentType "{agent_type}" (normalized: "{normalized}"), using PlainTextAssembler'


class AssemblerSet:
    """One assembler of each kind, and plain text for agents that nobody knows."""

    def __init__(self) -> None:
        known = (ClaudeContextAssembler(), CodexContextAssembler(), GeminiContextAssembler())
        self._known: dict[str, ContextAssembler] = {assembler.agent_type: assembler for assembler in known}
        self._fallback = PlainTextAssembler()
        self._warned: set[str] = set()

    def for_agent(self, agent_type: str) -> ContextAssembler:
        """Return the assembler for an agent type; an unknown one is warned about once."""
        normalized = normalize_agent_type(agent_type)
        if assembler := self._known.get(normalized):
            return assembler
        if normalized not in self._warned:
            self._warned.add(normalized)
            logger.warning("%s", unknown_type_warning(agent_type))
        return self._fallback
