"""Asking a person once whether a team file may run what it names."""

import sys

from bullpen.errors import NotTrusted
from bullpen.team.file import LoadedTeam
from bullpen.team.trust import Trust
from bullpen.text.safe import printable
from bullpen.view.trust_question import trust_question


def ensure_trusted(loaded: LoadedTeam, *, trust: bool) -> None:
    """Return if this team file may run: because it is known, because of --trust, or because a person says so now.

    Everything is shown on stderr, since a program may be reading stdout.
    """
    known = Trust()
    if known.knows(loaded.path, loaded.text):
        return
    if not trust:
        _show(loaded)
        _ask(loaded)
    known.remember(loaded.path, loaded.text)


def _ask(loaded: LoadedTeam) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotTrusted(loaded.path, "Read what it runs, and if you agree, add --trust.")
    print("Run it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotTrusted(loaded.path, "Change it as you like; you will be asked again.")


def _show(loaded: LoadedTeam) -> None:
    question = trust_question(loaded)
    lines = [f"{question.path} is new here, or has changed. It would run:", ""]
    for asked in question.members:
        lines += [f"  {asked.member}", *(f"    {verb:<5} {words}" for verb, words in asked.facts), ""]
    for note in question.notes:
        lines += [f"  {note}", ""]
    print("\n".join(map(printable, lines)), file=sys.stderr)
