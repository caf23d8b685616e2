"""The public Python client of the protocol as an editor that talks with `bullpen acp`; tests without it are skipped."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

NOT_INSTALLED = "THE SDK OF ACP IS NOT INSTALLED: run `pip install agent-client-protocol`; only these tests need it"
acp: Any = pytest.importorskip("acp", reason=NOT_INSTALLED)
schema: Any = pytest.importorskip("acp.schema", reason=NOT_INSTALLED)

Story = Callable[[Any, "Watching"], Awaitable[None]]
PATIENCE_SECONDS = 90.0


class Watching:
    """An editor that remembers what it is told, and answers each question with the option of a name."""

    def __init__(self, answers: str) -> None:
        self.updates: list[Any] = []
        self.questions: list[Any] = []
        self.problems: list[str] = []
        self._answers = answers
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        self.questions.append((tool_call, options))
        self.is_asked.set()
        await self.may_answer.wait()
        if self._answers == "cancel":
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        option = next(option.option_id for option in options if option.name == self._answers)
        chosen = schema.AllowedOutcome(outcome="selected", option_id=option)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.problems.append(method)

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    @property
    def written(self) -> str:
        return "".join(update.content.text for update in self.of("agent_message_chunk"))


async def followed(folder: Path, environment: dict[str, str], story: Story, answers: str = "Yes") -> Watching:
    """Let the SDK's client talk with `bullpen acp`."""
    client = Watching(answers)
    words = ["-m", "bullpen", "acp", "--trust"]
    async with acp.spawn_agent_process(
        client, sys.executable, *words, env=environment, cwd=folder, transport_kwargs={"limit": 1 << 24}
    ) as (connection, _):
        hello = await connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_info=schema.Implementation(name="test", version="1")
        )
        assert hello.agent_info.name == "bullpen"
        assert hello.agent_capabilities.load_session
        await story(connection, client)
    return client


def play(folder: Path, environment: dict[str, str], story: Story, answers: str = "Yes") -> Watching:
    """Let it talk, but not for ever."""
    return asyncio.run(asyncio.wait_for(followed(folder, environment, story, answers), PATIENCE_SECONDS))
