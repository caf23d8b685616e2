"""`bullpen import`: a session of a CLI or of agent-chatter, an export or a snapshot becomes a conversation."""  # noqa: N999 - named as the command

import argparse
from pathlib import Path

from bullpen.cli.database import add_database_option
from bullpen.cli.typed_commands import to_type
from bullpen.database import open_or_create_database
from bullpen.errors import BullpenError, WrongUsage
from bullpen.exchange.importing import copies_of, import_conversation, read_import
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.given_file import open_given
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted

CLIS = ("claude", "codex", "gemini", "qwen")
USUAL_FILE = Path("team.toml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a snapshot, a session file, or what `sessions export` wrote; with --from, the id of a session, the "
        "beginning of it, or last",
    )
    parser.add_argument("--from", dest="source", choices=CLIS, help="import a session of this CLI itself")
    parser.add_argument("--list", action="store_true", help="list the sessions of the CLIs, or of the one after --from")
    parser.add_argument(
        "--as", dest="member", metavar="NAME", help="with --from, which member of the team the agent is"
    )
    parser.add_argument("--team", metavar="TEAM", help="the team file to continue with, or just a name")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Check everything, then store it."""
    _check(options)
    if options.list or options.source:
        return _run_from_cli(options)
    imported = read_import(_content(Path(options.file)))
    loaded, name = _team(options.team)
    with open_or_create_database(options.db) as database:
        copies = copies_of(database, imported)
        conversation_id = import_conversation(
            database,
            imported,
            team=name or imported.team or "imported",
            team_file=loaded.text if loaded else "",
            team_path=str(loaded.path) if loaded else "",
        )
    print(f"Imported {counted(len(imported.messages), 'message')} as {conversation_id}.")
    if copies:
        print(safe_line(f"The same messages are stored already, as {', '.join(copies)}. This is another copy."))
    print(f"Read it with: {to_type(f'sessions show {conversation_id}', options.db)}")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise WrongUsage if the words do not make sense together."""
    if options.file is None and not options.list and options.source is None:
        raise WrongUsage("Name a file, or with --from a CLI. `bullpen import --list` lists the sessions of all CLIs.")
    if options.list and options.file is not None:
        raise WrongUsage(f"--list imports nothing: leave out {options.file!r}, or --list.")
    if options.member is not None and options.source is None:
        raise WrongUsage("--as is for sessions of a CLI: name it with --from.")


def _run_from_cli(options: argparse.Namespace) -> int:
    """Do what is asked with the sessions of the CLIs themselves. Without an id, those that there are are listed."""
    from bullpen.cli.import_session import import_session, list_sessions

    if options.file is None:
        return list_sessions(options)
    usual = str(USUAL_FILE) if USUAL_FILE.exists() else None
    loaded, name = _team(options.team or usual)
    return import_session(options, loaded, name)


def _content(path: Path) -> bytes:
    try:
        with open_given(path) as file:
            return file.read()
    except OSError as error:
        raise BullpenError(f"{safe_line(str(path))} cannot be read: {error.strerror}. Nothing was written.") from error


def _team(given: str | None) -> tuple[LoadedTeam | None, str]:
    """Return the team in a file, or none, and its name."""
    if given is None:
        return None, ""
    path = Path(given)
    if not path.is_file():
        if path.suffix == ".toml":
            raise BullpenError(f"There is no team file {safe_line(given)}. Nothing was written.")
        return None, given
    loaded = load_team(path)
    return loaded, loaded.team.name
