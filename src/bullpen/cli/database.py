"""The option --db, which every command has that reads or writes conversations."""

import argparse
from pathlib import Path


def add_database_option(parser: argparse.ArgumentParser) -> None:
    """Add --db."""
    parser.add_argument("--db", type=Path, metavar="FILE", help="the database of conversations (default: your own)")
