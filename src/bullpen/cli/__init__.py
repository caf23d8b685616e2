"""The command line: one small file for each command, imported when it is called."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "demo": "watch a small team at work; no account is needed",
    "init": "write a team file for the agents that are installed here",
    "check": "say everything that is wrong with a team file",
    "rehearse": "let every agent take a turn with its real CLI against models played here, without spending a token",
    "doctor": "say which agents are ready, and what to do about those that are not",
    "chat": "talk with a team, here in the terminal",
    "run": "say one thing to a team, and show what happens",
    "preview": "show the exact prompt that an agent would be given",
    "sessions": "list, show, search, export and delete conversations",
    "explain": "say what an agent saw in a turn, what was left out, and why",
    "fsck": "check that every conversation is as it was written",
    "serve": "show conversations in the browser, and take part in them there",
    "import": "make a conversation of a snapshot or of a session of the TypeScript system",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. What went wrong is said in a sentence."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _run(words)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        from bullpen.agents.masking import without_secrets
        from bullpen.safe import printable

        said = _traceback() if os.environ.get("BULLPEN_DEBUG") else f"bullpen: {_sentence(error)}"
        print(printable(without_secrets(said)), file=sys.stderr)
        return 1


def _run(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bullpen", description="One conversation, every coding agent.")
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for name, purpose in COMMANDS.items():
        # Only the command that is called is imported, to learn its options.
        command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        if name in words:
            import_module(f"bullpen.cli.{name}").add_arguments(command)
    options = parser.parse_args(words)
    if options.version:
        from bullpen import __version__

        print(f"bullpen {__version__}")
        return 0
    if options.command is None:
        parser.print_help()
        return 2
    from bullpen.cli.logs import begin_logging

    # A server goes on after a bug, and whoever runs it wants to know.
    begin_logging(shown=options.command == "serve")
    return int(import_module(f"bullpen.cli.{options.command}").run(options))


def _traceback() -> str:
    from traceback import format_exc

    return format_exc().rstrip("\n")


def _sentence(error: Exception) -> str:
    from bullpen.errors import BullpenError
    from bullpen.safe import printable

    if isinstance(error, BullpenError | OSError):
        return printable(str(error))
    return (
        f"this is a bug in bullpen, sorry: {type(error).__name__}: {printable(str(error))}\n"
        "With BULLPEN_DEBUG=1 in the environment it shows where."
    )
