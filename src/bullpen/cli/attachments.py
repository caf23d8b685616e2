"""`--attach FILE`: files such as logs and diffs as a part of a message, bounded, and read as data."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bullpen.cli.team_and_message import FROM_STDIN, message_text
from bullpen.errors import BullpenError, WrongUsage
from bullpen.team.given_file import open_given
from bullpen.text.clean import clean_text
from bullpen.text.excerpt import excerpt
from bullpen.text.fence import fenced
from bullpen.text.numbers import counted
from bullpen.text.safe import printable, strip_escape_sequences

MOST_BYTES = 128 * 1024
"""Of each file, in the message."""
MOST_TO_READ = 64 * 1024 * 1024
MOST_FILES = 10
ONLY_FILES = "Please look at what is attached."


def add_attach_option(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--attach",
        action="append",
        default=[],
        metavar="FILE",
        help="add a file, such as a log, to the message as data (-: stdin). Of a long one, its beginning, its end and "
        "what is around errors; may be given several times",
    )


def with_attachments(message: str | None, files: Sequence[str]) -> str | None:
    """Return a message with files below it; what was left out of them is said on stderr."""
    if not files:
        return message
    if len(files) > MOST_FILES:
        raise WrongUsage(f"--attach takes at most {MOST_FILES} files.")
    if [message, *files].count(FROM_STDIN) > 1:
        raise WrongUsage("Only one of the message and the files can be read from stdin.")
    return "\n\n".join([message_text(message) or ONLY_FILES, *map(_attachment, files)])


def _attachment(name: str) -> str:
    # Names are code, so that nothing in them is read as a name of a member.
    shown = "stdin" if name == FROM_STDIN else f"`{printable(name).replace('`', '')}`"
    part = excerpt(_shown(_content(name)), MOST_BYTES)
    about = f"Attached: {shown}, {counted(part.lines, 'line')}."
    if not part.is_whole:
        about += (
            f" It is too long for a message, so {part.left_out:,} of them are left out: here are its beginning, its "
        )
        about += "end, and what is around the first errors between them. Very long lines are cut."
        print(printable(about), file=sys.stderr)
    return f"{about}\n\n{fenced(part.text)}"


def _content(name: str) -> bytes:
    try:
        if name == FROM_STDIN:
            content = sys.stdin.buffer.read(MOST_TO_READ + 1)
        else:
            with open_given(Path(name)) as file:
                content = file.read(MOST_TO_READ + 1)
    except OSError as error:
        raise BullpenError(f"{name} cannot be attached: {error.strerror}.") from error
    if len(content) > MOST_TO_READ:
        most = MOST_TO_READ // 1024 // 1024
        raise BullpenError(f"{name} is larger than {most} MB. Attach a part of it: tail -c {most}M | … --attach -")
    return content


def _shown(content: bytes) -> str:
    """Return what a terminal would show: without colours, and without what a progress bar has overwritten."""
    text = strip_escape_sequences(content.decode(errors="replace").replace("\r\n", "\n")).rstrip("\n")
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return clean_text("\n".join(lines))
