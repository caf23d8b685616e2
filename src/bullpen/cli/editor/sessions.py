"""Sessions: the conversations that an editor has open, and those that it can open."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from bullpen.app import open_conversation, open_store, open_telemetry
from bullpen.cli.editor.session import Client, EditorSession
from bullpen.cli.editor.shapes import EditorOptions
from bullpen.cli.signals import Interruptions
from bullpen.config import depth
from bullpen.database import SharedDatabase
from bullpen.errors import BullpenError, NotTrusted
from bullpen.team.file import LoadedTeam, load_team, team_path
from bullpen.team.trust import Trust, settings_marks
from bullpen.view.listing import ConversationSummary, all_conversations, conversation_summary

MOST_DEPTH = 3
"""Teams that are members of teams: one that is its own member would start itself without end."""
MOST_OPEN = 100
PAGE = 50
LONGEST_CURSOR = 9
USUAL_FILE = "team.toml"


class _Open(Struct):
    """A session, and the task in which its conversation is open."""

    session: EditorSession
    leave: asyncio.Event
    task: "asyncio.Task[None]"


class Sessions:
    """Opens conversations, each in a task of its own, in one database."""

    def __init__(self, options: EditorOptions, client: Client) -> None:
        self._options = options
        self._client = client
        self._open: dict[str, _Open] = {}
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._shared: SharedDatabase | None = None
        # Only from now on is there something that must be left in good order.
        self._interruptions = Interruptions()
        self._stack.enter_context(self._interruptions.taken())

    async def interrupted(self) -> int:
        """Wait until a signal asks us to leave; return the exit code for that."""
        await self._interruptions.wait()
        return self._interruptions.exit_code or 0

    def get(self, session_id: str) -> EditorSession | None:
        """Return a session that is open."""
        opened = self._open.get(session_id)
        return None if opened is None else opened.session

    async def new(self, cwd: str) -> EditorSession:
        """Begin a conversation."""
        return await self._opened(await asyncio.to_thread(self._team, self._file(cwd)), None)

    async def load(self, session_id: str, cwd: str) -> EditorSession:
        """Open a conversation again, or return the one that is open."""
        if (already := self.get(session_id)) is not None:
            return already
        stored = await (await self._database()).read(conversation_summary, session_id)
        file = self._file_of(stored, cwd)
        return await self._opened(await asyncio.to_thread(self._team, file), session_id)

    async def listed(self, cwd: str | None, cursor: str | None) -> dict[str, Any]:
        """Return the conversations of the team, or of a folder, page by page, the latest first."""
        known = await (await self._database()).read(all_conversations)
        shown = [one for one in known if not one.is_archived and one.messages and self._is_wanted(one, cwd)]
        first = int(cursor) if cursor is not None and cursor.isdecimal() and len(cursor) <= LONGEST_CURSOR else 0
        sessions = [
            {
                "sessionId": one.id,
                "cwd": one.folder or str(Path.cwd()),
                "title": one.title,
                "updatedAt": datetime.fromtimestamp(one.last_at / 1000, UTC).isoformat(),
            }
            for one in shown[first : first + PAGE]
        ]
        more = {"nextCursor": str(first + PAGE)} if len(shown) > first + PAGE else {}
        return {"sessions": sessions, **more}

    async def until_quiet(self) -> None:
        """Wait until no agent works in any of them."""
        await asyncio.gather(*(opened.session.until_quiet() for opened in self._open.values()))

    async def close(self, session_id: str) -> None:
        """Close a session: running turns are cancelled, and everything is stored."""
        opened = self._open.pop(session_id, None)
        if opened is None:
            return
        opened.session.leave()
        opened.leave.set()
        await opened.task

    async def close_all(self) -> None:
        """Close every session, and the database."""
        await asyncio.gather(*map(self.close, list(self._open)))
        await self._stack.aclose()

    def _file(self, cwd: str) -> Path:
        return self._options.file or Path(cwd) / USUAL_FILE

    def _file_of(self, stored: ConversationSummary, cwd: str) -> Path:
        """Return the team file of a stored conversation; other teams may not read what was said in it."""
        file = self._options.file
        if file is None:
            return Path(stored.team_path) if stored.team_path else self._file(cwd)
        if stored.team_path and Path(stored.team_path) != team_path(file):
            way = f"To continue it, start bullpen acp {stored.team_path}."
            raise BullpenError(f"{stored.id} is a conversation of {stored.team_path}. {way}")
        return file

    def _is_wanted(self, one: ConversationSummary, cwd: str | None) -> bool:
        if self._options.file is not None:
            return one.team_path == str(team_path(self._options.file))
        return cwd is None or one.folder == str(Path(cwd).resolve())

    def _team(self, file: Path) -> LoadedTeam:
        """Return the team in a file, if somebody has agreed to run it. Reads files."""
        if depth() > MOST_DEPTH:
            raise BullpenError(
                f"{file} is a member of a team that is a member of a team, and so on, {depth()} times: is it its own?"
            )
        loaded, known = load_team(file), Trust()
        persons = known if self._options.trusted is None else Trust(self._options.trusted)
        is_known = known.knows(loaded.path, loaded.text) or persons.knows(loaded.path, loaded.text)
        if not is_known and not self._options.trust:
            way = f"To read what it runs, and to agree, run this in a terminal: bullpen chat {loaded.path}"
            raise NotTrusted(loaded.path, way)
        if self._options.trust:
            known.remember(loaded.path, loaded.text, settings_marks(loaded.team, loaded.root))
        return loaded

    async def _database(self) -> SharedDatabase:
        async with self._opening:
            if self._shared is None:
                self._shared = SharedDatabase(*await self._stack.enter_async_context(open_store(self._options.db)))
            return self._shared

    async def _opened(self, team: LoadedTeam, resume: str | None) -> EditorSession:
        shared = await self._database()
        async with self._opening:
            if resume is not None and (already := self.get(resume)) is not None:
                return already
            if len(self._open) >= MOST_OPEN:
                raise BullpenError(f"{MOST_OPEN} conversations are open here. Close one first.")
            entered: asyncio.Future[EditorSession] = asyncio.get_running_loop().create_future()
            leave = asyncio.Event()
            task = asyncio.create_task(self._stay(shared, team, resume, entered, leave))
            try:
                session = await asyncio.shield(entered)
            except BaseException:
                # Nobody wants it any more: it is closed before the database is.
                leave.set()
                await asyncio.wait({task})
                raise
            self._open[session.conversation.id] = _Open(session, leave, task)
            return session

    async def _stay(
        self,
        shared: SharedDatabase,
        team: LoadedTeam,
        resume: str | None,
        entered: "asyncio.Future[EditorSession]",
        leave: asyncio.Event,
    ) -> None:
        options = self._options
        try:
            async with (
                open_telemetry() as telemetry,
                open_conversation(team, shared.database, shared.thread, resume, telemetry=telemetry) as conversation,
            ):
                session = EditorSession(conversation, team.root, self._client, options.sender, options.db)
                entered.set_result(session)
                await leave.wait()
            await session.close()
        except Exception as error:
            if entered.done():
                raise
            entered.set_exception(error)
