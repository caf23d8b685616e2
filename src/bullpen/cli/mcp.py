"""`bullpen mcp`: the tools of a turn, for the CLI that runs it. bullpen starts it; it is of no use to people."""

import argparse

ABOUT = "An agent's CLI starts this for one turn, as bullpen tells it to. It speaks MCP on its input and output."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("socket", metavar="SOCKET", help="the socket of the turn")
    parser.epilog = ABOUT


def run(options: argparse.Namespace) -> int:
    """Serve the CLI until it closes our input."""
    from bullpen.tools.mcp import serve

    serve(options.socket)
    return 0
