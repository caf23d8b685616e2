"""Opening a team: connects the team file, store, agents and conversation."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.agents.crash_records import end_leftover_processes, may_have_left_something
from bullpen.agents.runner import to_the_end
from bullpen.clock import milliseconds
from bullpen.config import default_database, state_folder, wants_telemetry
from bullpen.conversation.conversation import Conversation, decider
from bullpen.conversation.file_history import FileChoice, FileHistory, files_home
from bullpen.conversation.member_agent import NOTHING_EXTRA, Extra, MemberAgent, RemoteTeam, agent_for
from bullpen.conversation.own_workspaces import own_folders
from bullpen.conversation.owner import claim, owned, this_process
from bullpen.conversation.state import ConversationState
from bullpen.conversation.stored_history import StoredHistory
from bullpen.errors import MissingExtra, NothingToUndo, NotTheOwner, StoreError, UnknownConversation
from bullpen.file_changes import ChangeRecord
from bullpen.files.workspace import FolderSnapshots
from bullpen.private_door import private_door
from bullpen.store.base import Owner, StateChange, Store, StoredConversation
from bullpen.store.sqlite import SqliteStore
from bullpen.store.thread import Desk, StoreThread
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.reader import examine_team
from bullpen.team.stand_ins import programs
from bullpen.team.standing_answers import StandingAnswers
from bullpen.team.team import Team
from bullpen.team.trust import Trust

if TYPE_CHECKING:
    from bullpen.telemetry.telemetry import Telemetry

logger = logging.getLogger(__name__)

RemoteTeams = Callable[[str, Team, Store], RemoteTeam]
"""Makes what is elsewhere of a conversation, by its id."""
NO_EXTRAS: Mapping[str, Extra] = {}


@asynccontextmanager
async def open_team(
    team: LoadedTeam | Path | str,
    *,
    resume: str | None = None,
    db: Path | str | Store | None = None,
    extra: Mapping[str, Extra] = NO_EXTRAS,
) -> AsyncIterator[Conversation]:
    """Open a conversation of a team, a new one or the one to resume, and close it at the end.

    The team file's programs run with the permissions that it gives them: open only files that you trust. `db` is the
    database file, or one that is open already, which is then closed at the end.
    """
    loaded = team if isinstance(team, LoadedTeam) else await asyncio.to_thread(load_team, Path(team))
    async with (
        open_telemetry() as telemetry,
        open_store(db) as (store, thread),
        open_conversation(loaded, store, thread, resume, extra, telemetry) as opened,
    ):
        yield opened


@asynccontextmanager
async def open_telemetry() -> AsyncIterator["Telemetry | None"]:
    """Yield what conversations are followed by, if BULLPEN_TELEMETRY asks for it; else nothing of it is loaded."""
    if not wants_telemetry():
        yield None
        return
    try:
        from bullpen.telemetry.telemetry import Telemetry
    except ModuleNotFoundError as error:
        raise MissingExtra("telemetry", error.name or "") from error
    telemetry = Telemetry()
    try:
        yield telemetry
    finally:
        await to_the_end(telemetry.close())


@asynccontextmanager
async def open_store(db: Path | str | Store | None = None) -> AsyncIterator[tuple[Store, StoreThread]]:
    """Open the database in a thread of its own, so that it cannot delay the event loop."""
    await _end_leftovers()
    thread, opened = StoreThread(), ExitStack()
    try:
        store = await thread.do(lambda: opened.enter_context(_store(db)))
        yield store, thread
    finally:
        # Its thread closes it after opening it, even if the opening was cancelled.
        try:
            await to_the_end(thread.do(opened.close))
        finally:
            thread.close()


async def _end_leftovers() -> None:
    """End the agents of processes that were killed: nothing may change files of a conversation that people look at."""
    if may_have_left_something():
        await asyncio.to_thread(end_leftover_processes)


def _store(db: Path | str | Store | None) -> Store:
    return SqliteStore(db or default_database()) if db is None or isinstance(db, Path | str) else db


@asynccontextmanager
async def open_conversation(
    loaded: LoadedTeam,
    store: Store,
    thread: Desk,
    resume: str | None = None,
    extra: Mapping[str, Extra] = NO_EXTRAS,
    telemetry: "Telemetry | None" = None,
    *,
    remote: RemoteTeams | None = None,
    continues: bool = False,
    node: int = 0,
    hands_over: Callable[[], bool] = lambda: False,
) -> AsyncIterator[Conversation]:
    """Open a conversation in an open store; otherwise the same as open_team.

    In a cluster, some of its agents are remote, a conversation continues after its process has died, and this process
    is a node. When that leaves, it hands over its conversations: they stay its own, and others continue them.
    """
    owner, thread = this_process(node), thread.line()
    conversation_id = resume or new_conversation_id()
    own = own_folders(store, conversation_id)
    elsewhere = None if remote is None else remote(conversation_id, loaded.team, store)
    files = file_history(store, conversation_id, owner, elsewhere)
    place = files.forked.place if files is not None else Path
    agreed = partial(Trust().agreed, loaded.path)
    here = partial(agent_for, root=loaded.root, own=own, place=place, agreed=agreed)
    of_roles = _agents_of_roles(loaded.team, extra, here, elsewhere)
    agents = {name: agent for (name, by), agent in of_roles.items() if name == by}
    try:
        await _end_leftovers()
        if resume is None:
            await thread.do(_create, store, loaded, conversation_id)
        seen_at = await claim(store, thread, conversation_id, owner)
        if elsewhere is not None:
            await elsewhere.start()
        state = await thread.do(_claimed, store, loaded, conversation_id, owner, thread)
        number = state.progress.message_number
        history = StoredHistory(store, conversation_id, messages=state.messages, highest_number=number)
        checks = None if elsewhere is None else elsewhere.checks
        standing = StandingAnswers(loaded.path)
        conversation = Conversation(
            loaded.team, state, agents, history, store, loaded.root, files, checks, standing, of_roles
        )
        try:
            await conversation.start(interrupted_at=seen_at, continues=continues)
        except BaseException:
            # It may have begun to follow turns of an earlier owner.
            await conversation.close()
            raise
        door = private_door(conversation, owner.token) if isinstance(store, SqliteStore) else nullcontext()
        async with nullcontext() if telemetry is None else telemetry.following(conversation), door:
            try:
                yield conversation
            finally:
                await conversation.close()
    finally:
        # This is done after everything else, even after calls that were cancelled.
        await to_the_end(thread.do(_release, store, conversation_id, owner, loaded, keeps=hands_over()))
        if files is not None:
            files.snapshots.let_go()


def _agents_of_roles(
    team: Team, extra: Mapping[str, Extra], here: Callable[..., MemberAgent], elsewhere: RemoteTeam | None
) -> dict[tuple[str, str], MemberAgent]:
    """Return every agent with its own program, and with those of its stand-ins, by both names."""
    return {
        (member.name, by): elsewhere.agent(one)
        if one.pool and elsewhere is not None
        else here(one, extra=extra.get(by, NOTHING_EXTRA))
        for member in team.agents
        for by, one in programs(team, member)
    }


def file_history(
    store: Store, conversation_id: str, owner: Owner, elsewhere: RemoteTeam | None = None
) -> FileHistory | None:
    """Return what is kept of the files that a conversation changes: on workers, or beside the database.

    None if there are no workers, and the database is not a file.
    """
    if elsewhere is not None:
        there = elsewhere.folders, elsewhere.worktrees, elsewhere.forked
        return FileHistory(store, conversation_id, owner, *there)
    home = files_home(store)
    if home is None or not isinstance(store, SqliteStore):
        return None
    return FileHistory.here(
        store, conversation_id, owner, FolderSnapshots(home, not_looked_at=(store.path, state_folder()))
    )


def put_files(store: Store, conversation_id: str, choice: FileChoice, turn_id: str | None) -> list[ChangeRecord]:
    """Undo, redo or rewind changes of files in a conversation that nobody has open; complete first what was begun.

    Returns what was completed, and what was done.
    """
    with owned(store, conversation_id) as owner:
        history = file_history(store, conversation_id, owner)
        if history is None:
            raise NothingToUndo("This database does not keep what files were.")
        team, _ = examine_team(store.conversation(conversation_id).team_file)
        try:
            return history.complete_and_put(choice, turn_id, decider(team), at=milliseconds())
        finally:
            history.snapshots.let_go()


def _create(store: Store, loaded: LoadedTeam, conversation_id: str) -> None:
    store.create(
        conversation_id,
        team=loaded.team.name,
        team_file=loaded.text,
        team_path=str(loaded.path),
        started_at=milliseconds(),
        team_task=loaded.team.task,
    )


def _claimed(store: Store, loaded: LoadedTeam, conversation_id: str, owner: Owner, thread: Desk) -> ConversationState:
    """Return the state of a conversation that this process owns."""
    stored = store.conversation(conversation_id)
    if stored.team_path != str(loaded.path):
        change = StateChange(team_path=str(loaded.path))
        store.update(conversation_id, at=milliseconds(), change=change, owner=owner)
    if stored.archived_at is not None:
        # Who opens it again wants to see it.
        store.label(conversation_id, archived_at=None)
    return ConversationState(store, stored, owner, thread)


def _release(store: Store, conversation_id: str, owner: Owner, loaded: LoadedTeam, *, keeps: bool) -> None:
    """Stop being the owner, if we are, or keep what has begun; nothing is left of one in which nothing was said.

    A failing disk must not hide an earlier error.
    """
    try:
        stored = store.conversation(conversation_id)
        is_ours = stored.owner is not None and stored.owner.token == owner.token
        if is_ours and not stored.messages and _is_untouched(stored, loaded):
            store.discard(conversation_id, owner=owner)
        elif not keeps:
            store.release(conversation_id, owner)
    except (StoreError, UnknownConversation, NotTheOwner) as error:
        logger.warning("conversation not released conversation=%s error=%s", conversation_id, error)
        if not keeps:
            # At least its lock: as long as this process lives, nobody else could own it.
            with suppress(StoreError, UnknownConversation):
                store.release(conversation_id, owner)


def _is_untouched(stored: StoredConversation, loaded: LoadedTeam) -> bool:
    return stored.title is None and stored.team_task == loaded.team.task


ADJECTIVES = """
    amber bold brave bright brisk calm clear clever cool copper crisp deep early eager fair fast fine fresh gentle
    glad golden good grand green happy honest humble jolly keen kind late light lively loyal lucky merry mild neat
    noble patient plain polite proud quick quiet rapid ready rich round sharp silver simple smooth soft solid sunny
    swift tidy true warm wild wise young
"""
NOUNS = """
    anchor apple arrow badger beacon birch bridge brook cedar cliff cloud comet coral crane creek delta dune eagle
    ember falcon fern field finch flame forest fox garden glade harbor hawk heron hill island juniper lake lantern
    leaf lion maple meadow moon mountain oak ocean otter owl path pebble pine planet pond rain reef river robin sail
    sparrow spring star stone thistle tiger tree valley
"""


def new_conversation_id() -> str:
    """Return an id that is new as far as chance can tell."""
    return f"{_one_of(ADJECTIVES)}-{_one_of(NOUNS)}-{os.urandom(3).hex()}"


def _one_of(words: str) -> str:
    known = words.split()
    # Enough bytes that the remainder favours no word; `secrets` would take longer to import than all else here.
    return known[int.from_bytes(os.urandom(8)) % len(known)]
