"""`bullpen rewind`: the files as they were after a turn."""

import argparse
from functools import partial

from bullpen.cli.file_choices import add_options, put_and_print


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add_options(parser, "the turn whose files you want", is_needed=True)


run = partial(put_and_print, "rewind")
