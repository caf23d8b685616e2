"""The command line: one small file for each command, imported when it is called."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "demo": "watch a small team work; no account is needed",
    "init": "write a team file for the agents that are installed here",
    "check": "report everything that is wrong with a team file",
    "rehearse": "run one turn of every agent with its real CLI against simulated models; no tokens are spent",
    "doctor": "report which agents are ready, and what to do about those that are not",
    "chat": "talk with a team in the terminal",
    "run": "send one message, unattended, and show what happens",
    "preview": "show the exact prompt that an agent would be given",
    "sessions": "list, show, search, export and delete conversations",
    "explain": "show what an agent was given in a turn, what was left out, and why",
    "fsck": "check that every conversation is still as it was written",
    "serve": "show conversations in the browser, and take part in them there",
    "import": "make a conversation from a snapshot or a session of the TypeScript system",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. What went wrong is said in a sentence."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    debug = _wants_debug(words)
    try:
        return _run(words, debug)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has seen enough. Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        from bullpen.text.safe import printable
        from bullpen.text.secrets import without_secrets

        said = _traceback() if debug else f"bullpen: {_sentence(error)}"
        print(printable(without_secrets(said)), file=sys.stderr)
        return 1


def _wants_debug(words: list[str]) -> bool:
    names = ("DEBUG", "BULLPEN_DEBUG")
    if "--debug" not in words and not any(name in os.environ for name in names):
        return False
    from bullpen.cli.logs import is_debugging

    return "--debug" in words or is_debugging()


def _run(words: list[str], debug: bool) -> int:
    parser = argparse.ArgumentParser(prog="bullpen", description="One conversation, every coding agent.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    _add_debug(parser)
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for name, purpose in COMMANDS.items():
        # Only the command that is called is imported, to learn its options.
        command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        _add_debug(command)
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

    # A server continues after a bug, and the person who runs it wants to know.
    begin_logging(shown=options.command == "serve", debug=debug)
    return int(import_module(f"bullpen.cli.{options.command}").run(options))


def _add_debug(parser: argparse.ArgumentParser) -> None:
    # Suppressed, so that a command does not undo what was given before it.
    parser.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="log every prompt as it is sent, and show tracebacks; DEBUG=1 does the same",
    )


def _traceback() -> str:
    from traceback import format_exc

    return format_exc().rstrip("\n")


def _sentence(error: Exception) -> str:
    from bullpen.errors import BullpenError
    from bullpen.text.safe import printable

    if isinstance(error, BullpenError | OSError):
        return printable(str(error))
    return (
        f"this is a bug in bullpen, sorry: {type(error).__name__}: {printable(str(error))}\nAdd --debug to see where."
    )
