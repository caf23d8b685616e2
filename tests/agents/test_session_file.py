"""The file of a session: found in the CLI's home, compared with what it was, and put back to that."""

import os
from pathlib import Path

import pytest

from bullpen.agents.registry import agent_spec
from bullpen.agents.session_file import compared, find_session_file, is_session_id, mark_of, put_back, session_home
from bullpen.agents.spec import SessionSpec
from bullpen.memory import SessionUse

ID = "11111111-2222-4333-8444-555555555501"
PATHS = {
    "claude": f".claude/projects/-home-kai/{ID}.jsonl",
    "codex": f".codex/sessions/2026/11/16/rollout-2026-11-16T11-10-14-{ID}.jsonl",
    "gemini": f".gemini/tmp/kai/chats/session-2026-11-16T11-10-{ID[:8]}.jsonl",
    "qwen": f".qwen/projects/-home-kai/chats/{ID}.jsonl",
}
every_cli = pytest.mark.parametrize("cli", list(PATHS))


def sessions_of(cli: str) -> SessionSpec:
    sessions = agent_spec(cli).sessions
    assert sessions is not None
    return sessions


def made(path: Path, text: bytes = b"one\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return path


@every_cli
def test_it_is_found_in_the_home_folder_and_where_the_clis_variable_says(cli: str, tmp_path: Path) -> None:
    spec = sessions_of(cli)
    usual = made(tmp_path / "home" / PATHS[cli])
    inside = Path(PATHS[cli]).relative_to(spec.home)
    named = made(tmp_path / "named" / inside)
    home = {"HOME": str(tmp_path / "home")}

    assert find_session_file(spec, home, ID) == usual
    assert find_session_file(spec, {**home, spec.home_variable: str(tmp_path / "named")}, ID) == named
    assert find_session_file(spec, home, ID.replace("1", "2")) is None


def test_without_a_home_folder_in_the_environment_it_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/kai")

    assert session_home(sessions_of("claude"), {}) == Path("/home/kai/.claude")


def test_two_files_with_one_id_are_none(tmp_path: Path) -> None:
    for folder in ("-home-kai", "-home-lee"):
        made(tmp_path / "projects" / folder / f"{ID}.jsonl")

    assert find_session_file(sessions_of("claude"), {"CLAUDE_CONFIG_DIR": str(tmp_path)}, ID) is None


@pytest.mark.parametrize(
    "text", [None, "", "*", "../../etc/passwd", "a*b?c[d]e", "--resume", "x" * 101, "has space", "a\nbcdefgh"]
)
def test_what_is_not_an_id_is_neither_looked_for_nor_passed_on(text: str | None, tmp_path: Path) -> None:
    made(tmp_path / "projects" / "p" / f"{ID}.jsonl")

    assert not is_session_id(text)
    assert find_session_file(sessions_of("claude"), {"CLAUDE_CONFIG_DIR": str(tmp_path)}, text or "") is None


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (b"one\ntwo\n", "same"),
        (b"one\ntwo\nthree\n", "longer"),
        (b"one\ntw", "changed"),
        (b"", "changed"),
        (b"one\nTWO\n", "changed"),
        (b"one\nTWO\nthree\n", "changed"),
    ],
)
def test_a_file_is_compared_with_what_it_was(now: bytes, verdict: str, tmp_path: Path) -> None:
    file = made(tmp_path / "file", b"one\ntwo\n")
    mark = mark_of(file)

    file.write_bytes(now)

    assert compared(file, mark) == verdict


def test_a_large_file_is_compared_to_its_last_byte(tmp_path: Path) -> None:
    text = bytes(range(256)) * 10_000
    file = made(tmp_path / "file", text)
    mark = mark_of(file)

    assert compared(file, mark) == "same"
    file.write_bytes(text[:-1] + b"x")
    assert compared(file, mark) == "changed"


def test_it_is_put_back_to_what_it_was_without_being_written_anew(tmp_path: Path) -> None:
    file = made(tmp_path / "file", b"one\ntwo\n")
    mark = mark_of(file)
    inode = file.stat().st_ino
    with file.open("ab") as opened:
        opened.write(b"three\n")

    put_back(file, mark)

    assert file.read_bytes() == b"one\ntwo\n"
    assert (compared(file, mark), file.stat().st_ino) == ("same", inode)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """Whoever puts it there could let us cut any file."""
    file = made(tmp_path / "projects" / "p" / f"{ID}.jsonl")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")

    assert find_session_file(sessions_of("claude"), {"CLAUDE_CONFIG_DIR": str(tmp_path)}, ID) is None


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")

    with pytest.raises(OSError, match="not a file"):
        mark_of(tmp_path / "file")


def test_what_cannot_be_read_is_an_error_for_whoever_asks(tmp_path: Path) -> None:
    file = made(tmp_path / "file")
    mark = mark_of(file)
    file.unlink()
    os.mkfifo(file)
    file.unlink()

    with pytest.raises(FileNotFoundError):
        compared(file, mark)


@pytest.mark.parametrize(
    ("cli", "origin", "arguments"),
    [
        ("claude", "new", ("--session-id", ID)),
        ("claude", "rebuilt", ("--session-id", ID)),
        ("claude", "resumed", ("--resume", ID)),
        ("claude", "forked", ("--resume", ID, "--fork-session")),
        ("codex", "new", ()),
        ("codex", "resumed", ("resume", ID)),
        ("codex", "forked", ("fork", ID)),
        ("qwen", "new", ("--session-id", ID)),
        ("qwen", "resumed", ("--resume", ID)),
        ("qwen", "forked", ("--resume", ID, "--fork-session")),
    ],
)
def test_the_arguments_of_each_cli(cli: str, origin: str, arguments: tuple[str, ...]) -> None:
    use = SessionUse(origin=origin, id=ID)  # type: ignore[arg-type]

    assert sessions_of(cli).arguments(use) == arguments


def test_claude_is_told_when_the_system_text_is_another_one() -> None:
    use = SessionUse(origin="resumed", id=ID, has_other_system=True)

    assert sessions_of("claude").arguments(use) == ("--resume", ID, "--system-prompt-snapshot", "off")


def test_gemini_does_not_go_on_in_sessions() -> None:
    sessions = agent_spec("gemini").sessions

    assert sessions is None or not sessions.is_proven


@pytest.mark.parametrize("session", ["--yolo", "-c", "../other", "*", "a b"])
def test_an_id_that_a_cli_would_read_as_something_else_is_refused(session: str) -> None:
    spec = agent_spec("codex").sessions
    assert spec is not None

    with pytest.raises(ValueError, match="is not the id of a session"):
        spec.arguments(SessionUse(origin="resumed", id=session))
