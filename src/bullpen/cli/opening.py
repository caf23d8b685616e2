"""What the commands that open a conversation share: which team file, which conversation, and whether it may run."""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from bullpen.cli.database import add_database_option
from bullpen.cli.trust_question import ensure_trusted
from bullpen.database import Database, open_database
from bullpen.errors import BullpenError
from bullpen.team.file import LoadedTeam, load_team, team_path
from bullpen.text.safe import printable
from bullpen.view.listing import ConversationSummary, conversation_to_continue

USUAL_FILE = Path("team.toml")


class Opening(Struct, frozen=True, kw_only=True):
    """A conversation that can be opened."""

    loaded: LoadedTeam
    resume: str | None
    """The id of the conversation to continue; None starts a new one."""
    db: Path | None
    database: Database | None = None
    """Where the conversation was found, open already: opening checks the file, and once is enough."""

    @property
    def opens(self) -> Database | Path | None:
        """What open_team opens it in."""
        return self.database or self.db


def add_opening_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to open, and as whom."""
    parser.add_argument("--resume", metavar="ID", help="continue a conversation: its id, the beginning of it, or last")
    parser.add_argument("--as", dest="sender", metavar="NAME", help="which person of the team you are")
    parser.add_argument(
        "--team-changed", action="store_true", help="continue a conversation with another team file, without asking"
    )
    parser.add_argument("--trust", action="store_true", help="run the team file without asking whether you trust it")
    add_database_option(parser)


def prepare(options: argparse.Namespace, team: Path | None) -> Opening:
    """Find and load what the options name, and ask for trust if that is needed."""
    if options.resume is None:
        return Opening(loaded=_trusted(team_file(None, team), options), resume=None, db=options.db)
    with ExitStack() as on_error:
        database = on_error.enter_context(open_database(options.db))
        stored = conversation_to_continue(database, options.resume, team)
        file = team_file(stored, team)
        _ensure_same_team(stored, file, changed=options.team_changed)
        loaded = _trusted(file, options)
        # It stays open for the conversation.
        on_error.pop_all()
    return Opening(loaded=loaded, resume=stored.id, db=options.db, database=database)


def _ensure_same_team(stored: ConversationSummary, file: Path, *, changed: bool) -> None:
    """Return if a conversation is continued with its own team file, or a person wants another one."""
    if changed or not stored.team_path or Path(stored.team_path) == team_path(file):
        return
    about = f"{stored.id} was last open with {stored.team_path}. The agents of {file} would read what was said in it."
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BullpenError(f"{about} If you want that, add --team-changed.")
    print(printable(f"{about}\nContinue? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise BullpenError("Nothing was changed.")


def _trusted(file: Path, options: argparse.Namespace) -> LoadedTeam:
    loaded = load_team(file)
    ensure_trusted(loaded, trust=options.trust)
    return loaded


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
