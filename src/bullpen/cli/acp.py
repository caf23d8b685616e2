"""`bullpen acp`: the whole team as one agent for an editor, which starts this and speaks with it."""

import argparse
import os
import sys

from bullpen.cli.database import add_database_option

FOR_EDITORS = "This is for an editor, which speaks in lines of JSON. To talk with your team here: bullpen chat"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "file", nargs="?", metavar="team.toml", help="the team file (default: team.toml in the project)"
    )
    parser.add_argument("--as", dest="sender", metavar="NAME", help="which person of the team you are")
    parser.add_argument("--trust", action="store_true", help="run the team file without asking whether you trust it")
    add_database_option(parser)
    parser.epilog = "An editor starts this, and speaks the Agent Client Protocol with it."


def run(options: argparse.Namespace) -> int:
    """Serve an editor until it closes our input, and let the agents that work then come to their end."""
    if os.isatty(0):
        print(FOR_EDITORS, file=sys.stderr)
    # Nothing else that runs here may read what the editor says, or write between what we say to it.
    source, target = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    from bullpen.cli.editor.handshake import shake_hands

    met = shake_hands(source, target)
    if met is None:
        return 0
    # Only now: the editor has its answer, and waits for a person.
    import asyncio
    from pathlib import Path

    from bullpen.cli.editor.agent import serve
    from bullpen.cli.editor.shapes import EditorOptions
    from bullpen.cli.logs import begin_logging, is_debugging
    from bullpen.cli.within_agents import use_own_data

    begin_logging(debug=options.debug or is_debugging())

    file = Path(options.file) if options.file is not None else None
    trusted = use_own_data(options.db)
    given = EditorOptions(file=file, sender=options.sender, trust=options.trust, db=options.db, trusted=trusted)
    return asyncio.run(serve(given, source, target, met))
