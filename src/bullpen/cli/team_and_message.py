"""The words of a command that takes a team file and a message: which is which."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from bullpen.errors import WrongUsage

FROM_STDIN = "-"


def add_words(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the words, of which each may be missing."""
    parser.add_argument("words", nargs="*", metavar="team.toml message", help=purpose)


def team_and_message(options: argparse.Namespace, *, resumes: bool) -> tuple[Path | None, str | None]:
    """Return which of the words is the team file and which the message; either may be missing."""
    match options.words:
        case []:
            return None, None
        case [word] if _is_team_file(word, resumes=resumes):
            return Path(word), None
        case [word]:
            return None, word
        case [message, team] if _is_existing_team_file(team) and not os.path.isfile(message):  # noqa: PTH113
            raise WrongUsage(f"The team file comes first: {shlex.quote(team)} {shlex.quote(message)}")
        case [team, message]:
            return Path(team), message
        case _:
            raise WrongUsage('There are too many words. Put the message in quotes: team.toml "message"')


def message_text(message: str | None) -> str | None:
    """Return the message, read from stdin if it is there."""
    return sys.stdin.buffer.read().decode(errors="replace") if message == FROM_STDIN else message


def _is_existing_team_file(word: str) -> bool:
    return word.endswith(".toml") and os.path.isfile(word)  # noqa: PTH113


def _is_team_file(word: str, *, resumes: bool) -> bool:
    if len(word.split()) == 1 and word.endswith(".toml"):
        return True
    # os.path says no to what cannot be a name; a Path would raise.
    return not resumes and os.path.isfile(word)  # noqa: PTH113
