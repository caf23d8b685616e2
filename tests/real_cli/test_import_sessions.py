"""A session of each genuine CLI, made as a person makes one, becomes a conversation."""

import asyncio
from pathlib import Path

import pytest
from tests.real_cli.test_turns import CLIS, Turn, run

from bullpen.cli import main
from bullpen.exchange.cli_sessions.finding import CliSessions
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import ModelServer, Reply, ToolCall
from bullpen.testing.settings import SETTINGS

every_cli = pytest.mark.parametrize("cli", CLIS)
HOME_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "QWEN_HOME")
QUESTION = "Please read notes.txt.\n请用中文总结。😀"
ANSWER = "文件有两行：alpha 和 beta。\n\n    indented"
# As a person would start them, without anything of bullpen.
COMMANDS = {
    "claude": ["claude", "-p", "--allowedTools", "Read"],
    "codex": ["codex", "exec", "--skip-git-repo-check"],
    "gemini": ["gemini", "-m", "gemini-2.5-flash"],
    "qwen": ["qwen", "-m", "qwen3-coder-plus"],
}
USED = {
    "claude": "Read notes.txt",
    "codex": "exec_command cat notes.txt",
    "gemini": "read_file notes.txt",
    "qwen": "read_file notes.txt",
}


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


def read_call(cli: str, file: Path) -> ToolCall:
    match cli:
        case "claude":
            return ToolCall(name="Read", arguments={"file_path": str(file)})
        case "codex":
            return ToolCall(name="exec_command", arguments={"cmd": "cat notes.txt"})
        case _:
            return ToolCall(name="read_file", arguments={"file_path": str(file)})


async def talk(cli: str, project: Path) -> None:
    """Say one thing to a CLI, which reads a file and answers."""
    async with ModelServer() as models:
        models.script(
            Reply(
                thinking="I should read it.",
                text="I will read it.",
                tool_calls=(read_call(cli, project / "notes.txt"),),
            ),
            Reply(text=ANSWER),
        )
        settings = SETTINGS[cli](models.base_url, project.parent / "home")
        last = ["-"] if cli == "codex" else []
        process = await asyncio.create_subprocess_exec(
            *[*COMMANDS[cli], *settings.arguments, *last],
            env=settings.env,
            cwd=project,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(QUESTION.encode()), timeout=120)
        except TimeoutError:
            process.kill()
            raise
        assert process.returncode == 0, output.decode()


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


@every_cli
def test_a_turn_of_bullpen_leaves_no_session_in_the_list(
    cli: str, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = Turn(cli, tmp_path / "turn")
    run(turn.run(Reply(text="Hello."), message="hello"))
    monkeypatch.setenv("HOME", str(turn.home))

    sessions = CliSessions(cli)

    assert len(sessions) == 1
    assert sessions.listed(turn.cwd) == []
