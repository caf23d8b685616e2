"""What is staged in this repository, as a message to agents: bounded, and nothing in it is more than data."""

from msgspec import Struct

from bullpen.cli.git import git
from bullpen.text.clean import clean_text
from bullpen.text.fence import fenced
from bullpen.text.names import listed
from bullpen.text.numbers import counted
from bullpen.text.patch_excerpt import patch_excerpt
from bullpen.text.safe import printable

MOST_OF_EACH = 48 * 1024
"""Bytes of the change of one file."""
MOST = 192 * 1024
MOST_NAMES = 20
# Nobody's own program for differences, colours or prefixes: the agents get what git itself says.
DIFF = (
    *("-c", "core.quotePath=false", "diff", "--cached", "--no-color", "--no-ext-diff", "--no-textconv", "-M"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)


class Staged(Struct, frozen=True, kw_only=True):
    """What is staged."""

    summary: str
    """How much it is: "3 files, +24 −7"."""
    message: str
    note: str = ""
    """What agents are not shown of it, in a sentence."""


def staged() -> Staged | None:
    """Return what is staged; None if nothing is."""
    # Not splitlines: a name may contain what ends a line elsewhere.
    numbers = [line.split("\t", 2) for line in git(*DIFF, "--numstat").split("\n") if line]
    if not numbers:
        return None
    added, removed = (sum(int(row[column]) for row in numbers if row[column].isdigit()) for column in (0, 1))
    summary = f"{counted(len(numbers), 'file')}, +{added:,} −{removed:,}"
    part = patch_excerpt(clean_text(git(*DIFF)), most_of_each=MOST_OF_EACH, most=MOST)
    binary = [row[2] for row in numbers if row[0] == "-"]
    notes = [
        f"Only the beginning is shown of {_names(part.cut)}." if part.cut else "",
        f"Too large to be shown: {_names(part.left_out)}." if part.left_out else "",
        f"Not text, so only named: {_names(binary)}." if binary else "",
    ]
    note = " ".join(filter(None, notes))
    head = f"Please review this change before it is committed: {summary}. {note}".rstrip()
    if part.cut or part.left_out:
        head += " You can read the files themselves, and `git diff --cached` if you may run it."
    return Staged(summary=summary, message=f"{head}\n\n{fenced(part.text, 'diff')}", note=note)


def _names(names: tuple[str, ...] | list[str]) -> str:
    # Names are code, so that nothing in them is read as a marker or as the name of a member.
    shown = [f"`{printable(name).replace('`', '')}`" for name in names[:MOST_NAMES]]
    return listed([*shown, f"{len(names) - MOST_NAMES:,} more"] if len(names) > MOST_NAMES else shown)
