"""`bullpen sessions fork`: a new conversation with the history of another one."""

import argparse
import asyncio

from bullpen.cli.cluster_option import need_cluster
from bullpen.cli.typed_commands import to_type
from bullpen.conversation.files_to_fork import FilesHere, FindFiles
from bullpen.database import Database, open_database
from bullpen.exchange.forking import Fork, fork_conversation
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted
from bullpen.view.listing import find_conversation


def fork(options: argparse.Namespace) -> int:
    """Fork a conversation at a message, and say how to open the new one."""
    is_there = isinstance(options.db, str)
    made = (_fork_there if is_there else _fork_here)(options)
    print(safe_line(f"Forked {made.original} at message {made.at} as {made.id}: {made.title}"))
    count = counted(made.at + bool(made.folders), "message")
    read = "" if is_there else f" Read it with: {to_type(f'sessions show {made.id}', options.db)}"
    print(f"It has {count}.{read}")
    for folder in made.folders:
        print(safe_line(f"Its files are in {folder}"))
    if is_there:
        print(f"Read and continue it at a node of the cluster, at /c/{made.id}")
        return 0
    team = "" if made.team_path else " TEAM.toml"
    print(f"Continue it with: {to_type(f'chat{team} --resume {made.id}', options.db)}")
    return 0


def _fork_here(options: argparse.Namespace) -> Fork:
    with open_database(options.db) as database:
        return _fork(options, database, FilesHere)


def _fork_there(options: argparse.Namespace) -> Fork:
    """Fork a conversation on a server; the workers that have its files do what is to be done with them."""
    need_cluster()
    from bullpen.cluster.remote_forks import finding_files
    from bullpen.cluster.short_node import open_short_node

    async def fork() -> Fork:
        async with open_short_node(options.db) as (node, store):
            return await asyncio.to_thread(_fork, options, store, finding_files(node))

    return asyncio.run(fork())


def _fork(options: argparse.Namespace, database: Database, find: FindFiles) -> Fork:
    conversation_id = find_conversation(database, options.id).id
    return fork_conversation(database, conversation_id, options.at, with_files=options.with_files, find=find)
