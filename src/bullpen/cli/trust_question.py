"""Asking a person whether a team file may run what it names, and what the settings in its agents' folders name."""

import sys

from bullpen.errors import NotTrusted
from bullpen.team.file import LoadedTeam
from bullpen.team.trust import Trust, settings_marks
from bullpen.text.visible import visible
from bullpen.view.trust_question import TrustQuestion, trust_question

NEW = "is new here, or has changed. It would run:"
NEW_SETTINGS = "has agents that read settings of their folders, and these are new here, or have changed. It would run:"
WITHOUT = (
    "Nobody has agreed to these settings, so agents are started without them; those that cannot be are not started."
)


def ensure_trusted(loaded: LoadedTeam, *, trust: bool) -> None:
    """Return if this team file may run: because it is known, because of --trust, or because a person says so now.

    Without a yes to new settings of a known team file, it runs without these. Everything is shown on stderr, since a
    program may be reading stdout.
    """
    known = Trust()
    is_known = known.knows(loaded.path, loaded.text)
    if is_known and settings_marks(loaded.team, loaded.root) <= known.agreed(loaded.path):
        return
    question = trust_question(loaded)
    if not trust:
        _show(question, NEW_SETTINGS if is_known else NEW)
        if is_known and not _agrees_to_settings():
            print(WITHOUT, file=sys.stderr)
            return
        if not is_known:
            _ask(loaded)
    known.remember(loaded.path, loaded.text, question.marks)


def _agrees_to_settings() -> bool:
    return _is_terminal() and _said_yes("Let these settings be read? [y/N] ")


def _ask(loaded: LoadedTeam) -> None:
    if not _is_terminal():
        raise NotTrusted(loaded.path, "Read what it runs, and if you agree, add --trust.")
    if not _said_yes("Run it? [y/N] "):
        raise NotTrusted(loaded.path, "Change it as you like; you will be asked again.")


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _said_yes(question: str) -> bool:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show(question: TrustQuestion, why: str) -> None:
    lines = [f"{visible(str(question.path))} {why}", ""]
    for asked in question.members:
        lines += [f"  {asked.member}", *(f"    {verb:<5} {words}" for verb, words in asked.facts), ""]
    for note in question.notes:
        lines += [f"  {note}", ""]
    print("\n".join(lines), file=sys.stderr)
