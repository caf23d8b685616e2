"""For how long an answer holds, in a whole conversation of each genuine CLI: it only ever hears "once"."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.trials import EVERY_CLI, command_calls

from bullpen.app import open_team
from bullpen.approvals import Answer, Scope
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import ModelServer, Reply
from bullpen.testing.settings import SETTINGS

MODELS = {"gemini": "gemini-2.5-flash", "qwen": "qwen3-coder-plus"}
RUN, OTHER = "sh add.sh a", "sh add.sh b"
# OpenCode takes half a minute for a turn on a busy machine.
pytestmark = pytest.mark.timeout(400)


class Scene:
    """A conversation with one member that asks."""

    def __init__(self, folder: Path, cli: str) -> None:
        self.cli, self.home, self.project = cli, folder / "home", folder / "project"
        self.db = folder / "c.db"
        self.project.mkdir()
        (self.project / "add.sh").write_text('echo x >> "$1"\n')
        runs = f'agent = "{cli}"'
        model = f'model = "{MODELS[cli]}"\n' if cli in MODELS else ""
        limits = "idle_timeout = 150\ntotal_timeout = 300\n"
        member = f'[[member]]\nname = "max"\n{runs}\n{model}permissions = "ask"\n{limits}'
        (self.project / "team.toml").write_text(f'lead = "max"\n[[member]]\nname = "kim"\n{member}')
        self.asked: list[str] = []
        self.settings: list[dict[str, bytes]] = []

    async def play(self, *answers: tuple[Answer, Scope], says: tuple[list[Reply], ...]) -> list[Any]:
        """Say something for each script of the model, and answer what is asked; return the requests to the model."""
        async with ModelServer() as models:
            own = SETTINGS[self.cli](models.base_url, self.home)
            extra = {"max": Extra(env={**own.env, "IS_SANDBOX": "1"}, arguments=own.arguments)}
            async with open_team(self.project / "team.toml", db=self.db, extra=extra) as conversation:
                answering = asyncio.ensure_future(self._answer(conversation, list(answers)))
                for script in says:
                    models.script(*script)
                    await conversation.say("Go.", sender="kim")
                    await conversation.until_quiet()
                    assert not conversation.undecided, [ended.sentence for ended in conversation.undecided]
                assert conversation.approvals.open == {}
                answering.cancel()
            self.settings.append(self._settings())
            return list(models.requests)

    async def _answer(self, conversation: Conversation, answers: list[tuple[Answer, Scope]]) -> None:
        while True:
            for (turn, question), event in list(conversation.approvals.open.items()):
                self.asked.append(event.question.command)
                # Not before: Qwen Code brings its settings into its newest form when it starts.
                self.settings.append(self._settings())
                answer, scope = answers.pop(0)
                await conversation.answer(turn, question, answer, scope=scope, by="kim")
            await asyncio.sleep(0.01)

    def _settings(self) -> dict[str, bytes]:
        """Return every file that holds settings, of the person and of the folder."""
        names = ("settings*.json", "*.toml", "*.rules", "opencode.json", "trustedFolders.json")
        files = [file for place in (self.home, self.project) for name in names for file in place.rglob(name)]
        found = {}
        for file in files:
            # A CLI may be putting another one in its place.
            with suppress(FileNotFoundError):
                found[str(file)] = file.read_bytes()
        return found

    def ran(self, name: str) -> int:
        file = self.project / name
        return len(file.read_text().split()) if file.exists() else 0


def wants(cli: str, *commands: str) -> list[Reply]:
    return [*(command_calls(cli, [command]) for command in commands), Reply(text="done")]


def is_command(command: str) -> Callable[[str], bool]:
    # Codex says with which shell it runs it.
    return lambda asked: asked in (command, f"/bin/bash -lc '{command}'")


YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="write to notes/ instead")


@pytest.mark.parametrize("cli", EVERY_CLI)
def test_for_this_conversation_is_not_asked_again_and_once_is(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)
    script = (wants(cli, OTHER, RUN, RUN), [*wants(cli, RUN, OTHER), *[Reply(text="done")] * 2])

    requests = asyncio.run(scene.play((YES, "once"), (YES, "conversation"), (NO, "once"), says=script))

    wanted = [OTHER, RUN, OTHER]
    assert [is_command(command)(asked) for command, asked in zip(wanted, scene.asked, strict=True)] == [True] * 3
    assert (scene.ran("a"), scene.ran("b")) == (3, 1)
    # Gemini lets its model answer to a refusal, and does not tell it the reason.
    assert any("write to notes/ instead" in text for text in requests[-1].texts) == (cli != "gemini")
    before, *others = scene.settings
    assert others == [before] * 3
    with SqliteStore(scene.db) as store:
        (stored,) = store.conversations()
        records = store.approvals(stored.id)
    answers = [(one.by, one.scope, one.because) for one in records if one.answer]
    held = ("", "once", "kim allowed it for the conversation")
    assert answers == [("kim", "once", ""), ("kim", "conversation", ""), held, held, ("kim", "once", "")]
