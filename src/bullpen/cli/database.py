"""The option --db, which every command has that reads or writes conversations."""

import argparse

# An editor waits for this file to be imported, and not everybody names a database.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

SERVERS = ("postgresql://", "postgres://")
ONLY_FILES = "this command needs a file; `bullpen backup` and `bullpen move` copy conversations from a server to a file"


def add_database_option(parser: argparse.ArgumentParser, *, or_server: bool = False) -> None:
    """Add --db: a Path, or the address of a server as text where a command can use one."""
    type_, metavar = (_file_or_server, "FILE|ADDRESS") if or_server else (_file, "FILE")
    parser.add_argument("--db", type=type_, metavar=metavar, help="the database of conversations (default: your own)")


def _file_or_server(text: str) -> "Path | str":
    return text if text.startswith(SERVERS) else _path(text)


def _file(text: str) -> "Path":
    if text.startswith(SERVERS):
        raise argparse.ArgumentTypeError(ONLY_FILES)
    return _path(text)


def _path(text: str) -> "Path":
    from pathlib import Path

    return Path(text)
