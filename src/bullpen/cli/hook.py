"""`bullpen hook`: a git hook in which agents give their opinions on what is staged, and can stop a commit."""

import argparse
import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bullpen.cli.database import add_database_option
from bullpen.cli.hook_file import hook_place, install_hook, remove_hook, top_folder
from bullpen.cli.opening import USUAL_FILE
from bullpen.cli.option_types import seconds
from bullpen.cli.second_opinion import ask_for_opinions
from bullpen.cli.staged import staged
from bullpen.cli.trust_question import ensure_trusted
from bullpen.cli.within_agents import refuse_agents
from bullpen.errors import BullpenError
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.trust import Trust
from bullpen.text.safe import printable

TIMEOUT_SECONDS = 300.0
NOT_FOR_AGENTS = "`bullpen hook` is not for agents: it runs agents, and says who is asked about commits"
EXIT_CODES = """\
exit codes:
  0    nobody asks for changes, or nobody could be asked, or nothing is staged
  1    somebody asks for changes; with --strict, also if somebody did not approve
  2    wrong usage
  130  Ctrl-C; nobody is asked any more, and git does not commit
"""


class Action(NamedTuple):
    """What can follow `bullpen hook`."""

    purpose: str
    run: Callable[[argparse.Namespace], int]
    add_arguments: Callable[[argparse.ArgumentParser], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe that an action must follow."""
    parser.usage = "bullpen hook action [options]"
    parser.set_defaults(action=None)


def run(options: argparse.Namespace) -> int:
    """Run the action that was chosen."""
    if options.action is None:
        print(f"bullpen hook: say what to do: {', '.join(ACTIONS)}. Try: bullpen hook --help", file=sys.stderr)
        return 2
    action: Callable[[argparse.Namespace], int] = options.action
    return action(options)


def _install(options: argparse.Namespace) -> int:
    refuse_agents(NOT_FOR_AGENTS)
    loaded = _here(load_team(options.file))
    place = hook_place()
    ensure_trusted(loaded, trust=options.trust)
    words = [] if options.timeout is None else [f"--timeout={options.timeout:g}"]
    words += ["--strict"] if options.strict else []
    is_new = install_hook(place, loaded.path, words, is_strict=options.strict)
    asked = " and ".join(loaded.team.first_to_answer)
    print(printable(f"{'Wrote' if is_new else 'Replaced'} {place}: {asked} will be asked before each commit."))
    print(printable(f"Try it on what is staged: bullpen hook run {shlex.quote(str(options.file))}"))
    return 0


def _remove(_: argparse.Namespace) -> int:
    refuse_agents(NOT_FOR_AGENTS)
    place = hook_place()
    remove_hook(place)
    print(printable(f"Removed {place}."))
    return 0


def _run(options: argparse.Namespace) -> int:
    """Ask about what is staged. What keeps us from asking stops a commit only if that is wanted."""
    try:
        change = staged()
        if change is None:
            print("Nothing is staged, so nobody is asked.")
            return 0
        refuse_agents(NOT_FOR_AGENTS)
        loaded = _trusted(options.file)
        return asyncio.run(ask_for_opinions(loaded, change, options, options.timeout or TIMEOUT_SECONDS))
    except (BullpenError, OSError) as error:
        print(printable(f"{error}\nNobody was asked about this commit."), file=sys.stderr)
        return 1 if options.strict else 0


def _trusted(file: Path) -> LoadedTeam:
    """Return a team that a person has agreed to run; in a hook, nobody can be asked."""
    loaded = _here(load_team(file))
    if Trust().knows(loaded.path, loaded.text):
        return loaded
    agree = f"bullpen hook install {shlex.quote(str(loaded.path))}"
    raise BullpenError(f"{loaded.path} is new here, or has changed since you agreed to what it runs. Agree: {agree}")


def _here(loaded: LoadedTeam) -> LoadedTeam:
    """Return a team whose agents work in the worktree that we are in, whichever its file is in."""
    return replace(loaded, folder=top_folder())


def _install_arguments(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument("--trust", action="store_true", help="run the team file without asking whether you trust it")


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXIT_CODES
    add_database_option(parser)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default=USUAL_FILE, type=Path, help=f"the team file (default: {USUAL_FILE})")
    parser.add_argument("--strict", action="store_true", help="stop a commit unless everybody approves of it")
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help=f"wait no longer for anybody (default: {TIMEOUT_SECONDS:g})",
    )


REMOVE = Action("ask no more", _remove, lambda _: None)
ACTIONS = {
    "install": Action("ask before each commit in this repository", _install, _install_arguments),
    "run": Action("ask about what is staged now; the hook does this", _run, _run_arguments),
    "remove": REMOVE,
    # As other programs call it.
    "uninstall": REMOVE,
}
