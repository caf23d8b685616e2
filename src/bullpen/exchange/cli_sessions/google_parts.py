"""Contents as Gemini's API has them. Gemini CLI and Qwen Code, which was made from it, store them in their sessions."""

from collections.abc import Iterator
from typing import Any

from bullpen.exchange.cli_sessions.parts import Part, agent, person, tool

# What "@file" in a message is replaced by is written after it.
FILES_BEGIN = "--- Content from referenced files ---"
# What they write as a person's message, or into one.
INJECTED = ("<session_context>", "<hook_context>", "<system-reminder>", "<state_snapshot>", "System: Potential loop")


def person_parts(contents: Any, at: int) -> Iterator[Part]:
    """Yield what a person said; of the results of tools, which failed."""
    said = []
    for content in _contents(contents):
        match content:
            case {"text": str(text)} if not text.lstrip().startswith(INJECTED):
                said.append(text)
            case {"inlineData": _} | {"fileData": _}:
                said.append("(a file)")
            case {"functionResponse": {"id": str(tool_id), "response": {"error": _}}}:
                yield Part(kind="failure", at=at, tool_id=tool_id)
    yield from person("\n".join(said).partition(FILES_BEGIN)[0], at)


def agent_parts(contents: Any, at: int, *, calls: bool = True) -> Iterator[Part]:
    """Yield what the agent said, and the tools that it called."""
    for content in _contents(contents):
        match content:
            case {"thought": True}:
                pass
            case {"text": str(text)}:
                yield from agent(text, at)
            case {"functionCall": {"name": str(name)} as call} if calls:
                yield called(name, call, at)


def called(name: str, call: dict[str, Any], at: int) -> Part:
    """Return a call of a tool."""
    given = call.get("args")
    return tool(str(call.get("id", "")), name, given if isinstance(given, dict) else {}, at)


def _contents(contents: Any) -> list[Any]:
    if isinstance(contents, list):
        return contents
    return [{"text": contents}] if isinstance(contents, str) else [contents]
