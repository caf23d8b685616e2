"""What bullpen's commands do when an agent runs them: they give it no rights over conversations of the person."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from bullpen import config
from bullpen.callers import is_within_agent
from bullpen.errors import BullpenError
from bullpen.team.kept_file import KeptFile

READS = "it shows what was said in your conversations"
RUNS = "it runs agents"
CHANGES_FILES = "it changes files, which a person decides"
CHANGES_CONVERSATIONS = "it changes your conversations"
COUNTS = "it changes what budgets count"
OWN_FOLDER = "within"


class Row(Struct, frozen=True, kw_only=True):
    """One command."""

    why: str
    """Why agents may run it, or why not."""
    is_free: bool = False
    but_not: Mapping[str, str] = {}
    """Of a free command, the options with which it is refused, and why."""


WITHIN_AGENTS: Mapping[str, Row] = {
    "demo": Row(why=RUNS),
    "init": Row(why="it writes a team file, which says what runs"),
    "check": Row(is_free=True, why="it reads a team file"),
    "rehearse": Row(why=RUNS),
    "doctor": Row(is_free=True, why="it looks at what is installed", but_not={"live": RUNS}),
    "chat": Row(why="it speaks for a person, and runs agents"),
    "run": Row(why="it speaks for a person, and runs agents"),
    "hook": Row(is_free=True, why="`git commit` starts it; it asks nobody then, and is neither installed nor removed"),
    "inbox": Row(why="an agent cannot answer what agents ask"),
    "preview": Row(why=READS),
    "sessions": Row(why="it shows, copies and deletes your conversations"),
    "explain": Row(why=READS),
    "usage": Row(why="it shows what your conversations have used"),
    "prices": Row(is_free=True, why="it shows a list of prices", but_not={"import": COUNTS, "forget": COUNTS}),
    "diff": Row(why="it shows what was changed in your conversations"),
    "undo": Row(why=CHANGES_FILES),
    "redo": Row(why=CHANGES_FILES),
    "rewind": Row(why=CHANGES_FILES),
    "fsck": Row(why="it repairs your conversations"),
    "backup": Row(why="it copies all your conversations"),
    "restore": Row(why=CHANGES_CONVERSATIONS),
    "move": Row(why="it copies your conversations"),
    "serve": Row(why="it decides who may come in, and shows your conversations"),
    "acp": Row(is_free=True, why="it is a team of its own, with its own data folder"),
    "worker": Row(why=RUNS),
    "mcp": Row(is_free=True, why="it has the tools of the agent's own turn; their socket refuses others"),
    "import": Row(why=CHANGES_CONVERSATIONS),
    "completion": Row(is_free=True, why="it prints a script"),
    "help": Row(is_free=True, why="it prints help"),
}
"""Every command."""


def refuse_within_agents(command: str, options: argparse.Namespace) -> None:
    """Raise BullpenError if an agent runs a command that is not for agents, or if that cannot be known."""
    row = WITHIN_AGENTS[command]
    given = [name for name in row.but_not if getattr(options, name)]
    if given:
        refuse_agents(f"`bullpen {command} --{given[0]}` is not for agents: {row.but_not[given[0]]}")
    elif not row.is_free:
        refuse_agents(f"`bullpen {command}` is not for agents: {row.why}")


def refuse_agents(what: str) -> None:
    """Raise BullpenError with this sentence if an agent runs this process, or if that cannot be known."""
    is_agent = is_within_agent()
    if is_agent is None:
        raise BullpenError(
            f"It cannot be known whether an agent runs this, and {what}. Nothing was done. Try it again."
        )
    if is_agent:
        raise BullpenError(f"This is an agent's own terminal, and {what}. Run it in a terminal of your own.")


def use_own_data(db: Path | None) -> Path | None:
    """Keep the files of this process in a data folder of its own, if an agent has started it.

    Return the person's own list of team files that may run; None: a person has started it. A database that is named
    must be a new one, or one that was made like that: else it may be the person's.
    """
    is_agent = is_within_agent()
    if is_agent is False:
        return None
    if is_agent is None:
        raise BullpenError("It cannot be known whether an agent runs this, so nothing was opened. Try it again.")
    theirs, trusted = config.data_folder(), config.trust_file()
    # Each level has its own: an agent of an inner team does not reach the conversation that it works for.
    folder = theirs / OWN_FOLDER / str(max(config.depth(), 1))
    if db is not None:
        _check_own(db, theirs, KeptFile(folder / "databases.json"))
    os.environ["BULLPEN_HOME"] = str(folder)
    return trusted


def _check_own(db: Path, theirs: Path, known: KeptFile) -> None:
    """Raise BullpenError if a database was not made by a team within an agent."""
    path = Path(os.path.realpath(db))
    try:
        if str(path) in known.read():
            return
    except (OSError, ValueError, TypeError, RecursionError):
        pass
    if any(path.parent.glob(f"{path.name}*")) or path.is_relative_to(os.path.realpath(theirs)):
        raise BullpenError(
            f"An agent runs this, and {db} may be a database of yours: no team within an agent has made it. "
            "Name a new file, or leave --db out."
        )
    known.change(lambda content: [*(content if isinstance(content, list) else ()), str(path)])
