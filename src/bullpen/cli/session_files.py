"""`bullpen sessions export` and `delete`: what writes files, or removes conversations."""

import argparse
import os
import sys
from pathlib import Path

from bullpen.cli.typed_commands import to_type
from bullpen.clock import milliseconds
from bullpen.database import open_database
from bullpen.errors import BullpenError, OutputExists, WrongUsage
from bullpen.exchange.files import FORMATS, Format, write_export, write_private_file
from bullpen.exchange.formatting import Writable
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted, size
from bullpen.text.safe import printable
from bullpen.view.listing import delete as delete_conversation
from bullpen.view.listing import find_conversation


class SafeOutput:
    """Standard output. A terminal gets only what it would show; a file or another program gets every byte."""

    def write(self, text: str) -> None:
        """Print a piece."""
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def export(options: argparse.Namespace) -> int:
    """Write a conversation to a file, or print it."""
    path = None if options.output in (None, "-") else Path(options.output)
    file_format = options.format or _format_of(path)
    if options.prompts and file_format != "json":
        raise WrongUsage("Only JSON can hold prompts. Add --format json, or leave out --prompts.")
    # Before the database is even opened: the answer would be the same.
    if path is not None and os.path.lexists(path) and not options.force:
        raise OutputExists(path)
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.id)

        def write(file: Writable) -> None:
            write_export(database, conversation.id, file, file_format, prompts=options.prompts)

        if path is None:
            write(SafeOutput())
        else:
            write_private_file(path, write, overwrite=options.force)
            print(safe_line(f"{path}: {counted(conversation.messages, 'message')} of {conversation.id}."))
    return 0


def delete(options: argparse.Namespace) -> int:
    """Remove a conversation, if the person is sure."""
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.id)
        if conversation.open_in is not None:
            who = f"Process {conversation.open_in}"
            raise BullpenError(f"{who} has {conversation.id} open. Close it there first. Nothing was deleted.")
        count = counted(conversation.messages, "message")
        what = safe_line(f"{conversation.id} ({count}, team {conversation.team})")
        if not options.yes and not _is_sure(what):
            print("Nothing was deleted.")
            return 1
        # Somebody may have opened it while we asked.
        freed = delete_conversation(database, conversation.id, at=milliseconds(), force=options.force)
    print(f"Deleted {what}.{_about_files(freed, options.db)}")
    return 0


def _about_files(freed: int | None, db: Path | None) -> str:
    if freed is None:
        later = safe_line(to_type("fsck --repair", db))
        return f" What it changed in files is still on the disk, since other conversations are open. Later: {later}"
    return f" With it went {size(freed)} of what was in files." if freed > 0 else ""


def _format_of(path: Path | None) -> Format:
    ending = "" if path is None else path.suffix.removeprefix(".").lower()
    if ending and ending not in FORMATS:
        raise WrongUsage(
            f"There is no format {ending!r}, only md, html and json. Choose another name, or add --format."
        )
    return next((known for known in FORMATS if known == ending), "md")


def _is_sure(what: str) -> bool:
    if not sys.stdin.isatty():
        raise WrongUsage("Nobody can be asked here. Add --yes to delete it. Nothing was deleted.")
    try:
        answer = input(f"Delete {what} for good? [y/N] ")
    except EOFError:
        return False
    return answer.strip().lower() in ("y", "yes")
