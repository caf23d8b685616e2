"""A repository whose settings are hostile, and the genuine CLIs in it: nothing runs that nobody has agreed to."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.hostile_folders import Traps, hostile_files, random_hostile_files, write_files
from tests.agents.real_cli.turn import Turn, clis, run, write_call

from bullpen.agents.folder_settings import reading
from bullpen.approvals import Answer
from bullpen.errors import PermissionRefused
from bullpen.permissions import Permission
from bullpen.testing.models import Reply, ToolCall
from bullpen.turn_events import ApprovalAsked

SHELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": ("Bash", {"description": "x"}),
    "codex": ("exec_command", {}),
    "gemini": ("run_shell_command", {}),
    "qwen": ("run_shell_command", {"is_background": False}),
    "copilot": ("bash", {"description": "x"}),
    "opencode": ("bash", {"description": "x"}),
    "pi": ("bash", {}),
    "vibe": ("bash", {}),
}
STARTED = clis("claude", "codex", "gemini", "qwen", rarely=())
RANDOM_FOLDERS = 8
RESTRICTED = pytest.mark.parametrize("permission", ["read-only", "edit"])


class Scene:
    """A turn of a CLI in a hostile folder, whose model wants to run a command and to write a file."""

    def __init__(self, cli: str, folder: Path, files: dict[str, str] | None = None) -> None:
        self.turn = Turn(cli, folder)
        self.traps = Traps(folder / "witnesses")
        self.made = self.turn.cwd / "made.txt"
        write_files(self.turn.cwd, hostile_files(cli, self.traps) if files is None else files)

    def play(self, permission: Permission, **options: Any) -> None:
        name, arguments = SHELLS[self.turn.cli]
        command = self.traps.command("shell")
        key = "cmd" if self.turn.cli == "codex" else "command"
        shell = ToolCall(name=name, arguments={key: command, **arguments})
        script = [Reply(tool_calls=(shell,)), Reply(tool_calls=(write_call(self.turn.cli, self.made),))]
        run(self.turn.run(*script, *[Reply(text="done")] * 4, permissions=permission, **options))


def started_without(cli: str, traps: Traps) -> dict[str, str]:
    """Return hostile files that the CLI can be started without."""
    files = hostile_files(cli, traps)
    read = (".gemini/policies", ".gemini/.env", ".env") if cli == "gemini" else ()
    return {name: text for name, text in files.items() if not name.startswith(read)}


@STARTED
@RESTRICTED
def test_nothing_of_a_hostile_folder_runs_and_the_permissions_hold(
    cli: str, permission: Permission, tmp_path: Path
) -> None:
    scene = Scene(cli, tmp_path, files={})
    write_files(scene.turn.cwd, started_without(cli, scene.traps))

    scene.play(permission)

    # With edit, Codex may write in the folder for temporary files, and so may the model.
    assert scene.traps.ran == (["shell"] if (cli, permission) == ("codex", "edit") else [])
    assert scene.made.exists() == (permission == "edit")


@STARTED
def test_people_are_asked_in_a_hostile_folder(cli: str, tmp_path: Path) -> None:
    scene = Scene(cli, tmp_path)

    async def no(_: ApprovalAsked) -> Answer:
        return Answer(verdict="no")

    scene.play("ask", ask=no)

    assert scene.traps.ran == []
    assert [scene.traps.command("shell") in asked.command for asked in scene.turn.of(ApprovalAsked)][:1] == [True]


@clis("codex", "qwen", "pi", rarely=("gemini",))
def test_with_full_permissions_only_the_model_runs_something(cli: str, tmp_path: Path) -> None:
    scene = Scene(cli, tmp_path, files={})
    files = started_without(cli, scene.traps)
    write_files(scene.turn.cwd, {name: text for name, text in files.items() if name != ".pi/settings.json"})

    scene.play("full")

    assert scene.traps.ran == ["shell"]


@clis("gemini", "copilot", "opencode", "pi", rarely=())
def test_a_cli_that_cannot_leave_settings_out_is_not_started(cli: str, tmp_path: Path) -> None:
    scene = Scene(cli, tmp_path)

    failed = run(scene.turn.fail(Reply(text="done")))

    assert failed.kind == "permission_refused"
    assert failed.message.startswith(f"{scene.turn.spec.program} was not started: it would read ")
    assert (scene.traps.ran, scene.turn.requests) == ([], [])


@clis("qwen", rarely=("codex",))
def test_with_an_agreement_they_are_read(cli: str, tmp_path: Path) -> None:
    scene = Scene(cli, tmp_path)
    agreed = reading(scene.turn.spec.folder_settings, "full", scene.turn.cwd).marks

    scene.play("full", agreed=lambda: agreed)

    server = {"codex": "codex-server", "qwen": "qwen-server"}[cli]
    assert {"shell", server} <= {*scene.traps.ran}


def test_vibe_is_not_started_where_it_might_trust_the_folder(tmp_path: Path) -> None:
    if shutil.which("vibe-acp") is None:
        pytest.skip("VIBE IS NOT INSTALLED: it comes from PyPI as mistral-vibe")
    scene = Scene("vibe", tmp_path)

    assert run(scene.turn.fail(Reply(text="done"), permissions="ask")).kind == "permission_refused"
    assert scene.traps.ran == []


@pytest.mark.torture
@pytest.mark.timeout(900)
@clis("claude", "codex", "gemini", "qwen", "copilot", "opencode", "pi", rarely=())
def test_random_hostile_folders(cli: str, tmp_path: Path) -> None:
    for seed in range(RANDOM_FOLDERS):
        scene = Scene(cli, tmp_path / str(seed), files={})
        write_files(scene.turn.cwd, random_hostile_files(seed, cli, scene.traps))
        with suppress(PermissionRefused):
            scene.play("read-only")
        assert (seed, scene.traps.ran) == (seed, [])
