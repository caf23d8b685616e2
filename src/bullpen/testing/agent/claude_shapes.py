"""The records of Claude Code's stream as values: what they contain besides the turn itself."""

from bullpen.testing.agent.host import here
from bullpen.testing.agent.renderer import Record, new_uuid

VERSION = "2.1.327"
MODEL = "claude-opus-5-5"
NOT_FAST: Record = {"fast_mode_state": "off", "fast_mode_disabled_reason": "sdk_opt_in_required"}
# How much the stream tells of what the model thinks.
THINKING: Record = {"thinking_display": "updates"}

API_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
ERROR_NAMES = {401: "authentication_failed", 403: "authentication_failed", 429: "rate_limit", 529: "overloaded"}


def session(session_id: str) -> Record:
    """Return the line that opens the stream."""
    folder = here.host.folder
    return {
        "type": "system",
        "subtype": "init",
        "cwd": folder,
        "original_cwd": folder,
        "additional_directories": [],
        "session_id": session_id,
        "tools": ["Bash", "Edit", "Read", "TodoWrite", "Write"],
        "mcp_servers": [],
        "model": MODEL,
        "permissionMode": "default",
        "slash_commands": ["clear", "compact"],
        "terminal_slash_commands": [],
        "capabilities": [],
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
        "messaging_socket_path": "/tmp/cc-socks/1.sock",  # noqa: S108 - only told
        "per_turn_effort_active": False,
        "ultrathink_available": True,
        "ultrathink_typed_raises": True,
        "view_mode": "default",
        **NOT_FAST,
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
        "diagnostics": None,
        "container": None,
        "model": "<synthetic>",
        "role": "assistant",
        "stop_details": None,
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "type": "message",
        "usage": {
            **usage(),
            **dict.fromkeys(("service_tier", "inference_geo", "iterations", "speed", "output_tokens_details")),
        },
        "content": [{"type": "text", "text": text}],
        "context_management": None,
    }


def usage(input_tokens: int = 0, output_tokens: int = 0, cached: int = 0) -> Record:
    """Return the tokens of a request or a turn."""
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": output_tokens,
        "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "service_tier": "standard",
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
        "fallback_credit": None,
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
        "maxOutputTokens": 128_000,
        "thinkingTokens": 0,
        "cacheCreationEphemeral5mInputTokens": 0,
        "cacheCreationEphemeral1hInputTokens": 0,
        "canonicalModel": MODEL,
        "provider": "firstParty",
        "costBasis": "list",
    }
    return {MODEL: tokens}


def subagents() -> Record:
    """Return the count of subagents: there are none."""
    return {
        "spawned": 0,
        "requested": {"background": 0, "foreground": 0, "unset": 0},
        "started_in_background": 0,
        "max_depth": 0,
        "spawned_by_subagents": 0,
        "completed": 0,
        "failed": 0,
        "killed": {"parent": 0, "system": 0, "user": 0},
        "refused": {"budget": 0, "concurrency_limit": 0, "depth_limit": 0},
        "by_type": {},
    }


def decision(tool_id: str, *, denied: bool) -> Record:
    """Return whether a tool was allowed to run, and who decided it."""
    if denied:
        rejected = {"decision": "reject", "source": "config"}
        return {"id": tool_id, "non_execution_kind": "user-rejected", "permission_decision": rejected}
    accepted = {"decision": "accept", "source": "config", "reason_type": "rule"}
    return {"id": tool_id, "permission_decision": accepted}


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
