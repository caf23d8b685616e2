"""One turn with each of the other genuine CLIs: what differs between them is data, so what is tried is the same."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.scene import SECRET, Scene, text_of, until
from tests.agents.real_cli.test_turns import LARGE, names_of, processes_in, texts_of_role
from tests.agents.real_cli.trials import command_calls
from tests.agents.real_cli.turn import Turn, clis, run, write_call

from bullpen.agents import Permission, agent_spec
from bullpen.doctor import examine
from bullpen.rehearsal import rehearse
from bullpen.team.file import load_team
from bullpen.testing.models import Reply as Scripted
from bullpen.turn_events import Failed, Notice, TextDelta, Thinking, ToolFinished

CLIS = ("opencode", "pi", "copilot", "vibe")
every_cli = pytest.mark.parametrize("cli", CLIS)
OTHER_MODELS = {
    "opencode": ("scripted/m2", "m2"),
    "pi": ("scripted/m2", "m2"),
    "copilot": ("m2", "m2"),
    "vibe": ("m2", "m2"),
}
"""A model as a team file names it, and as it is asked for."""
PATIENCE: dict[str, Any] = {"idle_timeout": 120, "total_timeout": 240}
# They take half a minute for a turn on a busy machine.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def is_installed(request: pytest.FixtureRequest) -> None:
    program = agent_spec(request.node.callspec.params["cli"]).program
    if shutil.which(program) is None:
        pytest.skip(f"{program.upper()} IS NOT INSTALLED, AND NOT TRIED: see tests/agents/real_cli/install.py")


@every_cli
def test_a_large_prompt_arrives_byte_exact_with_the_model_that_was_chosen(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)
    answer = '  {"json": 1}\n\n\tTab 你好 😀\n{\nend'
    name, asked_for = OTHER_MODELS[cli]
    script = Scripted(thinking="deep", text=answer, chunk_characters=3)

    reply = run(turn.run(script, message=LARGE + "END", system=LARGE + "SYSTEM", model=name, **PATIENCE))

    assert reply.text == answer
    message, system = (LARGE + "END").strip(), (LARGE + "SYSTEM").strip()
    # Vibe asks for a title afterwards.
    request = turn.requests[0]
    given = f"Instructions:\n{system}\n\nYour task:\n{message}"
    assert any(given in text for text in texts_of_role(request, "user"))
    assert request.body["model"] == asked_for
    assert "".join(event.text for event in turn.of(TextDelta)) == answer
    assert "".join(event.text for event in turn.of(Thinking)) in ("deep", "")
    if turn.spec.reports != "nothing":
        assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens) == (111, 22, 11)
    assert reply.started.session_id
    assert not turn.of(Notice)


@every_cli
# The rehearsal, too, sees that nothing is written under read-only.
@pytest.mark.parametrize("permissions", [pytest.param("read-only", marks=pytest.mark.torture), "edit"])
def test_a_tool_writes_under_edit_in_the_folder_and_no_command_runs(
    cli: str, permissions: Permission, tmp_path: Path
) -> None:
    turn = Turn(cli, tmp_path)
    files = [turn.cwd / "made.txt", tmp_path / "outside.txt", turn.cwd / "by-command.txt"]
    writes = [Scripted(tool_calls=(write_call(cli, file),)) for file in files[:2]]

    run(
        turn.run(
            *[*writes, command_calls(cli, ["touch by-command.txt"])],
            *[Scripted(text="done")] * 4,
            permissions=permissions,
            **PATIENCE,
        )
    )

    assert [file.exists() for file in files] == [permissions == "edit", False, False]
    assert next(finished.failed for finished in turn.of(ToolFinished)) == (permissions == "read-only")


@pytest.mark.parametrize("cli", ["copilot", "pi"])
def test_what_decides_what_runs_is_not_edited(cli: str, tmp_path: Path) -> None:
    # The project itself may be in a hidden folder.
    turn = Turn(cli, tmp_path / ".hidden")
    hook = turn.cwd / ".git" / "hooks"
    hook.mkdir(parents=True)
    (turn.cwd / "link").symlink_to(hook)
    (turn.cwd / "nothing").symlink_to(tmp_path / "outside.txt")
    names = [".git/hooks/pre-commit", "link/pre-push", ".envrc", "team.toml", "nothing", "made.txt"]
    writes = [Scripted(tool_calls=(write_call(cli, turn.cwd / name),)) for name in names]

    run(turn.run(*writes, Scripted(text="done"), permissions="edit", **PATIENCE))

    assert [finished.failed for finished in turn.of(ToolFinished)] == [*[True] * 5, False]
    assert not any((turn.cwd / name).exists() for name in names[:-1])
    assert list(hook.iterdir()) == []


@clis("pi", "vibe", rarely=["opencode", "copilot"])
def test_with_full_permissions_commands_run(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)
    script = (command_calls(cli, ["touch made.txt; echo seen"]), Scripted(text="done"))

    reply = run(turn.run(*script, permissions="full", **PATIENCE))

    assert reply.text == "done"
    assert (turn.cwd / "made.txt").exists()
    (finished,) = turn.of(ToolFinished)
    assert "seen" in finished.output


@clis("pi", "vibe", rarely=["opencode", "copilot"])
def test_an_error_of_the_service_is_told(cli: str, tmp_path: Path) -> None:
    event = run(Turn(cli, tmp_path).fail(*[Scripted(error=401)] * 4, **PATIENCE))

    # Copilot and Vibe tell only what they think that it means.
    assert "scripted error" in event.message or cli in ("copilot", "vibe")
    # OpenCode passes on what the service says, and not its status.
    assert event.kind == ("crashed" if cli == "opencode" else "not_signed_in")


@clis("opencode", "vibe", rarely=["pi", "copilot"])
def test_cancelling_leaves_no_process(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)

    async def cancel_in_a_command() -> None:
        work = turn.run(command_calls(cli, ["true; sleep 300"]), permissions="full", **PATIENCE)
        task = asyncio.ensure_future(work)
        await until(lambda: task.done() or "sleep" in names_of(processes_in(tmp_path)))
        assert not task.done(), turn.events
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancel_in_a_command())

    assert isinstance(turn.events[-1], Failed)
    assert turn.events[-1].kind == "cancelled"
    assert processes_in(tmp_path) == []


@every_cli
def test_the_doctor_finds_it_and_it_is_rehearsed(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)
    (turn.cwd / "team.toml").write_text(
        f'lead = "a"\n[[member]]\nname = "kim"\n[[member]]\nname = "a"\nagent = "{cli}"\n', encoding="utf-8"
    )

    finding = run(examine(turn.spec, cwd=turn.cwd, env={"HOME": str(turn.cwd)}))

    assert finding.version_tested

    async def rehearsed() -> list[str]:
        loaded = load_team(turn.cwd / "team.toml")
        return [check.text async for result in rehearse(loaded) for check in result.checks if not check.passed]

    assert run(rehearsed()) == []


@clis("pi", rarely=["copilot"])
def test_it_continues_its_session_exactly_and_begins_another_if_that_is_gone(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def talk() -> tuple[list[Any], list[Any], list[Any]]:
        read = Scripted(text="I read it.", tool_calls=(scene.read_secret(),))
        conversation, first = await scene.ask(None, "What is in the file?", read, Scripted(text="A secret."))
        _, second = await scene.ask(conversation, "And now?", Scripted(text="Still."))
        scene.session_file.unlink()
        _, third = await scene.ask(conversation, "Again?", Scripted(text="Again."))
        return first, second, third

    first, second, third = run(talk())

    assert scene.origins() == ["new", "resumed", "rebuilt"]
    assert second[: len(first)] == first
    assert SECRET in text_of(second)
    assert "What is in the file?" not in text_of(second[len(first) :])
    # Without its session it is told what was said, but no longer knows what it read.
    assert "What is in the file?" in text_of(third)
    assert SECRET not in text_of(third)
