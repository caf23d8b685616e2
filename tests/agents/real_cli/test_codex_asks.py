"""The genuine codex asks before it runs a command, and hears words while it works."""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.scene import until
from tests.agents.real_cli.test_fork import begins_with
from tests.agents.real_cli.turn import Turn, run

from bullpen.agents import Permission, Reply, process_tree
from bullpen.agents.dialogue import Ask, Tell
from bullpen.approvals import Answer
from bullpen.errors import PermissionRefused
from bullpen.memory import SessionUse
from bullpen.testing.models import ModelRequest, ToolCall
from bullpen.testing.models import Reply as Scripted
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Failed, Notice, TextDelta, ToolFinished

pytestmark = pytest.mark.needs("codex")
YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="write to notes/ instead")
STOP = Answer(verdict="stop", reason="enough")
ADDED = "*** Begin Patch\n*** Add File: {}\n+hello\n*** End Patch\n"


@pytest.fixture
def outside() -> Iterator[Path]:
    """Return a folder that codex's sandbox keeps as it is: it does not do that with /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def command(text: str, **others: Any) -> Scripted:
    return Scripted(tool_calls=(ToolCall(name="exec_command", arguments={"cmd": text, **others}),))


def patch(text: str) -> Scripted:
    return Scripted(tool_calls=(ToolCall(name="apply_patch", arguments=text),))


class Asked(Turn):
    """A turn of codex in which people are asked."""

    def __init__(self, folder: Path, *answers: Answer | Ask) -> None:
        super().__init__("codex", folder)
        self.answers = list(answers)
        self.tell: Tell = lambda _: False

    async def run(
        self,
        *script: Scripted | Callable[[ModelRequest], Scripted],
        permissions: Permission = "ask",
        **options: Any,
    ) -> Reply:
        def on_tell(tell: Tell) -> None:
            self.tell = tell

        return await super().run(*script, permissions=permissions, ask=self._answer, on_tell=on_tell, **options)

    async def _answer(self, asked: ApprovalAsked) -> Answer:
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Answer) else await answer(asked)

    def commands(self) -> list[str]:
        return [asked.command for asked in self.of(ApprovalAsked)]


def test_nothing_runs_before_the_yes_and_it_is_asked_each_time(tmp_path: Path) -> None:
    was_there: list[bool] = []

    async def look_then_yes(_: ApprovalAsked) -> Answer:
        was_there.append((turn.cwd / "a.txt").exists())
        return YES

    turn = Asked(tmp_path, look_then_yes, YES)

    reply = run(turn.run(command("echo x >> a.txt"), command("echo x >> a.txt"), Scripted(text="done")))

    assert reply.text == "done"
    assert was_there == [False]
    assert (turn.cwd / "a.txt").read_text() == "x\nx\n"
    assert turn.commands() == ["/bin/bash -lc 'echo x >> a.txt'"] * 2
    first, *_ = turn.of(ApprovalAsked)
    assert (first.kind, first.tool, first.folder) == ("command", "shell", str(turn.cwd))
    assert [over.is_answered for over in turn.of(ApprovalOver)] == [True, True]
    assert [finished.failed for finished in turn.of(ToolFinished)] == [False, False]
    assert reply.usage.output_tokens == 3 * 22
    assert reply.usage.context_window > 0
    assert reply.started.session_id
    assert (reply.started.model, reply.started.cli_version) == ("gpt-5.5", "0.169.0")
    assert not turn.of(Notice)


def test_the_reason_of_a_no_is_in_the_next_request(tmp_path: Path) -> None:
    turn = Asked(tmp_path, NO)

    reply = run(turn.run(command("touch a.txt"), Scripted(text="I see.")))

    assert reply.text == "I see."
    assert not (turn.cwd / "a.txt").exists()
    assert any("write to notes/ instead" in text for text in turn.requests[1].texts)
    (finished,) = turn.of(ToolFinished)
    assert finished.failed
    assert not turn.of(Notice)


def test_a_no_to_stop_ends_the_turn(tmp_path: Path) -> None:
    turn = Asked(tmp_path, STOP)

    failed = run(turn.fail(command("touch a.txt"), Scripted(text="never")))

    assert failed.kind == "permission_refused"
    assert "enough" in failed.message
    assert len(turn.requests) == 1
    assert not (turn.cwd / "a.txt").exists()


def test_reading_and_edits_in_the_folder_are_free_and_all_else_is_asked(tmp_path: Path, outside: Path) -> None:
    turn = Asked(tmp_path, NO, *[YES] * 4)
    (turn.cwd / "notes.txt").write_text("alpha\n")
    (turn.cwd / "link").symlink_to(outside)
    (turn.cwd / ".git").mkdir()

    run(
        turn.run(
            command("cat notes.txt"),
            command("rg -n alpha . | head -5"),
            patch(ADDED.format("made.txt")),
            patch(ADDED.format("link/not_made.txt")),
            command(f"cat {tmp_path}/home/.codex/config.toml"),
            patch(ADDED.format(outside / "made.txt")),
            patch(ADDED.format(".git/config")),
            command("git status"),
            Scripted(text="done"),
        )
    )

    edits = [asked for asked in turn.of(ApprovalAsked) if asked.kind == "edit"]
    assert edits.pop(0).paths == (str(turn.cwd / "link" / "not_made.txt"),)
    assert [edit.paths for edit in edits] == [(str(outside / "made.txt"),), (str(turn.cwd / ".git" / "config"),)]
    assert edits[0].diff == f"--- /dev/null\n+++ {outside}/made.txt\n+hello"
    assert [asked.command for asked in turn.of(ApprovalAsked) if asked.kind == "command"] == [
        f"/bin/bash -lc 'cat {tmp_path}/home/.codex/config.toml'",
        "/bin/bash -lc 'git status'",
    ]
    assert (turn.cwd / "made.txt").read_text() == "hello\n"
    assert [file.name for file in outside.iterdir()] == ["made.txt"]
    changed = [file for finished in turn.of(ToolFinished) for file in finished.changed_files]
    assert str(turn.cwd / "made.txt") in changed


def test_to_leave_the_sandbox_is_asked_for_with_a_reason(tmp_path: Path, outside: Path) -> None:
    file = outside / "made.txt"
    was_there: list[tuple[str, bool]] = []

    async def answer(asked: ApprovalAsked) -> Answer:
        was_there.append((asked.why, file.exists()))
        return YES

    # Codex may itself ask for more after its sandbox has refused a command, if that has ended soon enough.
    turn = Asked(tmp_path, *[answer] * 3)
    again = command(f"touch {file}", sandbox_permissions="require_escalated", justification="I need that file.")

    run(turn.run(command(f"touch {file}"), again, Scripted(text="done")))

    first, second, *_ = was_there
    assert first == ("", False)
    assert second[0], "it says why"
    assert was_there[-1][0] == "I need that file."
    assert file.exists()


def test_cancelling_while_it_asks_leaves_no_process_and_no_question(tmp_path: Path) -> None:
    async def never(_: ApprovalAsked) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    turn = Asked(tmp_path, never)

    async def cancelled() -> None:
        running = asyncio.ensure_future(turn.run(command("touch a.txt")))
        await until(lambda: running.done() or bool(turn.of(ApprovalAsked)))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(cancelled())

    assert [over.is_answered for over in turn.of(ApprovalOver)] == [False]
    assert [failed.kind for failed in turn.of(Failed)] == ["cancelled"]
    assert not (turn.cwd / "a.txt").exists()
    assert not process_tree.running


def test_settings_stay_as_they_are_and_commands_do_not_see_the_key(tmp_path: Path) -> None:
    turn = Asked(tmp_path, YES, YES)
    codex = turn.home / ".codex"
    (codex / "rules").mkdir(parents=True)
    (turn.cwd / ".codex").mkdir()
    files = {
        codex / "config.toml": '# mine\nmodel_reasoning_effort = "low"\napprovals_reviewer = "auto_review"\n',
        codex / "rules" / "default.rules": 'prefix_rule(pattern=["true"], decision="prompt")\n',
        turn.cwd / ".codex" / "config.toml": 'approval_policy = "never"\n',
    }
    for file, text in files.items():
        file.write_text(text)

    run(turn.run(command("env; touch a.txt"), patch(ADDED.format("made.txt")), command("env"), Scripted(text="done")))

    assert len(turn.commands()) == 2
    assert {file: file.read_text() for file in files} == files
    assert sorted(path.name for path in (codex / "rules").iterdir()) == ["default.rules"]
    assert sorted(path.name for path in (turn.cwd / ".codex").iterdir()) == ["config.toml"]
    assert not any("sk-scripted" in text or "SCRIPTED_API_KEY=" in text for text in turn.requests[-1].texts)


ALLOWS = 'prefix_rule(pattern=["touch"], decision="allow")'
FORBIDS = 'prefix_rule(pattern=["date"], decision="forbidden")'


def test_a_rule_of_the_users_own_that_allows_is_refused_before_anything_runs(tmp_path: Path) -> None:
    turn = Asked(tmp_path)
    rules = turn.home / ".codex" / "rules" / "default.rules"
    rules.parent.mkdir(parents=True)
    rules.write_text(f"{FORBIDS}\n{ALLOWS}\n")

    with pytest.raises(PermissionRefused) as raised:
        run(turn.run(command("touch a.txt"), Scripted(text="done")))

    assert f"a rule in {rules} lets Codex run commands without asking" in str(raised.value)
    assert turn.requests == []


def test_what_a_rule_lets_run_all_the_same_ends_the_turn(tmp_path: Path) -> None:
    turn = Asked(tmp_path)
    rules = turn.home / ".codex" / "rules" / "default.rules"
    rules.parent.mkdir(parents=True)
    # It reads as if it were strict.
    rules.write_text(f"""{FORBIDS}\n{ALLOWS[:-1]}, justification='decision="prompt"')\n""")

    with pytest.raises(PermissionRefused) as raised:
        run(turn.run(command("date"), command("touch a.txt"), Scripted(text="done")))

    assert not turn.of(ApprovalAsked)
    assert any("policy forb" in text for text in turn.requests[1].texts)
    assert "It did this without a yes, so its turn was ended: /bin/bash -lc 'touch a.txt'" in str(raised.value)


def test_words_reach_the_model_in_the_same_turn(tmp_path: Path) -> None:
    async def tell_then_yes(_: ApprovalAsked) -> Answer:
        assert turn.tell("Use British spelling.")
        return YES

    turn = Asked(tmp_path, tell_then_yes)

    reply = run(turn.run(command("touch a.txt"), Scripted(text="Colour.")))

    assert reply.text == "Colour."
    assert "Use British spelling." not in turn.requests[0].texts
    assert "Use British spelling." in turn.requests[1].texts
    assert not turn.tell("too late")
    assert not turn.of(Notice)


def test_words_during_its_last_answer_are_answered(tmp_path: Path) -> None:
    turn = Asked(tmp_path)

    async def told() -> Reply:
        is_told = tmp_path / "told"
        slow = Scripted(text="one two three four five six", chunk_characters=4, wait_for=is_told)
        running = asyncio.ensure_future(turn.run(slow, Scripted(text="And seven.")))
        await until(lambda: running.done() or bool(turn.of(TextDelta)))
        assert turn.tell("What is next?")
        is_told.touch()
        return await running

    reply = run(told())

    # Its first answer is part of the reply if it had ended when the words came. If its turn had, that is said.
    if untold := [notice.text for notice in turn.of(Notice)]:
        assert untold == ["It did not get this in this turn: What is next?"]
    else:
        assert reply.text.endswith("And seven.")
        assert "What is next?" in turn.requests[1].texts


@pytest.mark.parametrize(
    ("first", "second"), [("edit", "ask"), ("ask", "edit"), pytest.param("ask", "ask", marks=pytest.mark.torture)]
)
def test_a_session_continues_in_the_other_way_of_running_it(
    first: Permission, second: Permission, tmp_path: Path
) -> None:
    turn = Asked(tmp_path, YES)

    async def both() -> list[Reply]:
        begun = await turn.run(Scripted(text="I know that."), message="The colour is blue.", permissions=first)
        before = turn.requests[-1]
        use = SessionUse(origin="resumed", id=str(begun.started.session_id))
        script = (command("touch a.txt"), Scripted(text="Blue."))
        resumed = await turn.run(*script, message="Which colour?", session=use, permissions=second)
        assert begins_with(turn.requests[-1].body["input"], before.body["input"])
        return [begun, resumed]

    begun, resumed = run(both())

    assert resumed.text == "Blue."
    assert resumed.started.session_id == begun.started.session_id
    assert [begun.usage.output_tokens, resumed.usage.output_tokens] == [22, 66], "it adds up, as in `codex exec`"
    assert (turn.cwd / "a.txt").exists()
    assert len(turn.commands()) == (second == "ask")
    assert len(list(turn.home.glob(".codex/sessions/*/*/*/*.jsonl"))) == 1


def test_a_fork_is_another_session(tmp_path: Path) -> None:
    turn = Asked(tmp_path)

    async def forked() -> list[Reply]:
        begun = await turn.run(Scripted(text="I know that."), message="The colour is blue.")
        before = turn.requests[-1]
        use = SessionUse(origin="forked", id=str(begun.started.session_id))
        copied = await turn.run(Scripted(text="Blue."), message="Which colour?", session=use)
        assert begins_with(turn.requests[-1].body["input"], before.body["input"])
        return [begun, copied]

    begun, copied = run(forked())

    assert copied.started.session_id not in (None, begun.started.session_id)


@pytest.mark.parametrize("origin", ["resumed", "forked"])
def test_a_session_that_is_gone_is_lost(origin: Any, tmp_path: Path) -> None:
    gone = SessionUse(origin=origin, id="01a1e784-c29a-77f1-8d6f-9f9938915f13")

    assert run(Asked(tmp_path).fail(session=gone)).kind == "session_lost"


@pytest.mark.parametrize(
    ("status", "kind"),
    # The same as without questions, of which test_turns.py tries one.
    [
        (429, "quota"),
        *(
            pytest.param(*one, marks=pytest.mark.torture)
            for one in ((400, "crashed"), (401, "not_signed_in"), (500, "overloaded"))
        ),
    ],
)
def test_errors_of_the_service_have_a_kind(status: int, kind: str, tmp_path: Path) -> None:
    failed = run(Asked(tmp_path).fail(Scripted(error=status)))

    assert failed.kind == kind


def test_a_dropped_connection_is_retried(tmp_path: Path) -> None:
    turn = Asked(tmp_path)
    lost = Scripted(text="lost in the middle", chunk_characters=3, drop_after_chunks=2)

    reply = run(turn.run(lost, Scripted(text="recovered")))

    # What came through before the loss was seen, so it is kept.
    *seen, answer = reply.text.split("\n\n")
    assert answer == "recovered"
    assert "lost i".startswith("".join(seen))
    assert [notice.kind for notice in turn.of(Notice)] == ["retry"]


def test_questions_with_choices_are_questions(tmp_path: Path) -> None:
    questions = [
        {
            "id": name,
            "header": name,
            "question": f"Which {name}?",
            "options": [{"label": label, "description": label} for label in ("red", "blue")],
        }
        for name in ("colour", "shade")
    ]
    turn = Asked(tmp_path, Answer(verdict="yes", text="blue"), Answer(verdict="yes", text="a dark one"))
    ask = ToolCall(name="request_user_input", arguments={"questions": questions})
    (turn.home / ".codex").mkdir(parents=True)
    (turn.home / ".codex" / "config.toml").write_text("[features]\ndefault_mode_request_user_input = true\n")

    run(turn.run(Scripted(tool_calls=(ask,)), Scripted(text="done")))

    assert [(asked.kind, asked.why, asked.choices) for asked in turn.of(ApprovalAsked)] == [
        ("question", "Which colour?", ("red", "blue")),
        ("question", "Which shade?", ("red", "blue")),
    ]
    answered = {"answers": {"colour": {"answers": ["blue"]}, "shade": {"answers": ["a dark one"]}}}
    assert answered in [json.loads(text) for text in turn.requests[-1].texts if text.startswith('{"answers"')]


def test_several_questions_at_once(tmp_path: Path) -> None:
    async def answer(asked: ApprovalAsked) -> Answer:
        await until(lambda: len(turn.commands()) == 2)
        return YES if "b.txt" in asked.command else NO

    turn = Asked(tmp_path, answer, answer)
    calls = [ToolCall(name="exec_command", arguments={"cmd": f"touch {name}"}) for name in ("a.txt", "b.txt")]

    reply = run(turn.run(Scripted(tool_calls=tuple(calls)), Scripted(text="done")))

    assert reply.text == "done"
    assert sorted(turn.commands()) == ["/bin/bash -lc 'touch a.txt'", "/bin/bash -lc 'touch b.txt'"]
    assert [file.name for file in turn.cwd.iterdir()] == ["b.txt"]
    assert any("write to notes/ instead" in text for text in turn.requests[-1].texts)
