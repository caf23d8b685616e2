"""A session of a genuine CLI that a person made: in the team, its agent continues a copy, and only a copy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.real_cli.test_import_sessions import HOME_VARIABLES, talk
from tests.real_cli.test_memory import SPECS, every_cli, history, said, text_of

from bullpen.app import open_team
from bullpen.cli import main
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.exchange.cli_sessions.finding import CliSessions
from bullpen.memory import SessionUse
from bullpen.rehearsal import SETUPS
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import ModelServer, Reply

READ = {"claude": "2\\tbeta", "codex": "alpha\\nbeta", "qwen": "alpha\\nbeta"}
"""What only the session has: what the agent read, and not only that it did."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("alpha\nbeta\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for variable in HOME_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(folder)
    return folder


def write_team(project: Path, cli: str) -> None:
    team = f'name = "natives"\nlead = "ann"\n[[member]]\nname = "kim"\n[[member]]\nname = "ann"\nagent = "{cli}"\n'
    (project / "team.toml").write_text(team, encoding="utf-8")


def database(project: Path) -> Path:
    return project.parent / "data" / "conversations.db"


@asynccontextmanager
async def talking(project: Path, cli: str) -> AsyncIterator[tuple[Conversation, ModelServer]]:
    """Open the conversation that was imported."""
    with SqliteStore(database(project)) as store:
        (stored,) = store.conversations()
    async with ModelServer() as models:
        settings = SETUPS[SPECS[cli]].settings(models.base_url, project.parent / "home")
        extra = {"ann": Extra(env=settings.env, arguments=tuple(settings.arguments))}
        team = project / "team.toml"
        async with open_team(team, db=database(project), extra=extra, resume=stored.id) as conversation:
            yield conversation, models


def uses(project: Path) -> list[SessionUse | None]:
    with SqliteStore(database(project)) as store:
        (stored,) = store.conversations()
        records = [store.record(stored.id, turn.id) for turn in store.turns(stored.id)]
    return [record.report.session for record in records if record is not None]


def session_file(cli: str, project: Path) -> Path:
    (listed,) = CliSessions(cli).listed(project)
    return CliSessions(cli).session(listed.id, project).file


async def ask(project: Path, cli: str, question: str, answer: str) -> str:
    """Return what the model was asked."""
    async with talking(project, cli) as (conversation, models):
        models.script(Reply(text=answer))
        assert await said(conversation, question) == answer
        return text_of(history(models.requests[-1]))


@every_cli
def test_its_own_agent_continues_a_copy_of_the_session(cli: str, project: Path) -> None:
    write_team(project, cli)
    asyncio.run(talk(cli, project))
    file = session_file(cli, project)
    before = file.read_bytes(), file.stat().st_mtime_ns
    assert main(["import", "--from", cli, "last"]) == 0

    first = asyncio.run(ask(project, cli, "What was in the file?", "Alpha and beta."))
    second = asyncio.run(ask(project, cli, "And in which order?", "Alpha first."))

    assert (file.read_bytes(), file.stat().st_mtime_ns) == before, "the person's own session is never written to"
    assert [use and use.origin for use in uses(project)] == ["forked", "resumed"]
    for asked in (first, second):
        assert asked.count("Please read notes.txt.") == 1, "it is in the session, and not in the prompt again"
        assert READ[cli] in asked.replace("\\\\n", "\\n")
        assert "used 1 tool" not in asked
    assert second.count("What was in the file?") == 1


@every_cli
@pytest.mark.parametrize("change", ["continued", "gone"])
def test_a_session_that_is_not_what_was_imported_is_rebuilt_from_the_text(cli: str, change: str, project: Path) -> None:
    write_team(project, cli)
    asyncio.run(talk(cli, project))
    file = session_file(cli, project)
    assert main(["import", "--from", cli, "last"]) == 0
    if change == "gone":
        file.unlink()
    else:
        with file.open("ab") as opened:
            opened.write(b'{"type": "more"}\n')
        before = file.read_bytes(), file.stat().st_mtime_ns

    asked = asyncio.run(ask(project, cli, "What was in the file?", "Alpha and beta."))

    (use,) = uses(project)
    reasons = {"continued": "its session was continued elsewhere", "gone": "the file of its session is gone"}
    assert use is not None
    assert (use.origin, use.reason) == ("rebuilt", reasons[change])
    assert asked.count("Please read notes.txt.") == 1
    assert "used 1 tool" in asked
    if change == "continued":
        assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_claude_does_not_continue_a_session_of_another_folder(project: Path, tmp_path: Path) -> None:
    asyncio.run(talk("claude", project))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_team(elsewhere, "claude")
    assert main(["import", "--from", "claude", "last", "--team", str(elsewhere / "team.toml")]) == 0

    asyncio.run(ask(elsewhere, "claude", "What was in the file?", "Alpha and beta."))

    (use,) = uses(elsewhere)
    assert use is not None
    assert (use.origin, use.reason) == ("rebuilt", f"it worked in {project} and works in {elsewhere} now")


@every_cli
def test_the_first_turn_is_not_charged_for_the_persons_session(cli: str, project: Path) -> None:
    write_team(project, cli)
    asyncio.run(talk(cli, project))
    assert main(["import", "--from", cli, "last"]) == 0

    async def converse() -> None:
        async with talking(project, cli) as (conversation, models):
            for number in range(2):
                models.script(Reply(text=f"{number}", input_tokens=100, cached_tokens=0, output_tokens=10))
                await said(conversation, f"Question {number}")

    asyncio.run(converse())

    with SqliteStore(database(project)) as store:
        turns = store.turns(store.conversations()[0].id)
    used = [(turn.usage.input_tokens, turn.usage.output_tokens) for turn in turns if turn.usage]
    assert len(used) == 2
    assert len(set(used)) == 1, used
