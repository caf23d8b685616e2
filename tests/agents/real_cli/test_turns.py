"""One turn with each genuine CLI, driven through run_turn against scripted models: no account, no network."""

import asyncio
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.real_cli import install
from tests.agents.real_cli.scene import until
from tests.agents.real_cli.turn import CLIS, MODELS, Turn, clis, every_cli, run, write_call

from bullpen.agents import Permission, Reply, run_turn
from bullpen.agents.dialogue import nobody
from bullpen.approvals import Answer
from bullpen.context import AssemblerInput
from bullpen.doctor import examine
from bullpen.errors import AgentFailed, AgentNotSignedIn
from bullpen.testing.clock import ManualClock
from bullpen.testing.models import ModelRequest, ModelServer, ToolCall
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.settings import GEMINI_SETTINGS, QWEN_SETTINGS, SETTINGS, gemini_settings
from bullpen.turn_events import (
    ApprovalAsked,
    Failed,
    FailureKind,
    Notice,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
)

LARGE = "0123456789 你好 😀 {x} %s \\1\n    indented\n\n" * 6000
"""About 300 KB."""


def processes_in(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and entry.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                if folder in [(entry / "cwd").resolve(), *(entry / "cwd").resolve().parents]:
                    found.append(int(entry.name))
    return found


def names_of(pids: list[int]) -> list[str]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found.append(Path("/proc", str(pid), "comm").read_text().strip())
    return found


@every_cli
def test_a_large_prompt_and_system_text_arrive_byte_exact_and_in_their_role(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)
    answer = '  {"json": 1}\n\n\tTab 你好 😀\n{\nend'

    reply = run(turn.run(Scripted(text=answer, chunk_characters=3), message=LARGE + "END", system=LARGE + "SYSTEM"))

    assert reply.text == answer
    message, system = (LARGE + "END").strip(), (LARGE + "SYSTEM").strip()
    request = turn.requests[-1]
    match cli:
        case "claude":
            # Behind Claude Code's own system prompt.
            assert any(text.endswith(f"\n{system}") for text in texts_of_role(request, "system"))
            assert f"[MESSAGE]\n{message}" in texts_of_role(request, "user")
        case "codex":
            assert f"[SYSTEM]\n{system}\n\n[MESSAGE]\n{message}" in texts_of_role(request, "user")
        case "gemini":
            assert f"Instructions:\n{system}\n\nYour task:\n{message}" in texts_of_role(request, "user")
        case "qwen":
            # It puts an empty line behind whatever it reads.
            assert f"Instructions:\n{system}\n\nYour task:\n{message}\n\n" in texts_of_role(request, "user")
    assert reply.usage.output_tokens == 22
    assert reply.usage.cached_tokens == 11
    assert reply.usage.input_tokens == (122 if cli == "claude" else 111)
    assert (reply.usage.cost_usd is not None) == (cli == "claude")
    assert reply.started.session_id


def texts_of_role(request: ModelRequest, role: str) -> list[str]:
    """Return every text of a request that stands in a role, whichever vendor's names it uses."""
    body = request.body
    parts = [*body.get("messages", ()), *body.get("input", ()), *body.get("contents", ())]
    found = [text for part in parts if part.get("role") == role for text in strings(part)]
    if role == "system":
        found += list(strings(body.get("system", [])))
    return found


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


@every_cli
@pytest.mark.parametrize("permissions", ["read-only", "edit"])
def test_a_tool_writes_under_edit_and_not_under_read_only(cli: str, permissions: Permission, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)
    file = turn.cwd / "made.txt"

    reply = run(turn.run(Scripted(tool_calls=(write_call(cli, file),)), Scripted(text="done"), permissions=permissions))

    assert reply.text == "done"
    assert file.exists() == (permissions == "edit")
    if permissions == "read-only" and cli == "codex":
        # Codex runs the command in a sandbox, tells the model how it failed, and tells us nothing.
        assert any("Read-only file system" in text for text in turn.requests[-1].texts)
    else:
        (finished,) = turn.of(ToolFinished)
        assert [started.id for started in turn.of(ToolStarted)] == [finished.id]
        assert finished.failed == (permissions == "read-only")


ERRORS: list[tuple[int, FailureKind]] = [
    (400, "crashed"),
    (401, "not_signed_in"),
    (403, "not_signed_in"),
    (429, "quota"),
    (500, "overloaded"),
    (529, "overloaded"),
]


def is_usual(cli: str, status: int) -> bool:
    """Return whether it is always tried: what each CLI makes of 401 and 429 is also in tests/agents/recordings."""
    return cli == "claude" or (cli, status) in (("codex", 500), ("gemini", 500), ("qwen", 400))


@pytest.mark.parametrize(
    ("cli", "status", "kind"),
    [
        pytest.param(
            cli, status, kind, id=f"{cli}-{status}", marks=() if is_usual(cli, status) else pytest.mark.torture
        )
        for cli in CLIS
        for status, kind in ERRORS
    ],
)
def test_errors_of_the_service_have_a_kind(
    cli: str, status: int, kind: FailureKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Gemini waits for five seconds before it tries again.
    monkeypatch.setitem(GEMINI_SETTINGS, "general", {"enableAutoUpdate": False, "maxAttempts": 1})
    if cli == "qwen" and status >= 500:
        pytest.skip(
            "qwen asks seven times, for more than a minute; tests/agents/recordings/qwen/err500 tells how it ends"
        )
    # So it does when there is a limit, but then it can be told how long to wait.
    retry_after = 1 if cli == "qwen" else None

    event = run(Turn(cli, tmp_path).fail(Scripted(error=status, retry_after_seconds=retry_after)))

    assert event.kind == kind
    assert event.hint


@clis("claude", rarely=["codex", "gemini", "qwen"])
def test_thinking_is_not_the_answer(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)

    reply = run(turn.run(Scripted(thinking="deep thoughts", text="answer")))

    assert reply.text == "answer"
    assert "".join(event.text for event in turn.of(TextDelta)) == "answer"
    # Gemini does not tell its thoughts, and codex only if its settings say so.
    if cli in ("claude", "qwen"):
        assert "".join(event.text for event in turn.of(Thinking)) == "deep thoughts"


@clis("claude", rarely=["codex", "gemini", "qwen"])
def test_a_huge_answer_comes_back_whole(cli: str, tmp_path: Path) -> None:
    # Qwen exits before a full pipe has drained: of an answer over 1 MB the end is lost, and the turn fails.
    lines = 20_000 if cli == "qwen" else 150_000
    answer = "".join(f"line {number} 你好\n" for number in range(lines)).strip()

    reply = run(Turn(cli, tmp_path).run(Scripted(text=answer, chunk_characters=20_000)))

    assert reply.text == answer


@clis("codex", rarely=["claude", "gemini", "qwen"])
def test_a_dropped_connection_is_retried_or_reported(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)
    script = (Scripted(text="lost in the middle", chunk_characters=3, drop_after_chunks=2), Scripted(text="recovered"))

    if cli == "gemini":
        assert run(turn.fail(*script)).kind == "overloaded"
    elif cli == "qwen":
        # It asks the model to go on where it broke off.
        assert run(turn.run(*script)).text == "lost irecovered"
    else:
        assert run(turn.run(*script)).text == "recovered"
    if cli == "codex":
        assert any("Reconnecting" in notice.text for notice in turn.of(Notice))


@clis("claude", "codex", rarely=["gemini", "qwen"])
def test_cancelling_leaves_no_process(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)
    tool = {
        # Claude and qwen refuse to do nothing but sleep.
        "claude": ToolCall(name="Bash", arguments={"command": "true; sleep 300", "description": "x"}),
        "codex": ToolCall(name="exec_command", arguments={"cmd": "sleep 300"}),
        "gemini": ToolCall(name="run_shell_command", arguments={"command": "sleep 300"}),
        "qwen": ToolCall(name="run_shell_command", arguments={"command": "true; sleep 300", "is_background": False}),
    }[cli]
    permissions: Permission = "read-only" if cli == "codex" else "full"
    env = {"IS_SANDBOX": "1"}

    async def cancel_in_a_tool() -> None:
        async with ModelServer() as models:
            models.script(Scripted(tool_calls=(tool,)))
            settings = SETTINGS[cli](models.base_url, turn.home)
            output = turn.spec.assembler().assemble(AssemblerInput(current_message="x"))
            task = asyncio.ensure_future(
                run_turn(
                    turn.spec,
                    output,
                    emit=turn.events.append,
                    cwd=turn.cwd,
                    permissions=permissions,
                    model=MODELS[cli],
                    arguments=settings.arguments,
                    env={**settings.env, **env},
                )
            )
            await until(lambda: task.done() or "sleep" in names_of(processes_in(tmp_path)))
            assert not task.done(), turn.events
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(cancel_in_a_tool())

    assert turn.events[-1] == Failed(kind="cancelled", message="The turn was cancelled.")
    assert processes_in(tmp_path) == []


@every_cli
def test_without_credentials_it_says_so(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)

    async def signed_out() -> None:
        async with ModelServer() as models:
            settings = SETTINGS[cli](models.base_url, turn.home)
            keys = ("ANTHROPIC_API_KEY", "SCRIPTED_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY")
            env = {name: value for name, value in settings.env.items() if name not in keys}
            output = turn.spec.assembler().assemble(AssemblerInput(current_message="x"))
            await run_turn(
                turn.spec,
                output,
                emit=turn.events.append,
                cwd=turn.cwd,
                model=MODELS[cli],
                arguments=settings.arguments,
                env=env,
            )

    with pytest.raises(AgentNotSignedIn):
        run(signed_out())


@pytest.mark.needs("codex")
def test_commands_that_codex_runs_do_not_see_its_key(tmp_path: Path) -> None:
    turn = Turn("codex", tmp_path)
    look = ToolCall(name="exec_command", arguments={"cmd": "env"})

    run(turn.run(Scripted(tool_calls=(look,)), Scripted(text="done")))

    output = turn.of(ToolFinished)[0].output
    assert "PATH=" in output
    assert "sk-scripted" not in output


@pytest.mark.needs("claude")
def test_claude_puts_an_answer_together_that_ran_out_of_tokens(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)

    reply = run(turn.run(Scripted(text="first half, ", stop_reason="max_tokens"), Scripted(text="second half")))

    assert reply.text == "first half, second half"


@pytest.mark.needs("claude")
@pytest.mark.parametrize("permissions", [pytest.param("read-only", marks=pytest.mark.torture), "edit"])
def test_claude_runs_nothing_that_the_folder_names(permissions: Permission, tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hook-ran"}]}
    settings = {
        "hooks": {"SessionStart": [hook], "UserPromptSubmit": [hook]},
        "apiKeyHelper": f"touch {tmp_path}/helper-ran; echo key",
        "enableAllProjectMcpServers": True,
    }
    (turn.cwd / ".claude").mkdir()
    (turn.cwd / ".claude" / "settings.json").write_text(json.dumps(settings))
    server = {"command": "touch", "args": [f"{tmp_path}/server-ran"]}
    (turn.cwd / ".mcp.json").write_text(json.dumps({"mcpServers": {"x": server}}))

    run(turn.run(Scripted(text="ok"), permissions=permissions))

    assert list(tmp_path.glob("*-ran")) == []


@pytest.mark.needs("gemini")
def test_gemini_refuses_a_folder_it_does_not_trust(tmp_path: Path) -> None:
    turn = Turn("gemini", tmp_path)

    async def untrusted() -> Reply:
        async with ModelServer() as models:
            settings = gemini_settings(models.base_url, turn.home)
            env = {name: value for name, value in settings.env.items() if name != "GEMINI_CLI_TRUST_WORKSPACE"}
            output = turn.spec.assembler().assemble(AssemblerInput(current_message="x"))
            return await run_turn(
                turn.spec, output, emit=turn.events.append, cwd=turn.cwd, env=env, model=MODELS["gemini"]
            )

    with pytest.raises(AgentFailed) as raised:
        run(untrusted())
    assert raised.value.event.kind == "permission_refused"


@pytest.mark.needs("qwen")
def test_qwen_edits_nothing_under_read_only_even_if_its_settings_allow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = Turn("qwen", tmp_path)
    file = turn.cwd / "made.txt"
    monkeypatch.setitem(QWEN_SETTINGS, "permissions", {"allow": ["write_file", "edit"]})

    run(turn.run(Scripted(tool_calls=(write_call("qwen", file),)), Scripted(text="done")))

    assert [finished.failed for finished in turn.of(ToolFinished)] == [True]
    assert not file.exists()


@pytest.mark.needs("qwen")
def test_qwen_calls_no_other_agent_under_edit(tmp_path: Path) -> None:
    turn = Turn("qwen", tmp_path)
    call = ToolCall(name="agent", arguments={"description": "x", "prompt": "x", "subagent_type": "codex"})

    run(turn.run(Scripted(tool_calls=(call,)), Scripted(text="done"), permissions="edit"))

    assert [finished.failed for finished in turn.of(ToolFinished)] == [True]


@every_cli
def test_the_doctor_finds_it_ready(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)
    keys = {"ANTHROPIC_API_KEY": "x", "CODEX_API_KEY": "x", "GEMINI_API_KEY": "x", "OPENAI_API_KEY": "x"}

    finding = run(examine(turn.spec, cwd=turn.cwd, env={**keys, "HOME": str(turn.cwd)}))

    assert finding.version == install.versions()[cli]
    assert finding.ready


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_the_doctor_believes_the_cli_that_nobody_is_signed_in(cli: str, tmp_path: Path) -> None:
    turn = Turn(cli, tmp_path)

    finding = run(examine(turn.spec, cwd=turn.cwd, env={"HOME": str(turn.cwd)}))

    assert finding.signed_in is False
    assert not finding.ready


@clis("claude", "codex", "gemini", "qwen", rarely=())
@pytest.mark.parametrize("permissions", ["edit", "ask"])
def test_where_nobody_listens_a_turn_ends(
    cli: str, permissions: Permission, tmp_path: Path, clock: ManualClock
) -> None:
    """Codex would wait for the network for ever; the others give up by themselves."""
    turn = Turn(cli, tmp_path)
    settings = SETTINGS[cli]("http://127.0.0.1:9", turn.home)
    output = turn.spec.assembler().assemble(AssemblerInput(current_message="hello"))

    async def no(_: ApprovalAsked) -> Answer:
        return Answer(verdict="no")

    async def lost() -> Failed:
        running = run_turn(
            turn.spec,
            output,
            emit=turn.events.append,
            cwd=turn.cwd,
            permissions=permissions,
            arguments=settings.arguments,
            env=settings.env,
            model=MODELS.get(cli),
            ask=no if permissions == "ask" else nobody,
        )
        failing = asyncio.ensure_future(running)
        while cli == "codex" and not any(notice.attempts for notice in turn.of(Notice)):
            await asyncio.sleep(0.02)
        clock.advance(185)
        with pytest.raises(AgentFailed) as raised:
            await failing
        return raised.value.event

    failed = run(lost())

    assert failed.kind == "overloaded"
    assert ("It could not reach its server for 3 min" in failed.message) == (cli == "codex")
