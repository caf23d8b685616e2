"""`bullpen redo`: what an undo took back, brought back."""

import argparse
from functools import partial

from bullpen.cli.file_choices import add_options, put_and_print


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add_options(parser, "the turn to bring back (default: the one that was taken back last)")


run = partial(put_and_print, "redo")
