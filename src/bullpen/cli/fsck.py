"""`bullpen fsck`: whether everything is still as it was written. It never changes anything."""

import argparse
from collections.abc import Iterable

from bullpen.cli.database import add_database_option
from bullpen.database import Database, Finding, database_path, open_database
from bullpen.errors import NoConversations, StoreDamaged, UnknownConversation
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted
from bullpen.view.listing import find_conversation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("id", metavar="ID", nargs="?", help="only this conversation (default: all, and the file)")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print every finding; return 0 if there is none."""
    path = safe_line(str(database_path(options.db)))
    try:
        with open_database(options.db) as database:
            findings = _findings(database, options.id)
    except NoConversations as nothing:
        if options.id is not None or options.db is not None:
            raise
        print(nothing)
        return 0
    except StoreDamaged as error:
        findings = [Finding(kind="file", conversation_id=None, text=error.reason)]
    if not findings:
        print(f"{path}: {'everything' if options.id is None else safe_line(options.id)} is as it was written.")
        return 0
    for finding in findings:
        print(_sentence(finding))
    print(_advice(path, findings))
    return 1


def _findings(database: Database, reference: str | None) -> list[Finding]:
    try:
        return database.fsck(reference)
    except UnknownConversation:
        # Only now, since the list of conversations may be what is damaged.
        return database.fsck(find_conversation(database, str(reference)).id)


def _sentence(finding: Finding) -> str:
    where = "The file" if finding.conversation_id is None else f"Conversation {finding.conversation_id}"
    where = "The index for searching" if finding.kind == "index" else where
    return f"{safe_line(where)}: {safe_line(finding.text).rstrip('.')}."


def _advice(path: str, findings: Iterable[Finding]) -> str:
    kinds = [finding.kind for finding in findings]
    found = f"\n{counted(len(kinds), 'finding')}. Nothing was changed."
    if set(kinds) == {"index"}:
        return f"{found} All messages are complete; only searching may miss some. Export what matters, or use a backup."
    return (
        f"{found} Copy {path} to a safe place first, together with the -wal file next to it if there is one.\n"
        "Then use a backup, or save what can be read with: bullpen sessions export ID --output FILE"
    )
