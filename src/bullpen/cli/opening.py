"""What the commands that open a conversation share: which team file, which conversation, and whether it may run."""

import argparse
from pathlib import Path

from msgspec import Struct

from bullpen.cli.database import add_database_option, find_conversation, open_store
from bullpen.cli.trusting import ensure_trusted
from bullpen.errors import BullpenError, NoTeamFile
from bullpen.team_files import LoadedTeam, load_team

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
    resume: str | None = None
    path = team or USUAL_FILE
    if options.resume is not None:
        with open_store(options) as store:
            stored = find_conversation(store, options.resume)
        resume = stored.id
        path = team or _file_of(stored.id, stored.team_path)
    elif team is None and not USUAL_FILE.exists():
        raise BullpenError(
            "There is no team.toml here. `bullpen init` writes one for the agents that you have, and `bullpen demo` "
            "shows a conversation that needs none. Or name a file."
        )
    loaded = load_team(path)
    ensure_trusted(loaded, trust=options.trust)
    return Opening(loaded=loaded, resume=resume, db=options.db)


def _file_of(conversation_id: str, team_path: str) -> Path:
    """Return the team file that a conversation was last opened with."""
    if not team_path:
        raise BullpenError(f"{conversation_id} was begun without a team file. Name one beside --resume.")
    if not Path(team_path).exists():
        raise BullpenError(
            f"{NoTeamFile(team_path)} To go on with {conversation_id}, name another one beside --resume."
        )
    return Path(team_path)
