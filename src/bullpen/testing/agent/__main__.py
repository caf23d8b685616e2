"""The program: which CLI, which script, which exit status."""

import os
import sys

from bullpen.testing.agent.host import here
from bullpen.testing.agent.options import option
from bullpen.testing.agent.renderer import Renderer
from bullpen.testing.agent.script import ScriptError, load_script, play
from bullpen.testing.agent.streams import STDERR, write_text

USAGE = "usage: python -m bullpen.testing.agent --as claude|codex|gemini|text [--script FILE_OR_JSON | --turns FOLDER]"
USAGE_EXIT = 2
REFUSED_EXIT = 1
BROKEN_PIPE_EXIT = 1
INTERRUPTED_EXIT = 130


def main(arguments: list[str]) -> int:
    """Run the agent that the arguments name; return its exit status."""
    renderer = _renderer(option(arguments, "--as"))
    if renderer is None:
        return _refuse(USAGE)
    if "--version" in arguments:
        write_text(f"{renderer.version}\n")
        return 0
    renderer.reads_messages = option(arguments, "--input-format") == "stream-json"
    try:
        here.host.take_signals(renderer.sigterm_exit)
        script = load_script(_source(arguments, renderer))
        if not renderer.open_session(arguments):
            return REFUSED_EXIT
        return play(script, renderer)
    except ScriptError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return BROKEN_PIPE_EXIT
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    finally:
        if renderer.session is not None:
            renderer.session.close()


def _source(arguments: list[str], renderer: Renderer) -> str:
    """Return where the script is, or the script itself."""
    if folder := option(arguments, "--turns"):
        from bullpen.testing.agent.turns import Turn

        renderer.turn = Turn(folder)
        return renderer.turn.script
    return option(arguments, "--script") or here.host.environ.get("BULLPEN_TEST_SCRIPT", "")


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


def _refuse(reason: str) -> int:
    write_text(f"{reason}\n", STDERR)
    return USAGE_EXIT


if __name__ == "__main__":
    # Everything is written, and shutting down the interpreter takes longer than an answer.
    os._exit(main(sys.argv[1:]))
