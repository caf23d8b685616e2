"""`bullpen import`: a snapshot or a session file of the TypeScript system becomes a new conversation."""  # noqa: N999 - named as the command

import argparse
from pathlib import Path

from bullpen.cli.database import add_database_option, database_path
from bullpen.errors import BullpenError
from bullpen.exchange.formatting import counted
from bullpen.exchange.importing import copies_of, import_conversation, read_import
from bullpen.store.sqlite import SqliteStore
from bullpen.team.reader import read_team
from bullpen.terminal.tables import safe_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", metavar="FILE", help="a snapshot, a session file, or what `sessions export` wrote")
    parser.add_argument("--team", metavar="TEAM", help="the team file to go on with, or only a name")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Check everything, then store it."""
    imported = read_import(_content(Path(options.file)))
    team, team_file, team_path = _team(options.team)
    with SqliteStore(database_path(options)) as store:
        copies = copies_of(store, imported)
        conversation_id = import_conversation(
            store, imported, team=team or imported.team or "imported", team_file=team_file, team_path=team_path
        )
    print(f"Imported {counted(len(imported.messages), 'message')} as {conversation_id}.")
    if copies:
        print(safe_line(f"The same messages were there already, as {', '.join(copies)}. This is another copy."))
    print(f"Read it with: bullpen sessions show {conversation_id}")
    return 0


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BullpenError(f"{safe_line(str(path))} cannot be read: {error.strerror}. Nothing was written.") from error


def _team(given: str | None) -> tuple[str, str, str]:
    """Return the team's name, the text of its file and where that lies."""
    if given is None:
        return "", "", ""
    path = Path(given)
    if not path.is_file():
        if path.suffix == ".toml":
            raise BullpenError(f"There is no team file {safe_line(given)}. Nothing was written.")
        return given, "", ""
    text = _content(path).decode(errors="replace")
    return read_team(text).name, text, str(path.absolute())
