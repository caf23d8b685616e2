"""A session of each genuine CLI, made as a person makes one, becomes a conversation."""

import asyncio
from pathlib import Path

import pytest
from tests.agents.real_cli.person import ANSWER, QUESTION, talk
from tests.agents.real_cli.turn import Turn, clis, every_cli, run

from bullpen.cli import main
from bullpen.exchange.cli_sessions.finding import CliSessions
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import Reply

USED = {
    "claude": "Read notes.txt",
    "codex": "exec_command cat notes.txt",
    "gemini": "read_file notes.txt",
    "qwen": "read_file notes.txt",
}


@every_cli
def test_a_session_is_found_and_imported(cli: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(talk(cli, project))
    (listed,) = CliSessions(cli).listed(project)
    session = CliSessions(cli).session(listed.id, project)
    before = session.file.read_bytes(), session.file.stat().st_mtime_ns

    assert main(["import", "--from", cli, "last"]) == 0

    with SqliteStore(project.parent / "data" / "conversations.db") as store:
        (conversation,) = store.conversations()
        messages = [stored.message for stored in store.messages(conversation.id)]
    assert [(message.speaker.role_id, message.content) for message in messages] == [
        ("you", QUESTION),
        (cli, f"I will read it.\n\n(used 1 tool: {USED[cli]})\n\n{ANSWER}"),
    ]
    assert messages[0].timestamp < messages[1].timestamp
    assert conversation.extra is not None
    about = conversation.extra["importedFrom"]
    assert (about["cli"], about["sessionId"], about["folder"]) == (cli, listed.id, str(project))
    assert (Path(about["file"]), about["fileMark"]["size"]) == (session.file, len(before[0]))
    assert (session.file.read_bytes(), session.file.stat().st_mtime_ns) == before
    assert listed.is_here


@clis("claude", "codex", rarely=["gemini", "qwen"])
def test_a_turn_of_bullpen_leaves_no_session_in_the_list(
    cli: str, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = Turn(cli, tmp_path / "turn")
    run(turn.run(Reply(text="Hello."), message="hello"))
    monkeypatch.setenv("HOME", str(turn.home))

    sessions = CliSessions(cli)

    assert len(sessions) == 1
    assert sessions.listed(turn.cwd) == []
