"""From opening a team to leaving it: the last words say what is left open and how to come back."""

import shlex
from pathlib import Path

from bullpen.database import Database
from bullpen.team.file import LoadedTeam
from bullpen.text.safe import printable
from bullpen.tui import run_tui
from bullpen.tui.open_conversations import open_conversations
from bullpen.view.state import conversation_view
from bullpen.view.status_lines import NOTHING_KEPT, left_open_lines


async def run_team(
    loaded: LoadedTeam, *, resume: str | None, db: Path | str | None, database: Database | None, sender: str | None
) -> int:
    """Open a conversation, show it, close it, and say what is left open and how to come back."""
    async with open_conversations(loaded, database or db) as conversations:
        code = await run_tui(await conversations.open(resume), sender=sender, conversations=conversations)
    if conversations.current.message_count:
        for line in left_open_lines(conversation_view(conversations.current)):
            print(printable(line))
        print(farewell(conversations.loaded.path, conversations.latest, db))
    else:
        print(NOTHING_KEPT)
    return code


def farewell(team: Path, conversation_id: str, db: Path | str | None) -> str:
    """Return the conversation's id and the command that opens it again."""
    words = ["bullpen", "chat", _short(team), "--resume", conversation_id, *(["--db", str(db)] if db else [])]
    return printable(f"This was {conversation_id}. To continue:\n  {shlex.join(words)}")


def _short(path: Path) -> str:
    """Return a path as a person here would write it."""
    try:
        return str(path.relative_to(Path.cwd().resolve()))
    except (ValueError, OSError):
        return str(path)
