"""The sessions of the scripted agent: begun, resumed, forked and refused as the real CLIs do, and what a model gets."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.registry import agent_spec
from bullpen.agents.session_file import find_session_file
from bullpen.agents.spec import SessionSpec

ID = "11111111-2222-4333-8444-555555555501"
VARIABLES = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}
every_cli = pytest.mark.parametrize("cli", list(VARIABLES))


class Home:
    """A CLI's home, and turns in it."""

    def __init__(self, cli: str, folder: Path) -> None:
        self.cli, self.folder = cli, folder
        self.environment = {VARIABLES[cli]: str(folder / "home")}

    def turn(self, prompt: str, *arguments: str, script: list[Any] | None = None) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "bullpen.testing.agent", "--as", self.cli, *arguments]
        if script:
            command += ["--script", json.dumps(script)]
        environment = {**os.environ, **self.environment}
        return subprocess.run(command, input=prompt.encode(), capture_output=True, env=environment, cwd=self.folder)

    def begin(self, prompt: str) -> str:
        """Begin a session and return its id."""
        return session_of(self.turn(prompt, *(["--session-id", ID] if self.cli == "claude" else [])))

    def going_on(self, action: str, session_id: str) -> list[str]:
        if self.cli == "codex":
            return [action, session_id, "-"]
        return ["--resume", session_id, *(["--fork-session"] if action == "fork" else [])]

    @property
    def spec(self) -> SessionSpec:
        sessions = agent_spec(self.cli).sessions
        assert sessions is not None
        return sessions

    def file(self, session_id: str) -> Path:
        file = find_session_file(self.spec, self.environment, session_id)
        assert file is not None
        return file

    def asked(self, session_id: str) -> list[list[str]]:
        """Return what the model got in each turn of a session."""
        lines = self.file(session_id).with_suffix(".asked").read_text(encoding="utf-8").splitlines()
        return [[message["text"] for message in json.loads(line)["messages"]] for line in lines]


def session_of(done: subprocess.CompletedProcess[bytes]) -> str:
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout.splitlines()[0])
    return str(first.get("session_id") or first["thread_id"])


@pytest.fixture
def home(cli: str, tmp_path: Path) -> Home:
    return Home(cli, tmp_path)


@every_cli
def test_a_resumed_session_has_all_turns_before_it_and_its_file_only_grows(home: Home) -> None:
    session = home.begin("one 😀")
    before = home.file(session).read_bytes()

    assert session_of(home.turn("two", *home.going_on("resume", session))) == session

    assert home.file(session).read_bytes().startswith(before)
    assert home.asked(session) == [["one 😀"], ["one 😀", "Thank you. You said: one 😀", "two"]]


@every_cli
def test_a_fork_has_the_history_of_the_other_which_stays_as_it_is(home: Home) -> None:
    session = home.begin("one")
    before = home.file(session).read_bytes()

    fork = session_of(home.turn("two", *home.going_on("fork", session)))

    assert fork != session
    assert home.file(session).read_bytes() == before
    assert home.asked(fork) == [["one", "Thank you. You said: one", "two"]]


@every_cli
def test_a_file_that_was_cut_back_goes_on_from_there(home: Home) -> None:
    session = home.begin("one")
    size = home.file(session).stat().st_size
    home.turn("two", *home.going_on("resume", session))

    os.truncate(home.file(session), size)
    home.turn("three", *home.going_on("resume", session))

    assert home.asked(session)[-1] == ["one", "Thank you. You said: one", "three"]


@every_cli
@pytest.mark.parametrize("action", ["resume", "fork"])
def test_a_session_that_is_not_there_is_refused_in_the_clis_words(home: Home, action: str) -> None:
    done = home.turn("hi", *home.going_on(action, ID))

    words = {"claude": f"No conversation found with session ID: {ID}", "codex": f"no rollout found for thread id {ID}"}
    assert done.returncode == 1
    assert words[home.cli] in done.stderr.decode()
    assert not list(home.folder.rglob("*.jsonl"))


@pytest.mark.parametrize("cli", ["claude"])
def test_claude_finds_a_session_only_from_its_folder_and_begins_none_twice(home: Home) -> None:
    home.begin("one")
    (home.folder / "other").mkdir()
    elsewhere = Home("claude", home.folder / "other")
    elsewhere.environment = home.environment

    assert elsewhere.turn("two", "--resume", ID).returncode == 1
    again = home.turn("two", "--session-id", ID)
    assert (again.returncode, again.stderr.decode()) == (1, f"Error: Session ID {ID} is already in use.\n")


@pytest.mark.parametrize("cli", ["claude"])
def test_claude_sends_the_first_system_text_unless_that_is_off(home: Home) -> None:
    system = home.folder / "system.md"
    for text, arguments in {
        "first": ["--session-id", ID],
        "second": ["--resume", ID],
        "third": ["--resume", ID, "--system-prompt-snapshot", "off"],
    }.items():
        system.write_text(text, encoding="utf-8")
        home.turn("hi", "--append-system-prompt-file", str(system), *arguments)

    lines = home.file(ID).with_suffix(".asked").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["system"] for line in lines] == ["first", "first", "third"]


@pytest.mark.parametrize("cli", ["codex"])
def test_codex_begins_a_new_thread_for_an_id_that_is_none(home: Home) -> None:
    session = session_of(home.turn("hi", "resume", "nonsense", "-"))

    assert home.asked(session) == [["hi"]]


@pytest.mark.parametrize("cli", ["codex"])
def test_codex_refuses_a_thread_in_which_another_turn_runs(home: Home) -> None:
    session = home.begin("one")
    command = [sys.executable, "-m", "bullpen.testing.agent", "--as", "codex", "resume", session, "-"]
    command += ["--script", '[{"say": "here"}, {"finish": true}, {"hang": true}]']
    environment = {**os.environ, **home.environment}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment) as other:
        assert other.stdout is not None
        other.stdout.readline()
        done = home.turn("two", "resume", session, "-")
        other.kill()

    assert done.returncode == 1
    assert b"already has an active writer" in done.stderr


@every_cli
def test_tokens_add_up_and_a_summary_replaces_what_was_before(home: Home) -> None:
    session = home.begin("one")
    usage = {"usage": {"input": 100, "output": 10}}
    for text in ("two", "three"):
        script = [{"compact": f"before {text}"}, {"say": "yes"}, usage]
        done = home.turn(text, *home.going_on("resume", session), script=script)

    parser = agent_spec(home.cli).parser()
    events = [event for line in done.stdout.splitlines() for event in parser.parse(json.loads(line))]
    (used,) = [event for event in events if type(event).__name__ == "Usage"]
    assert 200 <= getattr(used, "input_tokens") < 205  # noqa: B009
    assert home.asked(session)[-1] == ["before two", "yes", "three"]
    assert home.spec.shortened[0].encode() in home.file(session).read_bytes()


@every_cli
def test_without_a_home_nothing_is_written(home: Home) -> None:
    home.environment = {"HOME": str(home.folder)}

    home.turn("hi", *home.going_on("resume", ID))

    assert list(home.folder.iterdir()) == []
