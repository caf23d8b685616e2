"""`bullpen help`: what `--help` says, for those who ask first."""

import argparse

from bullpen.cli.parser import WRONG_USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the words."""
    parser.add_argument("words", nargs="*", metavar="command", help="a command, and its action: sessions show")
    parser.add_argument("--all", action="store_true", help="list every command")


def run(options: argparse.Namespace) -> int:
    """Print the help of bullpen, or of a command."""
    from bullpen.cli import COMMANDS, command_parser, main

    if not options.words or options.words[0] not in COMMANDS:
        return main(options.words or ["--help", *(["--all"] if options.all else [])])
    parser, others = command_parser(options.words[0], options.words[1:])
    if others:
        parser.parse(others)
        return WRONG_USAGE
    parser.print_help()
    return 0
