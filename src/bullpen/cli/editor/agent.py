"""EditorAgent: answers what an editor asks after the handshake, in the Agent Client Protocol."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from bullpen.acp_protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    PARSE_ERROR,
)
from bullpen.cli.editor.handshake import OURSELVES, Met, hello, refusal
from bullpen.cli.editor.lines import LONGEST_LINE
from bullpen.cli.editor.shapes import (
    EditorOptions,
    ListSessions,
    LoadSession,
    NewSession,
    OfSession,
    Prompt,
    SetMode,
)
from bullpen.cli.editor.wire import Wire
from bullpen.errors import BullpenError, UnknownConversation

if TYPE_CHECKING:
    from bullpen.cli.editor.session import EditorSession
    from bullpen.cli.editor.sessions import Sessions

logger = logging.getLogger(__name__)

MOST_REQUESTS = 200
"""Requests of an editor that are not answered yet."""
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,100}")')

Handler = Callable[["EditorAgent", Any], Awaitable[dict[str, Any]]]


class Refused(BullpenError):
    """A request that cannot be answered, with the code of the protocol for it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class EditorAgent:
    """One connection to an editor: requests are answered as they come, also while a prompt runs."""

    def __init__(self, options: EditorOptions, wire: Wire, client: str) -> None:
        self._options = options
        self._wire = wire
        self._client = client
        """What the editor calls itself."""
        self.left: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The exit code, as soon as a signal asks us to leave."""
        self._sessions: Sessions | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        """What we have asked the editor, by number."""
        self._last = 0

    async def hear(self, line: bytes) -> None:
        """Take a line of the editor."""
        try:
            message = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            found = _ID.search(line)
            why = f"This is not JSON, or longer than {LONGEST_LINE:,} bytes."
            await self._refuse(msgspec.json.decode(found[1]) if found else None, PARSE_ERROR, why)
            return
        match message:
            case {"method": "initialize", "id": number}:
                await self._wire.send(hello(message.get("params"), number))
            case {"method": str(method), "id": int() | str() | None as number}:
                await self._begin(method, message.get("params"), number)
            case {"method": "session/cancel"}:
                self._do(self._cancel(message.get("params")))
            case {"method": str()}:
                pass  # what an editor tells us and we do not know
            case {"id": int(number)} if number in self._asked:
                self._answered(number, message.get("result"))
            case {"id": _, "result": _} | {"id": _, "error": _}:
                pass  # an answer to what was taken back
            case _:
                number = message.get("id") if isinstance(message, dict) else None
                await self._refuse(number, INVALID_REQUEST, "This is not a request of JSON-RPC 2.0.")

    async def work(self) -> None:
        """Serve the editor until it closes its end; then let everybody come to an end who works."""
        # By the time that somebody has typed something, everything is loaded.
        self._do(self._opened())
        async for line in self._wire.lines():
            await self.hear(line)
        # The editor has gone, and answers nothing.
        for number in list(self._asked):
            self._answered(number, None)
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._sessions is not None:
            await self._sessions.until_quiet()

    async def close(self) -> None:
        """Close all conversations."""
        tasks = [*self._tasks, *([self._leaving] if self._leaving is not None else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._sessions is not None:
            await self._sessions.close_all()
        await self._wire.finish()

    # What sessions say to the editor

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tell the editor something."""
        await self._wire.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: dict[str, Any]) -> tuple[int, "asyncio.Future[Any]"]:
        """Ask the editor something; return the number of the question, and its answer, None if there is none."""
        self._last += 1
        self._asked[self._last] = asyncio.get_running_loop().create_future()
        self._do(self._wire.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}))
        return self._last, self._asked[self._last]

    def take_back(self, number: int) -> None:
        """Take a question back."""
        if number in self._asked:
            self._answered(number, None)
            self._do(self.notify("$/cancel_request", {"requestId": number}))

    # Requests

    async def _begin(self, method: str, params: object, number: int | str | None) -> None:
        known = METHODS.get(method)
        if known is None:
            await self._refuse(number, METHOD_NOT_FOUND, f"bullpen does not know the method {method[:100]!r}.")
        elif len(self._tasks) >= MOST_REQUESTS:
            await self._refuse(number, INVALID_REQUEST, f"{MOST_REQUESTS} requests wait for their answers already.")
        else:
            self._do(self._answer(number, method, params, *known))

    async def _answer(
        self, number: int | str | None, method: str, params: object, shape: type[Struct], handler: Handler
    ) -> None:
        try:
            result = await handler(self, msgspec.convert({} if params is None else params, shape))
        except msgspec.ValidationError as error:
            await self._refuse(number, INVALID_PARAMS, f"{method}: {error}")
        except Refused as error:
            await self._refuse(number, error.code, str(error))
        except UnknownConversation as error:
            await self._refuse(number, NOT_FOUND, str(error))
        except (BullpenError, OSError) as error:
            await self._refuse(number, INTERNAL_ERROR, str(error))
        except Exception as error:
            logger.exception("not answered method=%s", method)
            await self._refuse(number, INTERNAL_ERROR, f"This is a bug in bullpen, sorry: {type(error).__name__}")
        else:
            await self._wire.send({"jsonrpc": "2.0", "id": number, "result": result})

    async def _refuse(self, number: object, code: int, message: str) -> None:
        from bullpen.text.secrets import without_secrets

        await self._wire.send(refusal(number, code, without_secrets(message)))

    def _answered(self, number: int, result: object) -> None:
        waiting = self._asked.pop(number)
        if not waiting.done():
            waiting.set_result(result)

    def _do(self, something: Any) -> None:
        task = asyncio.ensure_future(something)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _opened(self) -> "Sessions":
        if self._sessions is None:
            # Imported in a thread: an editor may say more meanwhile.
            make = await asyncio.to_thread(_sessions)
            if self._sessions is None:
                self._sessions = make(self._options, self)
                self._leaving = asyncio.create_task(self._leave(self._sessions))
        return self._sessions

    async def _leave(self, sessions: "Sessions") -> None:
        self.left.set_result(await sessions.interrupted())

    async def _session(self, session_id: str) -> "EditorSession":
        session = (await self._opened()).get(session_id)
        if session is None:
            raise Refused(NOT_FOUND, f"There is no open session {session_id!r}. Begin one, or load it.")
        return session

    async def _new(self, given: NewSession) -> dict[str, Any]:
        session = await (await self._opened()).new(_absolute(given.cwd))
        self._do(session.begin())
        return {"sessionId": session.conversation.id, "modes": session.modes}

    async def _load(self, given: LoadSession) -> dict[str, Any]:
        session = await (await self._opened()).load(given.session_id, _absolute(given.cwd))
        await session.replay()
        self._do(session.begin())
        return {"modes": session.modes}

    async def _resume(self, given: LoadSession) -> dict[str, Any]:
        session = await (await self._opened()).load(given.session_id, _absolute(given.cwd))
        self._do(session.begin())
        return {"modes": session.modes}

    async def _list(self, given: ListSessions) -> dict[str, Any]:
        return await (await self._opened()).listed(given.cwd, given.cursor)

    async def _prompt(self, given: Prompt) -> dict[str, Any]:
        from bullpen.cli.editor.prompt_text import of_another_team, prompt_text

        session = await self._session(given.session_id)
        text = prompt_text(given.prompt)
        if not text.strip():
            raise Refused(INVALID_PARAMS, "The prompt has no text.")
        return await session.prompt(of_another_team(text) if self._client == OURSELVES else text)

    async def _set_mode(self, given: SetMode) -> dict[str, Any]:
        (await self._session(given.session_id)).set_mode(given.mode_id)
        return {}

    async def _close(self, given: OfSession) -> dict[str, Any]:
        await self._session(given.session_id)
        await (await self._opened()).close(given.session_id)
        return {}

    async def _cancel(self, params: object) -> None:
        # Nobody hears an answer to it.
        with suppress(msgspec.ValidationError, Refused):
            await (await self._session(msgspec.convert(params, OfSession).session_id)).cancel()


METHODS: dict[str, tuple[type[Struct], Handler]] = {
    "session/new": (NewSession, EditorAgent._new),
    "session/load": (LoadSession, EditorAgent._load),
    "session/resume": (LoadSession, EditorAgent._resume),
    "session/list": (ListSessions, EditorAgent._list),
    "session/prompt": (Prompt, EditorAgent._prompt),
    "session/set_mode": (SetMode, EditorAgent._set_mode),
    "session/close": (OfSession, EditorAgent._close),
}


async def serve(options: EditorOptions, source: int, target: int, met: Met) -> int:
    """Serve an editor until it closes its end, or a signal asks us to leave. Return the exit code."""
    agent = EditorAgent(options, Wire(source, target, met), met.client)
    working = asyncio.create_task(agent.work())
    ends: list[asyncio.Future[Any]] = [working, agent.left]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
    working.cancel()
    await agent.close()
    return agent.left.result() if agent.left.done() else 0


def _sessions() -> "type[Sessions]":
    from bullpen.cli.editor.sessions import Sessions

    return Sessions


def _absolute(folder: str) -> str:
    if not Path(folder).is_absolute():
        raise Refused(INVALID_PARAMS, f"The folder must be a whole path, and {folder!r} is not one.")
    return folder
