"""The records of Claude Code's stream as values: what they contain besides the turn itself."""

import os

from bullpen.testing.agent.renderer import Record, new_uuid

VERSION = "2.1.197"
MODEL = "claude-opus-4-8"
# The name used for billing: the same model with its long context.
BILLED_MODEL = f"{MODEL}[1m]"

ERROR_NAMES = {401: "authentication_failed", 403: "authentication_failed", 429: "rate_limit", 529: "overloaded"}


def session(session_id: str) -> Record:
    """Return the line that opens the stream."""
    return {
        "type": "system",
        "subtype": "init",
        "cwd": os.getcwd(),  # noqa: PTH109 - pathlib is slow to import
        "session_id": session_id,
        "tools": ["Bash", "Edit", "Read", "TodoWrite", "Write"],
        "mcp_servers": [],
        "model": BILLED_MODEL,
        "permissionMode": "default",
        "slash_commands": ["clear", "compact"],
        "apiKeySource": "none",
        "claude_code_version": VERSION,
        "output_style": "default",
        "agents": ["general-purpose"],
        "skills": ["debug"],
        "plugins": [],
        "analytics_disabled": True,
        "product_feedback_disabled": True,
        "uuid": new_uuid(),
        "memory_paths": {"auto": "~/.claude/projects/memory/"},
        "fast_mode_state": "off",
    }


def message(message_id: str, content: list[Record], *, input_tokens: int, cached: int) -> Record:
    """Return a message while it is streamed: its stop reason and output tokens are not known, and never corrected."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": 1,
        },
    }


def synthetic_message(text: str) -> Record:
    """Return the message that Claude Code writes itself when the model could not."""
    return {
        "id": new_uuid(),
        "container": None,
        "model": "<synthetic>",
        "role": "assistant",
        "stop_details": None,
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "type": "message",
        "usage": usage(service_tier=None, inference_geo=None, iterations=None, speed=None),
        "content": [{"type": "text", "text": text}],
        "context_management": None,
    }


def usage(input_tokens: int = 0, output_tokens: int = 0, cached: int = 0, **service: object) -> Record:
    """Return the tokens of a request or a turn."""
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": output_tokens,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        **(service or {"service_tier": "standard", "inference_geo": "", "iterations": [], "speed": "standard"}),
    }


def model_usage(input_tokens: int, output_tokens: int, cached: int, cost: float) -> Record:
    """Return the same tokens by model."""
    tokens = {
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "cacheReadInputTokens": cached,
        "cacheCreationInputTokens": 0,
        "webSearchRequests": 0,
        "costUSD": cost,
        "contextWindow": 1_000_000,
        "maxOutputTokens": 64_000,
    }
    return {BILLED_MODEL: tokens}


def todo(item: Record) -> Record:
    """Return an item of a plan in TodoWrite's format."""
    status = "completed" if item.get("completed") else "pending"
    return {"content": item["text"], "status": status, "activeForm": item["text"]}


def error_name(cause: int | str) -> str:
    """Return Claude Code's word for an HTTP status, or for a connection that failed."""
    if isinstance(cause, str):
        return "unknown"
    return ERROR_NAMES.get(cause, "server_error" if cause >= 500 else "unknown")


def error_text(status: int, reason: str) -> str:
    """Return Claude Code's sentence for an HTTP status."""
    match status:
        case 401 | 403:
            return f"Failed to authenticate. API Error: {status} {reason}"
        case 429:
            return f"API Error: Request rejected (429) · {reason}"
        case _:
            return f"API Error: {status} {reason}"
