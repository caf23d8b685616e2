"""`bullpen import`: an export, a snapshot or a session file of agent-chatter becomes a new conversation."""  # noqa: N999 - named as the command

import argparse
from pathlib import Path

from bullpen.cli.database import add_database_option
from bullpen.cli.typed_commands import to_type
from bullpen.database import open_or_create_database
from bullpen.errors import BullpenError
from bullpen.exchange.importing import copies_of, import_conversation, read_import
from bullpen.team.reader import read_team
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", metavar="FILE", help="a snapshot, a session file, or what `sessions export` wrote")
    parser.add_argument("--team", metavar="TEAM", help="the team file to continue with, or just a name")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Check everything, then store it."""
    imported = read_import(_content(Path(options.file)))
    team, team_file, team_path = _team(options.team)
    with open_or_create_database(options.db) as database:
        copies = copies_of(database, imported)
        conversation_id = import_conversation(
            database, imported, team=team or imported.team or "imported", team_file=team_file, team_path=team_path
        )
    print(f"Imported {counted(len(imported.messages), 'message')} as {conversation_id}.")
    if copies:
        print(safe_line(f"The same messages are stored already, as {', '.join(copies)}. This is another copy."))
    print(f"Read it with: {to_type(f'sessions show {conversation_id}', options.db)}")
    return 0


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BullpenError(f"{safe_line(str(path))} cannot be read: {error.strerror}. Nothing was written.") from error


def _team(given: str | None) -> tuple[str, str, str]:
    """Return the team's name, the text of its file and its path."""
    if given is None:
        return "", "", ""
    path = Path(given)
    if not path.is_file():
        if path.suffix == ".toml":
            raise BullpenError(f"There is no team file {safe_line(given)}. Nothing was written.")
        return given, "", ""
    text = _content(path).decode(errors="replace")
    return read_team(text).name, text, str(path.absolute())
