"""`bullpen sessions`: the stored conversations. What each command below it does is in session_*.py."""

import argparse
from collections.abc import Callable

from bullpen.cli import session_files, session_lists
from bullpen.cli.database import add_database_option
from bullpen.exchange.files import FORMATS

Run = Callable[[argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the commands and their options."""
    add_database_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(action=session_lists.list_all)
    actions = parser.add_subparsers(metavar="action", title="actions", description="Without one: list.")
    _add(actions, "list", "list all conversations, the latest first", session_lists.list_all, json=True)

    show = _add(actions, "show", "print the messages of a conversation", session_lists.show, json=True)
    _add_id(show)
    show.add_argument("--last", type=int, default=20, metavar="N", help="how many messages (default: 20)")
    show.add_argument("--all", action="store_true", help="all messages")

    watch = _add(actions, "watch", "follow a conversation that another process runs", _watch)
    _add_id(watch)
    watch.add_argument(
        "--last", type=int, default=5, metavar="N", help="how many earlier messages to print first (default: 5)"
    )

    search = _add(actions, "search", "find what was said", session_lists.search, json=True)
    search.add_argument("query", nargs="+", help='words to find; a phrase "in quotes" must occur exactly')
    search.add_argument("--session", metavar="ID", help="search only this conversation")
    search.add_argument(
        "--limit", type=int, default=20, metavar="N", help="find at most N messages, the newest (default: 20)"
    )

    export = _add(actions, "export", "write a conversation as Markdown, HTML or JSON", session_files.export)
    _add_id(export)
    export.add_argument("--format", choices=FORMATS, help="default: what the name of the file says, else md")
    export.add_argument("--output", metavar="FILE", help="a file that only you can read (default: print it)")
    export.add_argument("--prompts", action="store_true", help="JSON only: include prompts, command lines and streams")
    export.add_argument("--force", action="store_true", help="replace an existing file")

    delete = _add(actions, "delete", "delete a conversation permanently", session_files.delete)
    _add_id(delete)
    delete.add_argument("--yes", action="store_true", help="do not ask")


def run(options: argparse.Namespace) -> int:
    """Run the action that was chosen."""
    action: Run = options.action
    return action(options)


def _watch(options: argparse.Namespace) -> int:
    # The others do not need what a running conversation is made of, and are faster without.
    from bullpen.cli.session_watch import watch_one

    return watch_one(options)


def _add(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    purpose: str,
    action: Run,
    *,
    json: bool = False,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    parser.set_defaults(action=action)
    add_database_option(parser, argparse.SUPPRESS)
    if json:
        parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON for programs")
    return parser


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a conversation, the beginning of it, or last")
