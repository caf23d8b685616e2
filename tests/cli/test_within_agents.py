"""Every command, run by an agent: it gets no rights over conversations of the person."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.agents import guardian
from bullpen.cli import COMMANDS, FOR_EVERYBODY, hook, sessions, within_agents
from bullpen.cli.within_agents import WITHIN_AGENTS
from bullpen.errors import BullpenError

Run = Callable[..., "subprocess.CompletedProcess[str]"]

NEEDED = {
    "run": ["hello"],
    "preview": ["--to", "max"],
    "backup": ["all.db"],
    "restore": ["all.db"],
    "rewind": ["1"],
    "move": ["--from", "a.db", "--to", "b.db"],
    "worker": ["worker.toml", "--cluster", "postgresql://nowhere", "--pool", "gpu"],
    "import": ["a.json"],
}
"""What a command needs to be understood."""
ACTION_WORDS = {name: ["x"] for name in ("search", "archive", "unarchive", "delete")} | {"rename": ["x", "y"]}
REFUSED = [name for name, row in WITHIN_AGENTS.items() if not row.is_free]
WITH_OPTIONS = [(name, option) for name, row in WITHIN_AGENTS.items() for option in row.but_not]


@pytest.fixture
def agents(bullpen: Run, environment: dict[str, str]) -> Run:
    """Run a command as an agent's program would."""
    environment["BULLPEN_TURN"] = "turn"
    return bullpen


def test_every_command_has_a_row() -> None:
    assert list(WITHIN_AGENTS) == list(COMMANDS)


def test_what_begins_before_anybody_looks_is_free() -> None:
    assert [WITHIN_AGENTS[name].is_free and not WITHIN_AGENTS[name].but_not for name in FOR_EVERYBODY] == [True] * 4


@pytest.mark.parametrize("name", REFUSED)
def test_an_agent_is_refused_and_nothing_is_written(name: str, agents: Run, tmp_path: Path, home: Path) -> None:
    done = agents(name, *NEEDED.get(name, []))

    why = WITHIN_AGENTS[name].why
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"bullpen: This is an agent's own terminal, and `bullpen {name}` is not for agents: {why}. "
        "Run it in a terminal of your own.\n"
    )
    assert (list(home.iterdir()), [path.name for path in tmp_path.iterdir()]) == ([], ["home"])


@pytest.mark.parametrize("words", [["--new-address"], ["--people"], ["--revoke", "x"], ["--trust"]])
def test_whoever_is_let_in_is_not_decided_by_an_agent(words: list[str], agents: Run, home: Path) -> None:
    done = agents("serve", *words)

    assert (done.returncode, done.stdout, list(home.iterdir())) == (1, "", [])
    assert "`bullpen serve` is not for agents" in done.stderr


@pytest.mark.parametrize("action", sessions.ACTIONS)
def test_neither_are_conversations_shown_or_deleted(action: str, agents: Run) -> None:
    done = agents("sessions", action, *ACTION_WORDS.get(action, []))

    assert (done.returncode, done.stdout) == (1, "")
    assert "`bullpen sessions` is not for agents" in done.stderr


@pytest.mark.parametrize(("name", "option"), WITH_OPTIONS)
def test_options_that_change_or_run_something_are_refused(name: str, option: str, agents: Run) -> None:
    done = agents(name, f"--{option}", *(["prices.toml"] if option == "import" else []))

    assert (done.returncode, done.stdout) == (1, "")
    assert f"`bullpen {name} --{option}` is not for agents: {WITHIN_AGENTS[name].but_not[option]}." in done.stderr


@pytest.mark.parametrize(
    "words",
    [["check"], ["doctor", "codex"], ["prices"], ["completion", "bash"], ["help"], ["--version"], ["chat", "--help"]],
)
def test_harmless_commands_stay(words: list[str], agents: Run, write_team: Callable[..., Path]) -> None:
    write_team(max="Hello.")
    done = agents(*words)

    assert done.stdout
    assert "agent's own terminal" not in done.stderr


