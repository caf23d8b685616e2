"""What the commands that open a conversation share: which team file, which conversation, and whether it may run."""

import argparse
from pathlib import Path

from msgspec import Struct

from bullpen.cli.database import add_database_option
from bullpen.cli.trust_question import ensure_trusted
from bullpen.database import open_database
from bullpen.errors import BullpenError
from bullpen.team.file import LoadedTeam, load_team
from bullpen.view.listing import ConversationSummary, find_conversation

USUAL_FILE = Path("team.toml")


class Opening(Struct, frozen=True, kw_only=True):
    """A conversation that can be opened."""

    loaded: LoadedTeam
    resume: str | None
    """The id of the conversation to continue; None starts a new one."""
    db: Path | None


def add_opening_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to open, and as whom."""
    parser.add_argument("--resume", metavar="ID", help="continue a conversation: its id, the beginning of it, or last")
    parser.add_argument("--as", dest="sender", metavar="NAME", help="which person of the team you are")
    parser.add_argument("--trust", action="store_true", help="run the team file without asking whether you trust it")
    add_database_option(parser)


def prepare(options: argparse.Namespace, team: Path | None) -> Opening:
    """Find and load what the options name, and ask for trust if that is needed."""
    stored: ConversationSummary | None = None
    if options.resume is not None:
        with open_database(options.db) as database:
            stored = find_conversation(database, options.resume)
    loaded = load_team(team_file(stored, team))
    ensure_trusted(loaded, trust=options.trust)
    return Opening(loaded=loaded, resume=stored.id if stored else None, db=options.db)


def team_file(stored: ConversationSummary | None, named: Path | None) -> Path:
    """Return the team file that is named, else the one that a conversation was last opened with, else the usual one."""
    if named is not None:
        return named
    if stored is None:
        if not USUAL_FILE.exists():
            raise BullpenError(
                "There is no team.toml here. Name a file, or let `bullpen init` write one for the agents you have. "
                "`bullpen demo` shows a conversation without either."
            )
        return USUAL_FILE
    if not stored.team_path:
        raise BullpenError(f"{stored.id} was started without a team file. Name one as well.")
    if not Path(stored.team_path).exists():
        raise BullpenError(f"The team file of {stored.id}, {stored.team_path}, is gone. Name another one as well.")
    return Path(stored.team_path)
