"""A genuine CLI on a worker remembers, asks and is told: what its model is asked, also after the worker has changed."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="the extra bullpen-chat[cluster] is not installed")
pytest.importorskip("procrastinate", reason="the extra bullpen-chat[cluster] is not installed")

from tests.agents.real_cli.scene import MODELS, SECRET, SPECS, history, read_call, said, text_of, until
from tests.agents.real_cli.test_claude_asks import shell
from tests.agents.real_cli.turn import clis
from tests.cluster.processes import Processes, Started

from bullpen.app import open_conversation
from bullpen.approvals import Answer
from bullpen.cluster.node import open_node
from bullpen.cluster.remote_team import RemoteTeam
from bullpen.conversation.conversation import Conversation
from bullpen.rehearsal import SETUPS
from bullpen.store.thread import StoreThread
from bullpen.team.file import load_team
from bullpen.testing.models import ModelRequest, ModelServer, Reply
from bullpen.testing.postgres import PostgresServer, programs

WORKER = "tests.cluster.worker_process"


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server in the network in which the test is."""
    if programs() is None:
        pytest.skip("NO POSTGRESQL: try apt-get install postgresql")
    with PostgresServer() as started:
        yield started


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    yield started
    started.end()


class PoolScene:
    """A team of kim and one genuine CLI in a pool."""

    def __init__(
        self, folder: Path, cli: str, models: ModelServer, url: str, processes: Processes, may: str = "full"
    ) -> None:
        self.cli = cli
        self.may = may
        self.url = url
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "secret.txt").write_text(SECRET, encoding="utf-8")
        self._models = models
        self._processes = processes
        settings = SETUPS[SPECS[cli]].settings(models.base_url, folder / "unused")
        self._names = sorted({*settings.env, "IS_SANDBOX"} - {"HOME"})
        self._arguments = [one for one in settings.arguments if one not in ("-m", "gpt-5.5")]
        self.team = folder / "team.toml"
        asked = {
            "name": "agent",
            "agent": cli,
            "pool": "box",
            "cwd": "project",
            "permissions": may,
            "model": MODELS[cli],
            "env": self._names,
            "arguments": self._arguments,
        }
        lines = ['name = "memory"', "[[member]]", 'name = "kim"', "[[member]]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in asked.items()]
        self.team.write_text("\n".join(lines), encoding="utf-8")

    def worker(self, name: str) -> Started:
        """Start a worker with a home of its own."""
        lets = {
            "name": name,
            "agents": [self.cli],
            "permissions": self.may,
            "models": [MODELS[self.cli]],
            "env": self._names,
            "arguments": self._arguments,
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in lets.items()]
        file = self.folder / f"{name}.toml"
        file.write_text("\n".join([*lines, "[folders]", f"project = {json.dumps(str(self.project))}"]))
        settings = SETUPS[SPECS[self.cli]].settings(self._models.base_url, self.folder / name)
        environment = {**settings.env, "IS_SANDBOX": "1", "XDG_STATE_HOME": str(self.folder / f"{name}-state")}
        return self._processes.start(WORKER, self.url, "box", str(file), **environment)

    @asynccontextmanager
    async def talking(self) -> AsyncIterator[Conversation]:
        thread = StoreThread()
        async with open_node(self.url, name="n") as node:
            with node.open_store() as store:
                remote = partial(RemoteTeam, node)
                async with open_conversation(load_team(self.team), store, thread, None, remote=remote) as conversation:
                    yield conversation
        thread.close()


@clis("claude", rarely=["codex"])
def test_it_remembers_on_its_worker_and_begins_again_on_another(
    cli: str, tmp_path: Path, server: PostgresServer, processes: Processes
) -> None:
    requests, origins, used = asyncio.run(asyncio.wait_for(converse(cli, tmp_path, server, processes), 110))

    *resumed, rebuilt = requests
    for before, request in pairwise(map(history, resumed)):
        assert request[: len(before)] == before
    assert "Read secret.txt" not in text_of(history(resumed[2])[len(history(resumed[1])) :])
    assert SECRET in text_of(history(resumed[2]))
    # The other worker has no session, and is given the conversation.
    assert SECRET not in text_of(history(rebuilt))
    assert text_of(history(rebuilt)).count("Read secret.txt") == 1
    assert origins == ["new", "resumed", "rebuilt: its session is on another worker, left"]
    assert used == [(200, 20), (100, 10), (100, 10)]


async def converse(
    cli: str, folder: Path, server: PostgresServer, processes: Processes
) -> tuple[list[ModelRequest], list[str], list[tuple[int, int]]]:
    async with ModelServer() as models:
        scene = PoolScene(folder, cli, models, server.url(), processes)
        said_in_ten = partial(Reply, input_tokens=100, cached_tokens=0, output_tokens=10)
        async with scene.talking() as conversation:
            first = scene.worker("left")
            call = read_call(cli, scene.project / "secret.txt")
            models.script(said_in_ten(tool_calls=(call,)), said_in_ten(text="I have read it."))
            await said(conversation, "Read secret.txt, and keep it to yourself.")
            models.script(said_in_ten(text="I know."))
            assert await said(conversation, "What did the file say?") == "I know."
            await asyncio.to_thread(first.stop)
            scene.worker("right")
            models.script(said_in_ten(text="I do not know."))
            await said(conversation, "Tell me.")
            turns = await conversation.read(lambda store, one: store.turns(one))
            records = await conversation.read(lambda store, one: [store.record(one, turn.id) for turn in turns])
        uses = [record.report.session for record in records if record is not None]
        origins = [f"{use.origin}: {use.reason}".removesuffix(": ") for use in uses if use is not None]
        return models.requests, origins, [(u.input_tokens, u.output_tokens) for turn in turns if (u := turn.usage)]


@pytest.mark.needs("claude")
def test_claude_asks_and_is_told_on_its_worker(tmp_path: Path, server: PostgresServer, processes: Processes) -> None:
    asyncio.run(asyncio.wait_for(ask_and_tell(tmp_path, server, processes), 110))


async def ask_and_tell(folder: Path, server: PostgresServer, processes: Processes) -> None:
    async with ModelServer() as models:
        scene = PoolScene(folder, "claude", models, server.url(), processes, may="ask")
        models.script(shell("touch first"), shell("touch second"), Reply(text="done"))
        scene.worker("box")
        async with scene.talking() as conversation:
            answers = [Answer(verdict="yes"), Answer(verdict="no", reason="The disk is full: use /srv.")]
            await conversation.say("Go.")
            for command, answer in zip(("touch first", "touch second"), answers, strict=True):
                await until(lambda: bool(conversation.approvals.open))
                (((turn, question), event),) = conversation.approvals.open.items()
                assert event.question.command == command
                assert not (scene.project / command.removeprefix("touch ")).exists()
                assert await conversation.tell("agent", f"Told during {command}.", sender="kim")
                await conversation.answer(turn, question, answer, by="kim")
            await conversation.until_quiet()
            assert not conversation.undecided
        assert (scene.project / "first").exists()
        assert not (scene.project / "second").exists()
        assert "The disk is full: use /srv." in text_of(history(models.requests[-1]))
        for number, command in ((1, "touch first"), (2, "touch second")):
            assert f"Told during {command}." in text_of(history(models.requests[number]))