def test_an_agent_that_empties_the_environment_is_known_by_its_parents(tmp_path: Path, home: Path) -> None:
    command = [sys.executable, "-m", "bullpen", "sessions"]
    starts = f"import subprocess, sys; sys.exit(subprocess.run({command!r}, env={{'HOME': {str(home)!r}}}).returncode)"
    done = subprocess.run(
        [sys.executable, "-c", starts],
        env={**os.environ, "BULLPEN_TURN": "turn"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert "`bullpen sessions` is not for agents" in done.stderr


BEGIN = """
import ctypes, os, signal, sys
libc, keeper = ctypes.CDLL(None), os.getppid()
USER, PROCESSES, MOUNTS = 0x10000000, 0x20000000, 0x00020000
def leave(namespaces):
    if libc.unshare(namespaces):
        print("not possible here")
        sys.exit()
def follow(pid):
    if pid:
        os.waitpid(pid, 0)
        sys.exit()
"""
EMPTIES = "os.execve(sys.executable, [sys.executable, '-m', 'bullpen', 'sessions'], {'HOME': sys.argv[1]})\n"
USER_NAMESPACE = "leave(USER)\n"
"""Then no process outside can be asked for its environment."""
CONTAINER = """
leave(USER | PROCESSES | MOUNTS)
follow(os.fork())
libc.mount(None, b"/", None, 0x44000, None)
if libc.mount(b"proc", b"/proc", b"proc", 0, None):
    print("not possible here")
    sys.exit()
"""
FEWER_RIGHTS = "for capability in range(64): libc.prctl(24, capability, 0, 0, 0)\n"
"""Of root: who has more cannot be asked for its environment."""
DISGUISES = {
    "none": "",
    "a user namespace": USER_NAMESPACE,
    "a container": CONTAINER,
    "other processes in /proc": "leave(USER | PROCESSES)\nfollow(os.fork())\nfollow(os.fork())\n",
    "fewer rights": FEWER_RIGHTS,
    "a terminal of its own": (
        "import pty\npid, end = pty.fork()\nif pid: sys.stdout.write(os.read(end, 4096).decode())\nfollow(pid)\n"
    ),
    "a lower limit": "import resource\nresource.setrlimit(10, (5, 5))\n",
    "an orphan": "follow(os.fork())\nos.setsid()\nif os.fork(): os._exit(0)\n",
    "an orphan whose guardian it kills": (
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "os.kill(keeper, signal.SIGKILL)\n"
        "while os.path.exists(f'/proc/{keeper}/exe') or os.getppid() == keeper: os.sched_yield()\n"
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has marks")
@pytest.mark.parametrize("disguise", DISGUISES)
def test_an_agent_is_known_in_every_disguise(disguise: str, tmp_path: Path, home: Path) -> None:
    reading, writing = os.pipe()
    keeper = guardian.Guardian()
    try:
        keeper.greet()
        argv = [sys.executable, "-c", BEGIN + DISGUISES[disguise] + EMPTIES, str(home)]
        with Path(os.devnull).open("rb") as nothing, os.fdopen(writing) as end:
            keeper.start(argv, cwd=tmp_path, env=os.environ, stdio=[nothing.fileno(), end.fileno(), end.fileno()])
        with os.fdopen(reading) as output:
            said = output.readline()
    finally:
        guardian.let_go(keeper)
        keeper.reap()

    if said == "not possible here\n":
        pytest.skip(said)
    assert said.startswith("bullpen: This is an agent's own terminal, and `bullpen sessions` is not for agents")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")
@pytest.mark.parametrize("place", ["none", "a user namespace", "a container", "fewer rights", "an orphan"])
def test_a_person_is_not_taken_for_an_agent(place: str, tmp_path: Path, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + DISGUISES[place] + EMPTIES, str(home)],
        env={},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    if done.stdout == "not possible here\n":
        pytest.skip(done.stdout)
    assert done.stdout.startswith("No conversations yet"), done.stderr


def test_where_it_cannot_be_known_nothing_is_done(bullpen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within_agents, "is_within_agent", lambda: None)
    done = bullpen("undo")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("bullpen: It cannot be known whether an agent runs this, and `bullpen undo` is not")


@pytest.mark.parametrize(("words", "code"), [(["run"], 0), (["run", "--strict"], 1), (["install"], 1), (["remove"], 1)])
def test_a_hook_asks_nobody_when_an_agent_commits(
    words: list[str], code: int, agents: Run, tmp_path: Path, write_team: Callable[..., Path]
) -> None:
    write_team(max="[VERDICT: approve]")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "team.toml"], cwd=tmp_path, check=True)
    done = agents("hook", *words)

    assert (done.returncode, done.stdout) == (code, "")
    assert hook.NOT_FOR_AGENTS in done.stderr
    assert ("Nobody was asked about this commit." in done.stderr) == (words[0] == "run")
    assert not (tmp_path / ".git" / "hooks" / "pre-commit").exists()


def test_a_database_of_the_person_is_not_a_teams_own(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_TURN", "turn")
    monkeypatch.setenv("BULLPEN_DEPTH", "2")
    own = home / "data" / "within" / "2"
    theirs, new, link = tmp_path / "theirs.db", tmp_path / "new.db", tmp_path / "link.db"
    theirs.write_bytes(b"")
    link.symlink_to(theirs)
    for db in (theirs, link, home / "data" / "conversations.db", own.parent / "1" / "conversations.db"):
        monkeypatch.setenv("BULLPEN_HOME", str(home / "data"))
        with pytest.raises(BullpenError, match="may be a database of yours"):
            within_agents.use_own_data(db)
        assert os.environ["BULLPEN_HOME"] == str(home / "data")

    for own_db in (new, None, new):
        monkeypatch.setenv("BULLPEN_HOME", str(home / "data"))
        assert within_agents.use_own_data(own_db) == home / "data" / "trusted.json"
        assert os.environ["BULLPEN_HOME"] == str(own)
        new.write_bytes(b"")
