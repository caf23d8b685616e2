"""Qwen Code: `qwen`, stream-json."""

from collections.abc import Iterator
from typing import Any

from bullpen.agents.common_records import todo_list, usage
from bullpen.agents.spec import AgentSpec, SignInProbe
from bullpen.context.assemblers import GeminiContextAssembler
from bullpen.turn_events import (
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
)

# It says an error in the agent's place, and then again in the result.
ERROR_IN_ITS_MOUTH = "[API Error: "


class QwenParser:
    """Remembers whether the words come piece by piece: then they come whole as well, and are not said twice."""

    def __init__(self) -> None:
        self._in_pieces = False

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield what one record of the stream says."""
        match record:
            case {"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}}:
                if record.get("parent_tool_use_id") is None:
                    yield from _delta(delta)
            case {"type": "stream_event", "event": {"type": "message_start"}}:
                self._in_pieces = True
            case {"type": "stream_event"}:
                pass  # the borders of blocks, the progress of tools, the state of its goal
            case {"type": "assistant", "message": {"content": list(blocks)}}:
                spoken = not self._in_pieces and record.get("parent_tool_use_id") is None
                for block in blocks:
                    yield from _block(block, spoken=spoken)
            case {"type": "user", "message": {"content": list(blocks)}}:
                for block in blocks:
                    yield from _tool_result(block)
            case {"type": "system", "subtype": "init"}:
                yield Started(
                    session_id=record.get("session_id"),
                    model=record.get("model"),
                    cli_version=record.get("qwen_code_version"),
                )
            case {"type": "system", "subtype": "retry"}:
                yield Notice(kind="retry", text=_retry(record.get("data")))
            case {"type": "system", "subtype": "task_started" | "task_notification"}:
                pass  # of a subagent in the background, whose tool tells it too
            case {"type": "result", "is_error": False, "result": str(text)}:
                yield usage(record.get("usage"), cached="cache_read_input_tokens")
                yield Finished(text)
            case {"type": "result", "error": {"message": str(message)}}:
                yield usage(record.get("usage"), cached="cache_read_input_tokens")
                yield Failed(kind="crashed", message=message)
            case {"type": "result"}:
                yield Failed(kind="crashed", message=f"It ended with {record.get('subtype', 'an error')}.")
            case _:
                yield Notice(kind="unknown", text=str(record)[:1000])


def _delta(delta: Any) -> Iterator[Event]:
    match delta:
        case {"type": "text_delta", "text": str(text)} if not text.startswith(ERROR_IN_ITS_MOUTH):
            yield TextDelta(text)
        case {"type": "thinking_delta", "thinking": str(text)}:
            yield Thinking(text)


def _block(block: Any, *, spoken: bool) -> Iterator[Event]:
    """Yield a whole content block. What was streamed is not said twice, and a subagent's words are its own affair."""
    match block:
        case {"type": "text", "text": str(text)} if spoken and not text.startswith(ERROR_IN_ITS_MOUTH):
            yield TextDelta(text)
        case {"type": "thinking", "thinking": str(text)} if spoken:
            yield Thinking(text)
        case {"type": "tool_use", "id": str(tool_id), "name": str(name), "input": dict(tool_input)}:
            yield ToolStarted(id=tool_id, name=name, input=tool_input)
            if name == "todo_write" and isinstance(tool_input.get("todos"), list):
                yield todo_list(tool_input["todos"], text="content")


def _tool_result(block: Any) -> Iterator[Event]:
    match block:
        case {"type": "tool_result", "tool_use_id": str(tool_id)}:
            output = block.get("content")
            yield ToolFinished(
                id=tool_id, output="" if output is None else str(output), failed=bool(block.get("is_error"))
            )


def _retry(data: Any) -> str:
    match data:
        case {"attempt": int(attempt), "maxRetries": int(limit), "delayMs": int(delay)}:
            return f"attempt {attempt} of {limit}, in {delay / 1000:g} seconds"
        case {"preserveText": True}:
            return "the answer broke off and is continued"
        case _:
            return "the model is asked again"


SPEC = AgentSpec(
    name="qwen-code",
    aliases=("qwen",),
    # Not with `--input-format stream-json`: then it waits for ever for somebody to approve a tool.
    command=("qwen", "--output-format", "stream-json", "--include-partial-messages"),
    # Everything in the prompt, below a heading: a prompt that began with a slash would be a command to the CLI itself.
    assembler=GeminiContextAssembler,
    parser=QwenParser,
    model_flag="--model",
    instruction_file="QWEN.md",
    # Left alone, it lets a model decide what is allowed. A tool that is excluded is so whatever its own settings allow.
    permissions={
        "read-only": (
            *("--approval-mode", "default"),
            *("--exclude-tools", "edit,write_file,notebook_edit,enter_worktree,agent"),
        ),
        # Among the agents it may call are claude and codex, which would do more than edit.
        "edit": ("--approval-mode", "auto-edit", "--exclude-tools", "agent"),
        "full": ("--approval-mode", "yolo"),
    },
    # It drops what is over this and goes on, with a warning that the model does not see.
    max_prompt_bytes=8_388_608,
    environment=("QWEN_*", "OPENAI_*", "ANTHROPIC_*", "GEMINI_*", "GOOGLE_*", "DASHSCOPE_*", "BAILIAN_*"),
    # It would start itself once more, which takes a second.
    settings={"QWEN_CODE_NO_RELAUNCH": "true"},
    failures=(
        # Its answer to a flag it does not know is its help, which speaks of keys and limits.
        ("crashed", "--help +Show help"),
        ("not_signed_in", "No auth type is selected|Missing API key|OAuth free tier"),
        ("prompt_too_long", "Context is too large|request-body limit"),
    ),
    exit_codes={53: "turn_limit", 55: "turn_limit"},
    hints={
        "not_installed": "Install it with: npm install -g @qwen-code/qwen-code",
        "not_signed_in": "Run `qwen` once and use /auth, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL.",
    },
    tested_versions=("0.24.4",),
    sign_in=SignInProbe(
        variables=("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"),
        files=(".qwen/settings.json", ".qwen/.env"),
    ),
)
