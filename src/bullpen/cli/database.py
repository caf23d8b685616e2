"""The option --db, which every command has that reads or writes conversations."""

import argparse
from pathlib import Path


def add_database_option(parser: argparse.ArgumentParser, default: object = None) -> None:
    """Add --db. A command with commands below it gives argparse.SUPPRESS to those, so that either place will do."""
    parser.add_argument(
        "--db", type=Path, metavar="FILE", default=default, help="the database of conversations (default: your own)"
    )
