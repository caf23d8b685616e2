"""What the commands that open a conversation share: which team file, which conversation, and whether it may run."""

import argparse
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from bullpen.app import leave_open
from bullpen.cli.database import add_database_option, find_conversation, open_store
from bullpen.cli.trust_question import ensure_trusted
from bullpen.errors import BullpenError
from bullpen.store.base import StoredConversation
from bullpen.team.file import LoadedTeam, load_team

USUAL_FILE = Path("team.toml")


class Opening(Struct, frozen=True, kw_only=True):
    """A conversation that can be opened."""

    loaded: LoadedTeam
    resume: str | None
    """The id of the conversation to go on with; None begins a new one."""
    db: Path | None


def add_opening_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to open, and as whom."""
    parser.add_argument("--resume", metavar="ID", help="go on with a conversation: its id, its beginning, or last")
    parser.add_argument("--as", dest="sender", metavar="NAME", help="which person of the team you are")
    parser.add_argument("--trust", action="store_true", help="run the team file without asking whether you trust it")
    add_database_option(parser)


def prepare(options: argparse.Namespace, team: Path | None) -> Opening:
    """Find and load what the options name, and ask for trust if that is needed."""
    if options.resume is None:
        return Opening(loaded=_trusted(team_file(None, team), options), resume=None, db=options.db)
    with ExitStack() as unless_it_opens:
        store = unless_it_opens.enter_context(open_store(options))
        stored = find_conversation(store, options.resume)
        loaded = _trusted(team_file(stored, team), options)
        unless_it_opens.pop_all()
        leave_open(store)
    return Opening(loaded=loaded, resume=stored.id, db=options.db)


def _trusted(file: Path, options: argparse.Namespace) -> LoadedTeam:
    loaded = load_team(file)
    ensure_trusted(loaded, trust=options.trust)
    return loaded


def team_file(stored: StoredConversation | None, named: Path | None) -> Path:
    """Return the team file that is named, else the one that a conversation was last opened with, else the usual one."""
    if named is not None:
        return named
    if stored is None:
        if not USUAL_FILE.exists():
            raise BullpenError(
                "There is no team.toml here. Name a file, or let `bullpen init` write one for the agents you have. "
                "`bullpen demo` shows a conversation that needs neither."
            )
        return USUAL_FILE
    if not stored.team_path:
        raise BullpenError(f"{stored.id} was begun without a team file. Name one beside it.")
    if not Path(stored.team_path).exists():
        raise BullpenError(f"The team file of {stored.id}, {stored.team_path}, is gone. Name another one beside it.")
    return Path(stored.team_path)
