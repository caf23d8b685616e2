"""`bullpen fsck`: whether everything is as it was written. Nothing is ever changed."""

import argparse
from collections.abc import Iterable

from bullpen.cli.database import add_database_option, database_path, find_conversation, open_store
from bullpen.errors import NoConversations, StoreDamaged, UnknownConversation
from bullpen.exchange.formatting import counted
from bullpen.store.base import Finding, Store
from bullpen.terminal.tables import safe_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("id", metavar="ID", nargs="?", help="only this conversation (default: all, and the file)")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print every finding; 0 if there is none."""
    path = safe_line(str(database_path(options)))
    try:
        with open_store(options) as store:
            findings = _findings(store, options.id)
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


def _findings(store: Store, reference: str | None) -> list[Finding]:
    try:
        return store.fsck(reference)
    except UnknownConversation:
        # Only now, since the list of conversations may be what is damaged.
        return store.fsck(find_conversation(store, str(reference)).id)


def _sentence(finding: Finding) -> str:
    where = "The file" if finding.conversation_id is None else f"Conversation {finding.conversation_id}"
    where = "The index for searching" if finding.kind == "index" else where
    return f"{safe_line(where)}: {safe_line(finding.text).rstrip('.')}."


def _advice(path: str, findings: Iterable[Finding]) -> str:
    kinds = [finding.kind for finding in findings]
    found = f"\n{counted(len(kinds), 'finding')}. Nothing was changed."
    if set(kinds) == {"index"}:
        return f"{found} All messages are whole; only searching may miss some. Export what matters, or use a backup."
    return (
        f"{found} Copy {path} to a safe place first, together with the -wal file beside it if there is one.\n"
        "Then use a backup, or save what can be read with: bullpen sessions export ID --output FILE"
    )
