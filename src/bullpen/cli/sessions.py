"""`bullpen sessions`: the stored conversations. What each action does is in session_*.py."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bullpen.cli import session_files, session_lists, session_titles
from bullpen.cli.database import add_database_option
from bullpen.cli.option_types import at_least_one
from bullpen.exchange.files import FORMATS
from bullpen.view.listing import LAST


class Action(NamedTuple):
    """What can follow `bullpen sessions`."""

    purpose: str
    run: Callable[[argparse.Namespace], int]
    add_arguments: Callable[[argparse.ArgumentParser], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options without an action: those of list."""
    parser.usage = "bullpen sessions [action] [options]"
    _list_options(parser)
    parser.set_defaults(action=ACTIONS["list"].run)


def run(options: argparse.Namespace) -> int:
    """Run the action that was chosen."""
    action: Callable[[argparse.Namespace], int] = options.action
    return action(options)


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", help="only those with these words in their title (default: all)")
    _list_options(parser)


def _list_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(words=[])
    parser.add_argument("--team", metavar="NAME", help="only those of this team")
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="only those of teams in this folder or below it")
    parser.add_argument("--archived", action="store_true", help="list those that were archived")
    add_database_option(parser)
    _add_json(parser)


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument("--last", type=at_least_one, default=20, metavar="N", help="how many messages (default: 20)")
    parser.add_argument("--all", action="store_true", help="all messages")
    parser.add_argument("--memory", action="store_true", help="instead, what each agent remembers: its own session")
    add_database_option(parser)
    _add_json(parser)


def _watch_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument(
        "--last",
        type=at_least_one,
        default=5,
        metavar="N",
        help="how many earlier messages come first (default: 5)",
    )
    add_database_option(parser)


def _search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help='words to find; a phrase "in quotes" must occur exactly')
    parser.add_argument("--session", metavar="ID", help="search only this conversation")
    parser.add_argument(
        "--limit", type=at_least_one, default=20, metavar="N", help="find at most N messages, the newest (default: 20)"
    )
    add_database_option(parser)
    _add_json(parser)


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument("--format", choices=FORMATS, help="default: what the name of the file says, else md")
    parser.add_argument("--output", metavar="FILE", help="a file that only you can read (default: print it)")
    parser.add_argument("--prompts", action="store_true", help="JSON only: include prompts, command lines and streams")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    add_database_option(parser)


def _fork_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument(
        "--at",
        type=at_least_one,
        metavar="N",
        help="the number of the last message that the new one has (default: all messages)",
    )
    parser.add_argument(
        "--with-files", action="store_true", help="let its agents work in a git worktree with the files of that moment"
    )
    add_database_option(parser, or_server=True)


def _rename_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a conversation, the beginning of it, or last")
    parser.add_argument("title", nargs="+", help="the new title; - removes it")
    add_database_option(parser)


def _archive_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a conversation, the beginning of it, or last")
    add_database_option(parser)


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a conversation, the beginning of it, or last")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also if an agent's own workspace, or the files of a fork, have work not yet merged",
    )
    add_database_option(parser)


def _watch(options: argparse.Namespace) -> int:
    # The others do not need what a running conversation is made of, and are faster without.
    from bullpen.cli.session_watch import watch_one

    return watch_one(options)


def _fork(options: argparse.Namespace) -> int:
    from bullpen.cli.session_forks import fork

    return fork(options)


ACTIONS = {
    "list": Action("list all conversations, the latest first", session_lists.list_all, _list_arguments),
    "show": Action("print the messages of a conversation", session_lists.show, _show_arguments),
    "watch": Action("follow a conversation that another process runs", _watch, _watch_arguments),
    "search": Action("find what was said", session_lists.search, _search_arguments),
    "export": Action("write a conversation as Markdown, HTML or JSON", session_files.export, _export_arguments),
    "fork": Action("begin a new conversation with the messages of another one, up to a number", _fork, _fork_arguments),
    "rename": Action("give a conversation another title", session_titles.rename, _rename_arguments),
    "archive": Action("take a conversation out of the list", session_titles.archive, _archive_arguments),
    "unarchive": Action("put a conversation back into the list", session_titles.unarchive, _archive_arguments),
    "delete": Action("delete a conversation permanently", session_files.delete, _delete_arguments),
}


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id",
        metavar="ID",
        nargs="?",
        default=LAST,
        help="a conversation: its id, or the beginning of it (default: last)",
    )
