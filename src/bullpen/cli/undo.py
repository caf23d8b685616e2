"""`bullpen undo`: the files as they were before a turn."""

import argparse
from functools import partial

from bullpen.cli.file_choices import add_options, put_and_print


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add_options(parser, "the turn to take back (default: the last one that changed files)")
    parser.add_argument("--all", action="store_true", help="also what a person perhaps changed while it ran")


run = partial(put_and_print, "undo")
