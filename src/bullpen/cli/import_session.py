"""`bullpen import --from`: a session of a CLI becomes a conversation; with --list, those that there are."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from bullpen.cli.typed_commands import to_type
from bullpen.database import open_or_create_database
from bullpen.exchange.cli_sessions.finding import (
    MOST_LISTED,
    READERS,
    CliSession,
    CliSessions,
    ListedSession,
    here_and_newest_first,
)
from bullpen.exchange.importing import copies_of, import_conversation
from bullpen.exchange.session_import import Cast, cast_of, imported_session
from bullpen.team.file import LoadedTeam
from bullpen.terminal.tables import print_table, safe_line
from bullpen.text.numbers import counted, day_or_clock

COLUMNS = ("from", "id", "last", "messages", "folder", "begins with")


def list_sessions(options: argparse.Namespace) -> int:
    """Print the newest sessions of one CLI, or of all, those of this folder first."""
    clis = [options.source] if options.source else list(READERS)
    by_cli = [CliSessions(cli).listed(Path.cwd()) for cli in clis]
    listed = sorted((session for sessions in by_cli for session in sessions), key=here_and_newest_first)
    if not listed:
        names = f"{', '.join(clis[:-1])} or {clis[-1]}" if clis[1:] else clis[0]
        print(f"No session of {names} was found, or none that can be read.")
        return 0
    print_table(COLUMNS, map(_row, listed))
    if any(len(sessions) == MOST_LISTED for sessions in by_cli):
        print(f"Only the {MOST_LISTED} newest are shown; older ones can be named, too.")
    print(f"Import one with: {to_type(f'import --from {listed[0].cli} ID')}")
    return 0


def import_session(options: argparse.Namespace, loaded: LoadedTeam | None, name: str) -> int:
    """Store a session as a new conversation. The CLI's own files are only read."""
    session = CliSessions(options.source).session(options.file, Path.cwd())
    cast = cast_of(options.source, loaded.team if loaded else None, options.member)
    imported = imported_session(session, cast)
    with open_or_create_database(options.db) as database:
        copies = copies_of(database, imported)
        conversation_id = import_conversation(
            database,
            imported,
            team=name or "imported",
            team_file=loaded.text if loaded else "",
            team_path=str(loaded.path) if loaded else "",
        )
    print(f"Imported {counted(len(imported.messages), 'message')} of {session.cli}'s session {safe_line(session.id)}.")
    for line in _remarks(session, cast, copies, has_team=loaded is not None):
        print(safe_line(line))
    print(f"Read it with: {to_type(f'sessions show {conversation_id}', options.db)}")
    team = "" if loaded else " TEAM.toml"
    print(f"Continue it with: {to_type(f'chat{team} --resume {conversation_id}', options.db)}")
    return 0


def _remarks(session: CliSession, cast: Cast, copies: Sequence[str], *, has_team: bool) -> list[str]:
    """Return what people should know about what was imported."""
    left_out = f"{counted(session.unreadable, 'line')} of its file could not be read and"
    remarks = {
        f"What {session.cli} said is now from {cast.agent.role_name} of your team.": cast.member,
        f"No single member of your team is {session.cli}: --as NAME would name one.": has_team and not cast.member,
        f"{left_out} {'was' if session.unreadable == 1 else 'were'} left out.": session.unreadable,
        f"Its beginning is in the session {session.missing}, which is gone.": session.missing,
        f"The same messages are stored already, as {', '.join(copies)}. This is another copy.": copies,
    }
    return [remark for remark, is_so in remarks.items() if is_so]


def _row(session: ListedSession) -> tuple[str, ...]:
    return (
        session.cli,
        session.short_id,
        day_or_clock(session.last_at),
        f"{session.messages:,}",
        "here" if session.is_here else _short(session.folder),
        session.beginning,
    )


def _short(folder: str) -> str:
    home = str(Path.home())
    return f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(f"{home}/") else folder
