"""The program: which CLI, which script, which exit status."""

import os
import sys
from importlib import import_module

from bullpen.testing.agent.options import option
from bullpen.testing.agent.renderer import Renderer
from bullpen.testing.agent.script import ScriptError, load_script, play
from bullpen.testing.agent.streams import STDERR, write_text

USAGE = "usage: python -m bullpen.testing.agent --as claude|codex|gemini|text [--script FILE_OR_JSON]"
USAGE_EXIT = 2
REFUSED_EXIT = 1
BROKEN_PIPE_EXIT = 1
INTERRUPTED_EXIT = 130

# The C half of signal; the Python half makes enums of its numbers, which takes longer than an answer.
_signal = import_module("_signal")


def main(arguments: list[str]) -> int:
    """Run the agent that the arguments name; return its exit status."""
    renderer = _renderer(option(arguments, "--as"))
    if renderer is None:
        return _refuse(USAGE)
    if "--version" in arguments:
        write_text(f"{renderer.version}\n")
        return 0
    renderer.reads_messages = option(arguments, "--input-format") == "stream-json"
    source = option(arguments, "--script") or os.environ.get("BULLPEN_TEST_SCRIPT", "")
    try:
        _take_signals(renderer)
        script = load_script(source)
        if not renderer.open_session(arguments):
            return REFUSED_EXIT
        return play(script, renderer)
    except ScriptError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return BROKEN_PIPE_EXIT
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT


def _renderer(cli: str) -> Renderer | None:
    """Return the renderer for a CLI; the others are not even imported."""
    match cli:
        case "claude":
            from bullpen.testing.agent.claude import ClaudeRenderer

            return ClaudeRenderer()
        case "codex":
            from bullpen.testing.agent.codex import CodexRenderer

            return CodexRenderer()
        case "gemini":
            from bullpen.testing.agent.gemini import GeminiRenderer

            return GeminiRenderer()
        case "text":
            from bullpen.testing.agent.text import TextRenderer

            return TextRenderer()
        case _:
            return None


def _take_signals(renderer: Renderer) -> None:
    """Handle SIGINT and SIGTERM even if our parent ignores them."""
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    status = renderer.sigterm_exit
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL if status is None else lambda *_: os._exit(status))


def _refuse(reason: str) -> int:
    write_text(f"{reason}\n", STDERR)
    return USAGE_EXIT


if __name__ == "__main__":
    # Everything is written, and shutting down the interpreter takes longer than an answer.
    os._exit(main(sys.argv[1:]))
