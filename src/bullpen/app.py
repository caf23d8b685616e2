"""Opening a team: file, store, agents and conversation wired together in one place."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from bullpen.agents import orphans
from bullpen.config import default_database
from bullpen.conversation import Conversation
from bullpen.errors import ConversationInUse
from bullpen.ids import new_conversation_id
from bullpen.ledger import Ledger
from bullpen.prompting import Prompts
from bullpen.running import milliseconds
from bullpen.seats import Extra, seat_of
from bullpen.store.base import Owner, StateChange, Store
from bullpen.store.sqlite import SqliteStore
from bullpen.team_files import LoadedTeam, load_team

NOTHING_EXTRA: Mapping[str, Extra] = {}


@asynccontextmanager
async def open_team(
    team: LoadedTeam | Path | str,
    *,
    resume: str | None = None,
    db: Path | str | None = None,
    store: Store | None = None,
    extra: Mapping[str, Extra] = NOTHING_EXTRA,
) -> AsyncIterator[Conversation]:
    """Open a conversation of a team, a new one or the one to resume, and close it at the end.

    The team file's programs run with the permissions it gives them: open only files that you trust.
    """
    loaded = team if isinstance(team, LoadedTeam) else await asyncio.to_thread(load_team, Path(team))
    seats = {member.name: seat_of(member, loaded.root, extra.get(member.name, Extra())) for member in loaded.team.agents}
    with ThreadPoolExecutor(1, thread_name_prefix="bullpen-store") as thread:
        outside = asyncio.get_running_loop().run_in_executor
        own = store is None
        store = store or await outside(thread, SqliteStore, db or default_database())
        owner = await outside(thread, _owner)
        try:
            conversation_id = await outside(thread, _claim, store, loaded, resume, owner)
            try:
                ledger = await outside(thread, Ledger, store, conversation_id, owner, thread)
                prompts = Prompts(store=store, conversation_id=conversation_id, team=loaded.team, root=loaded.root)
                conversation = Conversation(loaded.team, ledger, seats, prompts)
                await conversation.take_over()
                conversation.start()
                try:
                    yield conversation
                finally:
                    await conversation.close()
            finally:
                await outside(thread, store.release, conversation_id, owner)
        finally:
            if own:
                await outside(thread, store.close)


def _claim(store: Store, loaded: LoadedTeam, resume: str | None, owner: Owner) -> str:
    """Make this process the owner of the conversation, and return its id."""
    conversation_id = resume or new_conversation_id()
    if resume is None:
        store.create(
            conversation_id,
            team=loaded.team.name,
            team_file=loaded.text,
            team_path=str(loaded.path),
            started_at=milliseconds(),
            team_task=loaded.team.task,
        )
    if not store.claim(conversation_id, owner, is_alive=_is_alive):
        other = store.conversation(conversation_id).owner
        raise ConversationInUse(conversation_id, other.pid if other else 0)
    if resume is not None:
        store.update(conversation_id, at=milliseconds(), change=StateChange(team_path=str(loaded.path)))
    return conversation_id


def _owner() -> Owner:
    identity = orphans.process_id(os.getpid())
    return Owner(
        token=secrets.token_hex(8),
        pid=os.getpid(),
        start_time=identity.start_time if identity else 0,
        boot_id=orphans.boot_id(),
    )


def _is_alive(owner: Owner) -> bool:
    """Tell whether the process that owns a conversation is still there, and not another one with its number."""
    identity = orphans.process_id(owner.pid)
    return owner.boot_id == orphans.boot_id() and identity is not None and identity.start_time == owner.start_time
