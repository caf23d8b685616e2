"""Genuine agents ask in the Agent Client Protocol before they run a command: gemini, qwen, and one of many others."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.turn import Turn, clis, run, write_call

from bullpen.agents import Permission, Reply, process_tree
from bullpen.agents.acp_handshake import Handshake, handshake, in_acp
from bullpen.agents.dialogue import Tell
from bullpen.agents.environment import child_environment
from bullpen.agents.folder_settings import ALL_SETTINGS, settings_in
from bullpen.agents.runner import find_program
from bullpen.approvals import Answer
from bullpen.testing.models import ModelRequest, ModelServer, ToolCall
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.settings import SETTINGS
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Notice, ToolFinished

YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="write to notes/ instead")
STOP = Answer(verdict="stop", reason="enough")
every_cli = pytest.mark.parametrize("cli", ["gemini", "qwen", "opencode"])
OWN_SETTINGS = {
    "gemini": (".gemini/settings.json", ".gemini/policies/auto-saved.toml"),
    "qwen": (".qwen/settings.json",),
    "opencode": ("opencode.json", ".opencode/opencode.json", ".config/opencode/opencode.json"),
}
"""Settings that each of them reads, in the home and in the folder."""
# OpenCode takes half a minute for a turn on a busy machine.
pytestmark = pytest.mark.timeout(300)


def command(cli: str, text: str) -> Scripted:
    name = "bash" if cli == "opencode" else "run_shell_command"
    more: dict[str, Any] = {"is_background": False} if cli == "qwen" else {}
    return Scripted(tool_calls=(ToolCall(name=name, arguments={"command": text, "description": "x", **more}),))


class Asked(Turn):
    """A turn in which people are asked."""

    def __init__(self, cli: str, folder: Path, *answers: Answer | Callable[[], Awaitable[Answer]]) -> None:
        super().__init__(cli, folder)
        self.answers = list(answers)
        self.tell: Tell = lambda _: False
        for name in OWN_SETTINGS[cli]:
            for place in (self.home, self.cwd):
                file = place / name
                file.parent.mkdir(parents=True, exist_ok=True)
                if file.suffix == ".json" and not file.exists():
                    file.write_text("{ }")

    async def run(
        self,
        *script: Scripted | Callable[[ModelRequest], Scripted],
        permissions: Permission = "ask",
        **options: Any,
    ) -> Reply:
        def on_tell(tell: Tell) -> None:
            self.tell = tell

        patience = {"idle_timeout": 120, "total_timeout": 240}
        agreed = {file.mark for file in settings_in(self.cwd, ALL_SETTINGS)}
        given = {"ask": self._answer, "on_tell": on_tell, "agreed": lambda: agreed}
        return await super().run(*script, permissions=permissions, **(given | patience | options))

    async def _answer(self, asked: ApprovalAsked) -> Answer:
        del asked
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Answer) else await answer()

    def settings(self) -> dict[str, bytes]:
        """Return the settings files of the person and the folder."""
        files = [place / name for name in OWN_SETTINGS[self.cli] for place in (self.home, self.cwd)]
        return {str(file): file.read_bytes() for file in files if file.exists()}

    def was_told(self, request: int, text: str) -> bool:
        return any(text in told for told in self.requests[request].texts)


@every_cli
def test_nothing_runs_before_the_yes_and_it_is_asked_each_time(cli: str, tmp_path: Path) -> None:
    was_there: list[bool] = []
    settings: list[dict[str, bytes]] = []

    async def look_then_yes() -> Answer:
        was_there.append((turn.cwd / "a.txt").exists())
        settings.append(turn.settings())
        return YES

    turn = Asked(cli, tmp_path, look_then_yes, YES)
    command_text = "echo x >> a.txt"

    reply = run(turn.run(command(cli, command_text), command(cli, command_text), Scripted(text="done")))

    assert reply.text == "done"
    assert was_there == [False]
    assert (turn.cwd / "a.txt").read_text() == "x\nx\n"
    assert [asked.command for asked in turn.of(ApprovalAsked)] == [command_text] * 2
    first, *_ = turn.of(ApprovalAsked)
    assert (first.kind, first.folder) == ("command", str(turn.cwd))
    assert [over.is_answered for over in turn.of(ApprovalOver)] == [True, True]
    assert [finished.failed for finished in turn.of(ToolFinished)] == [False, False]
    assert not turn.of(Notice)
    assert turn.was_told(0, "You are Max.")
    assert settings == [turn.settings()]


# The reason is in test_scopes.py, too.
@clis(rarely=["gemini", "qwen", "opencode"])
def test_the_reason_of_a_no_reaches_its_model_unless_that_has_answered(cli: str, tmp_path: Path) -> None:
    turn = Asked(cli, tmp_path, NO)

    reply = run(turn.run(command(cli, "touch a.txt"), Scripted(text="I see."), Scripted(text="I see.")))

    assert reply.text == "I see."
    assert not (turn.cwd / "a.txt").exists()
    # Gemini lets its model say something to the refusal: that is its answer.
    assert len(turn.requests) == 2
    assert turn.was_told(1, "write to notes/ instead") == (cli != "gemini")
    assert [finished.failed for finished in turn.of(ToolFinished)] == [True]


@every_cli
def test_edits_in_the_folder_are_free_and_others_are_asked(cli: str, tmp_path: Path) -> None:
    turn = Asked(cli, tmp_path, NO, NO)
    files = [turn.cwd / "made.txt", turn.cwd / ".github" / "x.yml", tmp_path / "outside.txt"]
    calls = [Scripted(tool_calls=(write_call(cli, file),)) for file in files]

    run(turn.run(*calls, *[Scripted(text="done")] * 3))

    assert [file.exists() for file in files] == [True, False, False]
    assert (turn.cwd / "made.txt").read_text() == "made"
    asked = turn.of(ApprovalAsked)
    assert asked[0].paths == (str(files[1]),)
    assert "+made" in asked[0].diff
    # Gemini itself refuses to write outside of its folder.
    assert len(asked) == (1 if cli == "gemini" else 2)


NOT_HARMLESS = (
    'X="$(touch made.txt)" ls',
    "ls $(touch made.txt)",
    "LS_X=`touch made.txt` ls",
    "cat <(touch made.txt)",
    "ls > made.txt",
    "ls; touch made.txt",
    "echo x|tee made.txt",
    "find . -fprint made.txt",
    "find . -exec touch made.txt ;",
    "sort -o made.txt /etc/hostname",
    'echo a | sed "w made.txt"',
    "awk 'BEGIN{system(\"touch made.txt\")}'",
    "git diff --no-index --output=made.txt /etc/hostname /etc/passwd",
    'git -c core.pager="touch made.txt" --paginate log',
    "env touch made.txt",
)
"""Commands that begin like some that only read."""


@pytest.mark.needs("gemini")
def test_commands_that_only_look_harmless_are_asked(tmp_path: Path) -> None:
    # Of the others, test_attacks.py: they end a turn after a no.
    cli = "gemini"
    turn = Asked(cli, tmp_path, *[Answer(verdict="no")] * len(NOT_HARMLESS))

    run(turn.run(*(command(cli, text) for text in NOT_HARMLESS), *[Scripted(text="done")] * 2))

    assert [asked.command for asked in turn.of(ApprovalAsked)] == [*NOT_HARMLESS]
    assert not (turn.cwd / "made.txt").exists()


@clis("qwen", rarely=["gemini", "opencode"])
def test_cancelling_while_it_asks_leaves_nothing(cli: str, tmp_path: Path) -> None:
    async def cancelled() -> None:
        running = asyncio.ensure_future(turn.run(command(cli, "touch a.txt"), Scripted(text="never")))
        await asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    async def wait_for_ever() -> Answer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    asked = asyncio.Event()
    turn = Asked(cli, tmp_path, wait_for_ever)

    run(cancelled())

    assert [over.is_answered for over in turn.of(ApprovalOver)] == [False]
    assert len(turn.requests) == 1
    assert not (turn.cwd / "a.txt").exists()
    assert not process_tree.running


@clis("qwen", rarely=["gemini"])
def test_a_no_to_stop_ends_the_turn(cli: str, tmp_path: Path) -> None:
    turn = Asked(cli, tmp_path, STOP)

    failed = run(turn.fail(command(cli, "touch a.txt"), Scripted(text="never")))

    assert failed.kind == "permission_refused"
    assert "enough" in failed.message
    assert len(turn.requests) == 1
    assert not (turn.cwd / "a.txt").exists()


@pytest.mark.needs("qwen")
def test_qwen_hears_words_while_it_works(tmp_path: Path) -> None:
    async def tell_then_yes() -> Answer:
        assert turn.tell("look at the tests, too")
        return YES

    turn = Asked("qwen", tmp_path, tell_then_yes)
    work = [command("qwen", "touch a.txt"), Scripted(text="done")]

    run(turn.run(*work, *[Scripted(text="done, too")] * 2))

    assert turn.was_told(1, "look at the tests, too")


@clis("qwen", rarely=["gemini", "opencode"])
def test_a_handshake_asks_no_model(cli: str, tmp_path: Path) -> None:
    turn = Asked(cli, tmp_path)
    spec = in_acp(turn.spec)
    assert spec is not None

    async def shaken() -> Handshake:
        async with ModelServer() as models:
            settings = SETTINGS[cli](models.base_url, turn.home)
            environment = child_environment(spec, settings.env)
            path = find_program(spec.program, environment, turn.cwd)
            assert path is not None
            turn.requests = models.requests
            return await handshake(spec, path, cwd=turn.cwd, environment=environment)

    done = run(shaken())

    assert done.is_good, done.sentence
    assert done.sentence.startswith("It speaks the Agent Client Protocol, version 1, as ")
    assert "; it can load sessions; " in done.sentence
    assert turn.requests == []
    assert not process_tree.running
