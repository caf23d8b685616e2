"""The full screen: the conversation in a terminal, with Textual. Imported only when called: Textual loads slowly."""

# Type checkers treat this name as true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path

    from bullpen.conversation.conversation import Conversation
    from bullpen.database import Database
    from bullpen.team.file import LoadedTeam
    from bullpen.tui.open_conversations import OpenConversations


def run(
    loaded: "LoadedTeam",
    *,
    resume: str | None = None,
    db: "Path | str | None" = None,
    database: "Database | None" = None,
    sender: str | None = None,
) -> int:
    """Open a conversation of a team on the full screen, and return an exit code when the person leaves.

    `database` is the file `db` if it is open already.
    """
    import asyncio

    from bullpen.tui.launch import run_team

    return asyncio.run(run_team(loaded, resume=resume, db=db, database=database, sender=sender))


async def run_tui(
    conversation: "Conversation", *, sender: str | None = None, conversations: "OpenConversations | None" = None
) -> int:
    """Show a conversation that is open already, until the person leaves. `conversations` opens others."""
    import sys

    from bullpen.terminal.notifier import give_title_back
    from bullpen.terminal.raw_mode import typed_ahead
    from bullpen.tui.app import BullpenApp

    draft = typed_ahead(sys.__stdin__.fileno()) if sys.__stdin__ is not None else ""
    app = BullpenApp(conversation, sender=sender, conversations=conversations, draft=draft)
    try:
        await app.run_async()
    finally:
        give_title_back()
    if app.crash is not None:
        raise app.crash
    return app.return_code or 0
