"""The command line: one small file for each command, imported when it is called."""

import os
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module

from bullpen.cli.parser import WRONG_USAGE, CommandParser, listed, split, suggestion

COMMANDS = {
    "demo": "watch a small team work; no account is needed",
    "init": "write a team file for the agents that are installed here",
    "check": "report everything that is wrong with a team file",
    "rehearse": "run one turn of every agent with its real CLI against simulated models; no tokens are spent",
    "doctor": "report which agents are ready, and what to do about those that are not",
    "chat": "talk with a team in the terminal",
    "run": "send one message, unattended, and show what happens",
    "hook": "let agents read what is staged before each commit, and stop it if they want changes",
    "inbox": "answer what agents ask, in every conversation",
    "preview": "show the exact prompt that an agent would be given",
    "sessions": "list, show, search, fork, export and delete conversations",
    "explain": "show what an agent was given in a turn, what was left out, and why",
    "usage": "show what turns have used: time, tokens and money, by member, agent, model, day or conversation",
    "prices": "show what models cost, or import a list of it",
    "diff": "show what turns changed in the files, line by line",
    "undo": "take back what a turn changed in the files",
    "redo": "bring back what an undo took back",
    "rewind": "put the files into the state that they had after a turn",
    "fsck": "check that every conversation is still as it was written",
    "backup": "write all conversations to one file, also while they are in use",
    "restore": "put a backup in the place of your conversations, which are kept under another name",
    "move": "copy conversations from a file to a PostgreSQL server, or back",
    "serve": "show conversations in the browser, and take part in them there",
    "acp": "let an editor talk with a team: Zed, JetBrains, Toad and others start it",
    "worker": "run turns of a cluster on this machine, as its own file allows",
    "mcp": "give an agent's CLI the tools of its turn; bullpen starts it",
    "import": "make a conversation from a session of claude, codex, gemini or qwen, an export, or a snapshot",
    "completion": "print what lets a shell complete commands and options",
    "help": "explain a command",
}
FIRST = ("demo", "doctor", "init", "check", "chat", "run", "diff", "serve")
"""The commands of the first hour, which help shows in the order in which people need them; and undo, beside diff."""
READER_LEFT = 141
"""The exit code if the reader of our output has seen enough, as after SIGPIPE."""
LOGGING_LATER = ("acp",)
"""Commands that begin to log themselves: an editor waits for an answer, and importing what logs takes time."""
FOR_EVERYBODY = ("acp", "mcp", "completion", "help")
"""Commands that begin sooner than it is known whether an agent runs them; `within_agents.py` says why they may."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. What went wrong is said in a sentence."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    debug = _wants_debug(words)
    try:
        try:
            return _run_and_explain(words, debug)
        finally:
            if sys.stdout is not None:
                # If Python did that in the end, it would complain of a reader that has left.
                sys.stdout.flush()
    except OSError as error:
        # What is left cannot be written. Python would try it again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT if isinstance(error, BrokenPipeError) else _explain(error, debug)


def _run_and_explain(words: list[str], debug: bool) -> int:
    try:
        return _run(words, debug)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        return _explain(error, debug)


def _explain(error: Exception, debug: bool) -> int:
    from bullpen.text.safe import printable
    from bullpen.text.secrets import without_secrets

    said = _traceback() if debug else f"bullpen: {_sentence(error)}"
    print(printable(without_secrets(said)), file=sys.stderr)
    return WRONG_USAGE if _is_usage(error) else 1


def _wants_debug(words: list[str]) -> bool:
    names = ("DEBUG", "BULLPEN_DEBUG")
    if "--debug" not in words and not any(name in os.environ for name in names):
        return False
    from bullpen.cli.logs import is_debugging

    return "--debug" in words or is_debugging()


def _run(words: list[str], debug: bool) -> int:
    command, others = split(words, COMMANDS)
    if command is None:
        return _run_nothing(words)
    parser, others = command_parser(command, others)
    options = parser.parse(others)
    module = import_module(f"bullpen.cli.{command}")
    if command not in FOR_EVERYBODY:
        from bullpen.cli.within_agents import refuse_within_agents

        refuse_within_agents(command, options)
    if command not in LOGGING_LATER:
        from bullpen.cli.logs import begin_logging

        # A server continues after a bug, and the person who runs it wants to know.
        begin_logging(shown=command == "serve", debug=debug)
    return int(module.run(options))


def command_parser(command: str, words: Sequence[str] = ()) -> tuple[CommandParser, list[str]]:
    """Return the parser for a command, or for the one of its actions that the words name, and the other words.

    Only the command that is called is imported, to learn its options.
    """
    module = import_module(f"bullpen.cli.{command}")
    actions = getattr(module, "ACTIONS", {})
    name, others = split(words, actions)
    if name is not None:
        parser = CommandParser(f"bullpen {command} {name}", actions[name].purpose)
        actions[name].add_arguments(parser)
        parser.set_defaults(action=actions[name].run)
    elif actions:
        parser = CommandParser(f"bullpen {command}", COMMANDS[command], partial(_no_such, "action", actions))
        parser.epilog = listed("actions", {name: action.purpose for name, action in actions.items()})
        module.add_arguments(parser)
    else:
        parser = CommandParser(f"bullpen {command}", COMMANDS[command])
        module.add_arguments(parser)
    return parser, others


def _run_nothing(words: list[str]) -> int:
    """Print what there is; the version, if that is asked for."""
    parser = CommandParser("bullpen", "one conversation, every coding agent", _no_such_command)
    parser.usage = "bullpen [-h] [-V] [--all] [--debug] command ..."
    parser.epilog = listed("commands", COMMANDS) if "--all" in words else _first_commands()
    parser.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    parser.add_argument("--all", action="store_true", help="list every command")
    if parser.parse(words).version:
        from bullpen import __version__

        print(f"bullpen {__version__}")
        return 0
    parser.print_help()
    return WRONG_USAGE


def _first_commands() -> str:
    both = {"diff": ("diff, undo", f"{COMMANDS['diff']}, or take it back")}
    first = dict(both.get(name, (name, COMMANDS[name])) for name in FIRST)
    return f"{listed('commands', first)}\n\nAll {len(COMMANDS)} commands: bullpen help --all"


def _no_such(kind: str, known: Iterable[str], word: str) -> str:
    return f"There is no {kind} {word!r}.{suggestion(word, known)}"


def _no_such_command(word: str) -> str:
    from bullpen.cli.sessions import ACTIONS

    if word.endswith(".toml"):
        return _no_such("command", [], word) + f" Did you mean bullpen chat {word}?"
    if word in ACTIONS:
        return _no_such("command", [], word) + f" Did you mean bullpen sessions {word}?"
    return _no_such("command", COMMANDS, word)


def _traceback() -> str:
    from traceback import format_exc

    return format_exc().rstrip("\n")


def _is_usage(error: Exception) -> bool:
    from bullpen.errors import WrongUsage

    return isinstance(error, WrongUsage)


def _sentence(error: Exception) -> str:
    from bullpen.cli.open_files import too_few_files
    from bullpen.errors import BullpenError
    from bullpen.text.safe import printable

    if few := too_few_files(error):
        return few
    if isinstance(error, BullpenError | OSError):
        return printable(str(error))
    return (
        f"this is a bug in bullpen, sorry: {type(error).__name__}: {printable(str(error))}\nAdd --debug to see where."
    )
