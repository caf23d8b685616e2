"""What is sent of texts: without keys, readable everywhere, and not too long."""

from functools import lru_cache

import msgspec

from bullpen.agents.registry import agent_spec, is_known
from bullpen.team.team import Member
from bullpen.text.clean import clean_text, one_line, truncate_to_bytes
from bullpen.text.secrets import without_secrets

LONGEST_NAME = 100
LONGEST_TEXT = 32 * 1024
"""Of one message or tool's result: collectors refuse large requests."""
OTHER_PROGRAM = "command"


@lru_cache(maxsize=1024)
def name(given: str) -> str:
    """Return a name that may come from an agent: one line, short, without keys."""
    return truncate_to_bytes(without_secrets(one_line(given[: 4 * LONGEST_NAME])), LONGEST_NAME)


def text(given: str) -> str:
    """Return what was said or done, as it may be sent."""
    return without_secrets(truncate_to_bytes(clean_text(given), LONGEST_TEXT))


def as_json(given: object) -> str:
    """Return a value as JSON, as it may be sent."""
    return text(msgspec.json.encode(given).decode())


def messages(role: str, said: str, **more: str) -> str:
    """Return a message as the GenAI conventions write it."""
    parts = [{"type": "text", "content": text(said)}]
    return msgspec.json.encode([{"role": role, "parts": parts, **more}]).decode()


def agent_type(member: Member) -> str:
    """Return what a member runs: a known CLI, or any other program."""
    return agent_spec(member.agent).name if is_known(member.agent) else name(member.agent) or OTHER_PROGRAM


def provider(member: Member) -> str:
    """Return the vendor of a member's models; "" if that is not known."""
    return agent_spec(member.agent).provider if is_known(member.agent) else ""
