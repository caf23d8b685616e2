"""What a program tries that should not be held, in the genuine sandbox: each with what holds it."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.agents.command import command_agent
from bullpen.agents.runner import run_turn
from bullpen.context.prompt import AssemblerInput
from bullpen.errors import AgentFailed
from bullpen.permissions import Permission
from bullpen.sandbox.mechanism import mechanism
from bullpen.sandbox.rules import SandboxRules
from bullpen.turn_events import Event, Notice

SCRIPT = "script.sh"
ON = SandboxRules(is_on=True)
pytestmark = pytest.mark.foreign


@pytest.fixture(autouse=True)
def there_is_one() -> None:
    """Fail where nothing can be held, so that it is not skipped in silence."""
    assert mechanism().works, mechanism().why_not


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("BULLPEN_HOME", str(home / "data"))
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "config", "user.email", "k@x"], check=True)
    subprocess.run(["git", "-C", str(folder), "config", "user.name", "k"], check=True)
    return folder


class Ran:
    """One turn of a shell."""

    def __init__(
        self,
        folder: Path,
        script: str,
        permissions: Permission = "edit",
        rules: SandboxRules = ON,
    ) -> None:
        self.events: list[Event] = []
        # In a file: a CLI that is named in a command would be taken for what runs.
        file = folder.parent / SCRIPT
        file.write_text(f"({script}) 2>&1; echo; echo over\n")
        spec = command_agent(["bash", str(file)], name="shell")
        prompt = spec.assembler().assemble(AssemblerInput(current_message="x"))
        turn = run_turn(spec, prompt, emit=self.events.append, cwd=folder, permissions=permissions, sandbox=rules)
        self.text = asyncio.run(turn).text

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]


def outside_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Return what is beside a folder, with sizes and times: all of it must stay as it is."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.parent.rglob("*"))
        if not path.is_relative_to(folder) and "/state/" not in str(path) and path.name != SCRIPT and path.is_file()
    }


@pytest.fixture
def stays(folder: Path, home: Path) -> Iterator[None]:
    (home / "precious").write_text("precious")
    before = outside_of(folder)
    yield
    assert outside_of(folder) == before


@pytest.mark.usefixtures("stays")
@pytest.mark.parametrize(
    "script",
    [
        "echo x > ~/precious",
        "rm -f ~/precious",
        "ln -s ~/precious link; echo x > link",
        "ln ~/precious hard; echo x > hard",
        "mv ~/precious here",
        "echo x > ../beside",
        "echo x > /proc/self/cwd/../beside",
        "echo x > /proc/self/root/$HOME/precious",
        "exec 3< ~/precious; echo x > /proc/self/fd/3",
        "echo x > /proc/1/root/$HOME/precious",
        "echo x > /proc/$PPID/root/$HOME/precious",
        "mount --bind . ~; echo x > ~/precious",
        "mount -o remount,rw /; mount -o remount,rw,bind ~; echo x > ~/precious",
        "unshare -Urm sh -c 'mount -o remount,rw,bind / ; echo x > ~/precious'",
        "unshare -Urm sh -c 'umount -l ~; umount -R /; echo x > ~/precious'",
        "chmod 777 ~; touch ~/new",
        "mkfifo f; (cat f > ~/precious) & timeout 1 sh -c 'echo x > f'; wait",
        "setsid nohup sh -c 'sleep 0.2; echo x > ~/precious' & sleep 0.4",
        "cp /bin/sh ./sh; chmod u+s ./sh; ./sh -p -c 'echo x > ~/precious'",
        "su -c 'echo x > ~/precious'; sudo -n sh -c 'echo x > ~/precious'",
        "for n in $(seq 60); do (while :; do echo x > ~/precious; touch ../n$n; done) & done; sleep 0.3",
        "mknod disk b 8 0 && cat disk | head -c 1",
        "echo y > /proc/sys/kernel/core_pattern; echo y > /proc/sys/kernel/domainname",
        'cd /; git -C ~ init; python3 -c \'import os; os.symlink("x", os.path.expanduser("~/y"))\'',
    ],
)
def test_nothing_outside_of_the_folder_changes(folder: Path, home: Path, script: str) -> None:
    kernel = Path("/proc/sys/kernel/core_pattern").read_text()

    ran = Ran(folder, script)

    assert "over" in ran.text
    assert (home / "precious").read_text() == "precious"
    assert Path("/proc/sys/kernel/core_pattern").read_text() == kernel


@pytest.mark.parametrize(
    "script",
    [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "git config core.fsmonitor ./evil",
        "mv .git/config .git/c; cp .git/c .git/config; echo x >> .git/config",
        "mv .git old; cp -r old .git; echo x >> .git/config",
        "rm -rf .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
        "echo ../evil > .git/commondir",
        "echo x > .git/info/attributes",
        "echo x >> team.toml",
        "mv team.toml t; echo x > team.toml",
        "rm -f opencode.json; echo x > opencode.json",
        "echo x > .claude/settings.json",
        "mv .claude c; mkdir .claude; echo x > .claude/settings.json",
        "mkdir -p .qwen .gemini .pi/extensions; echo x > .qwen/settings.json; echo x > .pi/extensions/e.js",
        "rmdir .gemini; mkdir .gemini; echo x > .gemini/settings.json",
        "umount .qwen; echo x > .qwen/settings.json",
        "ln -s .claude link; echo x > link/settings.local.json",
        "ln .claude/settings.json hard; echo x > hard",
        "echo x > .envrc; echo x > .vscode/tasks.json; mkdir -p .husky; echo x > .husky/pre-commit",
        "rm link; ln -s evil link; echo x > link/x; rm .cursor; mkdir .cursor; echo x > .cursor/mcp.json",
    ],
)
@pytest.mark.usefixtures("stays")
def test_nothing_that_makes_programs_run_changes_in_the_folder(folder: Path, script: str) -> None:
    (folder / "evil").mkdir()
    (folder / ".cursor").symlink_to("evil")
    for name in (".claude", ".vscode"):
        (folder / name).mkdir()
    for name in ("team.toml", "opencode.json", ".envrc", ".claude/settings.json", ".vscode/tasks.json"):
        (folder / name).write_text("{}")

    def what_runs() -> dict[str, str]:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "objects" not in path.parts]
        found = {str(path.relative_to(folder)): path.read_text(errors="replace") for path in files}
        own = ("link", "hard", "old", "c/", "t", ".git/c", ".git/index", "evil/", ".cursor.set-aside")
        return {
            name: text
            for name, text in found.items()
            if not (name.startswith(own) and name != "team.toml")
            or name in ("config", ".git/config", ".git/commondir", "team.toml")
        }

    before = what_runs()

    Ran(folder, script)

    assert what_runs() == before


def test_what_a_member_does_every_day_works(folder: Path, home: Path) -> None:
    del home
    script = (
        f"echo 1 > a && git add a && git commit -qm x && git checkout -q -b other && git log --oneline | wc -l && "
        f"mkdir -p src && echo 'def test(): pass' > src/test_a.py && {sys.executable} -m pytest -q src | tail -1 && "
        "python3 -c 'import tempfile; print(tempfile.mkdtemp())' && echo fine"
    )

    ran = Ran(folder, script)

    assert "fine" in ran.text, ran.text
    assert not [name for name in os.listdir(folder) if name in (".claude", ".qwen", ".vscode")]  # noqa: PTH208


def test_read_only_writes_nowhere_and_is_told_so(folder: Path, home: Path) -> None:
    del home
    ran = Ran(
        folder,
        "touch a; mkdir b; git commit --allow-empty -m x; echo $TMPDIR; touch /tmp/x && echo temporary",
        "read-only",
    )

    assert [path.name for path in folder.iterdir()] == [".git"]
    assert "temporary" in ran.text
    assert not Path("/tmp/x").exists()


def test_sockets_of_others_are_not_there(folder: Path, home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as agent:
        place = Path(f"/tmp/ssh-{os.getpid()}")
        agent.bind(str(place))
        try:
            ran = Ran(
                folder, f"ls {place} /run/docker.sock /run/user /run/dbus /var/run/docker.sock; ls -A /run | wc -l"
            )
        finally:
            place.unlink()

    assert ran.text.count("No such file") >= 5
    del home


def test_others_processes_are_neither_seen_nor_traced(folder: Path, home: Path) -> None:
    del home
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            ran = Ran(
                folder,
                f"kill -9 {other.pid}; cat /proc/{other.pid}/environ; ls /proc | grep -c '^[0-9]'; "
                f"""python3 -c 'import ctypes; print("traced", ctypes.CDLL(None).ptrace(16, {other.pid}, 0, 0))'""",
            )
            assert other.poll() is None
        finally:
            other.kill()
    assert "traced -1" in ran.text


def test_secrets_and_other_clis_are_not_there(folder: Path, home: Path) -> None:
    for name in (".ssh/id_rsa", ".codex/auth.json", ".claude/.credentials.json", "data/conversations.db", "plain"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("hush!")

    assert Ran(folder, "cat ~/.ssh/id_rsa ~/.codex/auth.json ~/.claude/.cred* ~/data/*").text.count("hush!") == 0
    assert "hush!" in Ran(folder, "cat ~/plain").text


def test_a_persons_line_widens_it(folder: Path, home: Path) -> None:
    rules = SandboxRules(is_on=True, writable=("~/cache", ".vscode"))

    ran = Ran(folder, "echo 1 > ~/cache/a; echo 2 > .vscode/tasks.json; echo 3 > ~/b", rules=rules)

    assert (home / "cache" / "a").read_text() == "1\n"
    assert (folder / ".vscode" / "tasks.json").read_text() == "2\n"
    assert not (home / "b").exists()
    assert "Read-only file system" in ran.text


def test_without_the_network_nothing_is_reached(folder: Path, home: Path) -> None:
    del home
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"
        assert "reached" not in Ran(folder, script, rules=SandboxRules(is_on=True, network=False)).text
        assert "reached" in Ran(folder, script).text


def test_full_permissions_and_who_wants_no_sandbox_are_not_held(folder: Path, home: Path) -> None:
    Ran(folder, "echo 1 > ~/a", "full")
    Ran(folder, "echo 1 > ~/b", rules=SandboxRules())

    assert (home / "a").exists()
    assert (home / "b").exists()


def test_a_cancelled_turn_gets_its_grace_and_leaves_nothing(folder: Path, home: Path) -> None:
    del home
    script = (
        f"trap 'echo said > {folder}/said; exit 0' INT; (setsid sleep 300 &) ; touch ready; "
        "while :; do sleep 0.05; done"
    )
    spec = command_agent(["bash", "-c", script], name="shell")
    prompt = spec.assembler().assemble(AssemblerInput(current_message="x"))

    async def cancelled() -> None:
        task = asyncio.ensure_future(
            run_turn(spec, prompt, emit=lambda _: None, cwd=folder, permissions="edit", sandbox=ON)
        )
        while not (folder / "ready").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    assert (folder / "said").read_text() == "said\n"
    assert subprocess.run(["pgrep", "-f", "sleep 300"], check=False, capture_output=True).stdout == b""


def test_a_program_that_is_killed_is_said_to_be(folder: Path, home: Path) -> None:
    del home
    spec = command_agent(["bash", "-c", "kill -9 $$"], name="shell")
    prompt = spec.assembler().assemble(AssemblerInput(current_message="x"))

    with pytest.raises(AgentFailed, match="SIGKILL"):
        asyncio.run(run_turn(spec, prompt, emit=lambda _: None, cwd=folder, permissions="edit", sandbox=ON))


def test_npm_and_pip_install_what_is_here(folder: Path, home: Path) -> None:
    del home
    if shutil.which("npm") is None:
        pytest.fail("npm is missing, and the genuine CLIs come with it")
    (folder / "dep").mkdir()
    (folder / "dep" / "package.json").write_text('{"name": "dep", "version": "1.0.0"}')
    (folder / "package.json").write_text('{"name": "top", "version": "1.0.0"}')
    with zipfile.ZipFile(folder / "one-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("one.py", "x = 1\n")
        wheel.writestr("one-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: one\nVersion: 1.0\n")
        wheel.writestr("one-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("one-1.0.dist-info/RECORD", "")

    ran = Ran(
        folder,
        "npm install --offline --no-update-notifier --install-links ./dep && ls node_modules/dep && "
        f"{sys.executable} -m venv .venv && .venv/bin/pip install --no-index one-1.0-py3-none-any.whl && "
        '.venv/bin/python -c \'import one; print("both are", "there")\'',
    )

    assert "both are there" in ran.text, ran.text
