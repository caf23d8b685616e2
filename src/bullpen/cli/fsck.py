"""`bullpen fsck`: whether everything is still as it was written. It changes nothing, except what it is told to mend."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from bullpen.cli.database import add_database_option
from bullpen.cli.typed_commands import to_type
from bullpen.conversation.kept_files import kept_file_bytes, remove_unneeded_files
from bullpen.conversation.repair import repair
from bullpen.database import Database, Finding, database_path, open_database, open_source, shown_address
from bullpen.errors import LogLost, NoConversations, StoreDamaged, UnknownConversation
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted, size
from bullpen.view.listing import find_conversation

EMPTY = (
    "nothing is wrong with it, but it has no conversations. If it is a copy of a file that was in use, they are in the "
    "log that was left beside that one, which ends in -wal. Copy it with: bullpen backup"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("id", metavar="ID", nargs="?", help="only this conversation (default: all, and the file)")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="mend conversations that refuse what is said in them, if nothing is damaged; "
        "and remove what files were in conversations that are deleted",
    )
    add_database_option(parser, or_server=True)


def run(options: argparse.Namespace) -> int:
    """Print every finding; return 0 if there is none."""
    server = options.db if isinstance(options.db, str) else None
    is_empty = False
    path = safe_line(str(database_path(options.db)) if server is None else shown_address(server))
    try:
        with open_database(options.db) if server is None else open_source(server) as database:
            findings = _findings(database, options.id)
            if options.repair and _only_stuck(findings):
                return _repair(database, findings, options.id)
            if options.repair and not findings and options.id is None:
                _remove_unneeded(database)
            is_empty = server is None and not (findings or options.repair or database.conversations())
    except NoConversations as nothing:
        if options.id is not None or options.db is not None:
            raise
        print(nothing)
        return 0
    except LogLost as error:
        print(safe_line(f"The file: {error.reason}. {error.hint}"))
        return 1
    except StoreDamaged as error:
        findings = [Finding(kind="file", conversation_id=None, text=error.reason)]
    if not findings and is_empty:
        print(f"{path}: {EMPTY}")
        return 0
    if not findings:
        what = "everything" if options.id is None else safe_line(options.id)
        print(f"{path}: {what} is as it was written.{_about_files(database_path(options.db))}")
        return 0
    for finding in findings:
        print(_sentence(finding))
    print(_advice(path, findings, options.db) if server is None else _advice_about_server(findings))
    return 1


def _findings(database: Database, reference: str | None) -> list[Finding]:
    try:
        return database.fsck(reference)
    except UnknownConversation:
        # Only now, since the list of conversations may be what is damaged.
        return database.fsck(find_conversation(database, str(reference)).id)


def _only_stuck(findings: Sequence[Finding]) -> bool:
    return bool(findings) and all(finding.kind == "stuck" for finding in findings)


def _repair(database: Database, findings: list[Finding], reference: str | None) -> int:
    """Mend what was found, and look again."""
    for conversation_id in dict.fromkeys(finding.conversation_id for finding in findings):
        for mended in repair(database, str(conversation_id)):
            print(f"Mended: {_sentence(mended)}")
    print(f"\n{counted(len(findings), 'finding')} mended. Nothing that was said has changed.")
    return int(bool(_findings(database, reference)))


def _remove_unneeded(database: Database) -> None:
    freed = remove_unneeded_files(database)
    if freed is None:
        print("What files were in conversations that are deleted stays, since other conversations are open.")
    elif freed > 0:
        print(f"Removed {size(freed)} of what files were in conversations that are deleted.")


def _about_files(database: Path) -> str:
    kept = kept_file_bytes(database)
    return f" What files were takes {size(kept)} beside it." if kept else ""


def _sentence(finding: Finding) -> str:
    where = "The file" if finding.conversation_id is None else f"Conversation {finding.conversation_id}"
    where = "The index for searching" if finding.kind == "index" else where
    return f"{safe_line(where)}: {safe_line(finding.text).rstrip('.')}."


def _advice_about_server(findings: Sequence[Finding]) -> str:
    found = f"\n{counted(len(findings), 'finding')}. Nothing was changed."
    if _only_stuck(findings):
        return f"{found} Nothing is damaged. Mend this with: bullpen fsck --repair, and the same --db"
    return f"{found} See whether the server's files are sound with pg_amcheck, and use a backup of the server."


def _advice(path: str, findings: Iterable[Finding], db: Path | None) -> str:
    kinds = [finding.kind for finding in findings]
    found = f"\n{counted(len(kinds), 'finding')}. Nothing was changed."
    if set(kinds) == {"stuck"}:
        return f"{found} Nothing is damaged. Mend this with: {safe_line(to_type('fsck --repair', db))}"
    if set(kinds) == {"index"}:
        return f"{found} All messages are complete; only searching may miss some. Export what matters, or use a backup."
    save = safe_line(to_type("sessions export ID --output FILE", db))
    return (
        f"{found} Copy {path} to a safe place first, together with the -wal file next to it if there is one.\n"
        f"Then use a backup, or save what can be read with: {save}"
    )
