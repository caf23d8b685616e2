"""What the model says in each recorded case."""

from collections.abc import Callable
from pathlib import Path

from bullpen.testing.models import ModelRequest, Reply, Script, ToolCall

PATCH = "*** Begin Patch\n*** Add File: p.txt\n+patched\n*** End Patch\n"
TODOS = [{"id": "1", "content": "one", "status": "completed"}, {"id": "2", "content": "two", "status": "pending"}]

PLAIN = Reply(text="FAKE-ANSWER", chunk_characters=4)
PARTIAL = Reply(thinking="deep", text="answer in parts", chunk_characters=5)
LOST = Reply(text="lost in the middle", chunk_characters=3, drop_after_chunks=2)
DONE = Reply(text="done", chunk_characters=2)


def scripts(cli: str, project: Path) -> dict[str, tuple[Script, ...]]:
    """Return the script of every case that is recorded of a CLI; its tools write into the project."""
    own = {"claude": _claude, "codex": _codex, "gemini": _gemini, "qwen": _qwen}[cli]
    return {
        "plain": (PLAIN,),
        "err401": (Reply(error=401),),
        "err429": (Reply(error=429, retry_after_seconds=1 if cli == "qwen" else None),),
        **own(project),
    }


def _claude(_project: Path) -> dict[str, tuple[Script, ...]]:
    echo = ToolCall(name="Bash", arguments={"command": "echo hi", "description": "x"})
    redirect = ToolCall(name="Bash", arguments={"command": "echo hi > made.txt && cat made.txt", "description": "x"})
    slow = ToolCall(name="Bash", arguments={"command": "true; sleep 4; echo hi", "description": "x"})
    return {
        "partial": (PARTIAL,),
        "thinking": (Reply(thinking="deep thoughts", text="answer"),),
        "tool_allowed": (Reply(tool_calls=(echo,)), DONE),
        "tool_slow": (Reply(tool_calls=(slow,)), DONE),
        "tool_default": (Reply(text="I will run it.", tool_calls=(redirect,)), DONE),
        "maxturns": (Reply(tool_calls=(echo,)),),
        "max_tokens": (Reply(text="first half, ", stop_reason="max_tokens"), Reply(text="second half")),
    }


def _codex(_project: Path) -> dict[str, tuple[Script, ...]]:
    shell = ToolCall(name="exec_command", arguments={"cmd": "echo hi && touch made.txt; ls"})
    return {
        "thinking": (Reply(thinking="**Deep** thoughts", text="answer"),),
        "tool_patch": (Reply(tool_calls=(ToolCall(name="apply_patch", arguments=PATCH),)), DONE),
        "tool_workspace": (Reply(tool_calls=(shell,)), DONE),
        "err_drop": (LOST, Reply(text="recovered")),
    }


def _gemini(_project: Path) -> dict[str, tuple[Script, ...]]:
    call = ToolCall(name="run_shell_command", arguments={"command": "echo hi; touch made.txt; ls", "description": "x"})
    return {
        "tool_default": (Reply(text="I will.", chunk_characters=3, tool_calls=(call,)), DONE),
        "tool_yolo": (Reply(tool_calls=(call,)), DONE),
    }


def _qwen(project: Path) -> dict[str, tuple[Script, ...]]:
    write = ToolCall(name="write_file", arguments={"file_path": str(project / "made.txt"), "content": "made"})
    command = {"command": "echo hi; touch made.txt; ls", "description": "x", "is_background": False}
    glob = ToolCall(name="glob", arguments={"pattern": "*"})
    waiting = {**_subagent(), "run_in_background": False}
    return {
        "partial": (PARTIAL,),
        "thinking": (Reply(thinking="deep", text="answer"),),
        "tool_allowed": (Reply(text="I will.", tool_calls=(write,)), Reply(text="done")),
        "tool_refused": (Reply(text="I will.", tool_calls=(write,)), Reply(text="done")),
        "tool_shell": (Reply(tool_calls=(ToolCall(name="run_shell_command", arguments=command),)), Reply(text="done")),
        "todo": (Reply(tool_calls=(ToolCall(name="todo_write", arguments={"todos": TODOS}),)), Reply(text="done")),
        "maxturns": (Reply(text="on it", tool_calls=(glob,)),),
        "subagent": (
            Reply(tool_calls=(ToolCall(name="agent", arguments=waiting),)),
            Reply(tool_calls=(glob,)),
            Reply(text="sub done"),
            Reply(text="done"),
        ),
        "subagent_background": (_in_background(),),
        "err500": (Reply(error=500),),
        "err_drop": (LOST, Reply(text="n the middle")),
    }


def _subagent() -> dict[str, object]:
    return {"description": "x", "prompt": "sub", "subagent_type": "general-purpose"}


def _in_background() -> Callable[[ModelRequest], Reply]:
    """Return a model for an agent and its subagent, which ask at the same time."""
    call = ToolCall(name="agent", arguments=_subagent())
    own = iter([Reply(tool_calls=(call,)), Reply(text="started"), Reply(text="done")])
    return lambda request: Reply(text="sub done") if "sub" in request.texts else next(own)
