"""Claude Code with permissions = "ask", and words to it while it works: the genuine CLI with a scripted model."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agents.real_cli.scene import until
from tests.agents.real_cli.test_turns import processes_in
from tests.agents.real_cli.turn import Turn, run

from bullpen.agents import Permission, Reply
from bullpen.agents.dialogue import Ask, Tell
from bullpen.approvals import Answer
from bullpen.errors import AgentFailed
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.models import ToolCall
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Finished, Started, ToolFinished, Usage

pytestmark = pytest.mark.needs("claude")
YES = Answer(verdict="yes")
DONE = Scripted(text="done")


def shell(command: str) -> Scripted:
    return Scripted(tool_calls=(ToolCall(name="Bash", arguments={"command": command, "description": "x"}),))


def call(name: str, **arguments: object) -> Scripted:
    return Scripted(tool_calls=(ToolCall(name=name, arguments=arguments),))


def always(answer: Answer) -> Ask:
    async def ask(_: ApprovalAsked) -> Answer:
        return answer

    return ask


async def never(_: ApprovalAsked) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


def asked_in(turn: Turn, *script: Scripted, ask: Ask) -> Reply:
    return run(turn.run(*script, permissions="ask", ask=ask))


def model_heard(turn: Turn) -> str:
    """Return what stands in the model's last request."""
    return "\n".join(turn.requests[-1].texts)


def test_nothing_runs_before_the_yes_and_it_is_asked_again_the_next_time(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    file = turn.cwd / "ran.txt"
    before: list[str] = []

    async def ask(question: ApprovalAsked) -> Answer:
        before.append(file.read_text() if file.exists() else "")
        return YES

    command = "python3 -c \"open('ran.txt', 'a').write('x')\""
    reply = asked_in(turn, shell(command), shell(command), DONE, ask=ask)

    assert reply.text == "done"
    assert before == ["", "x"]
    assert file.read_text() == "xx"
    questions = turn.of(ApprovalAsked)
    assert [(asked.kind, asked.tool, asked.command, asked.folder) for asked in questions] == [
        ("command", "Bash", command, str(turn.cwd))
    ] * 2
    assert [over.is_answered for over in turn.of(ApprovalOver)] == [True, True]


def test_another_command_runs_instead(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)

    asked_in(turn, shell("touch theirs"), DONE, ask=always(Answer(verdict="yes", command="touch ours")))

    assert [path.name for path in turn.cwd.iterdir()] == ["ours"]


def test_the_reason_of_a_no_is_in_the_next_request(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    answer = Answer(verdict="no", reason="The disk is full: use /srv.")

    reply = asked_in(turn, shell("touch made"), DONE, ask=always(answer))

    assert reply.text == "done"
    assert "The disk is full: use /srv." in model_heard(turn)
    assert list(turn.cwd.iterdir()) == []


def test_a_stop_ends_the_turn(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)

    with pytest.raises(AgentFailed) as raised:
        asked_in(turn, shell("touch made"), DONE, ask=always(Answer(verdict="stop", reason="not here")))

    assert raised.value.event.message == "A person stopped the turn: not here"
    assert len(turn.requests) == 1
    assert list(turn.cwd.iterdir()) == []


def test_reading_and_editing_in_the_folder_is_not_asked_and_all_else_is(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    (turn.cwd / "a.txt").write_text("alpha")
    (turn.cwd / "sub").mkdir()
    outside = tmp_path / "outside.txt"
    outside.write_text("alpha")
    inside = str(turn.cwd / "a.txt")
    script = [
        call("Read", file_path=inside),
        call("Edit", file_path=inside, old_string="alpha", new_string="beta"),
        call("Write", file_path=str(turn.cwd / "new.txt"), content="new"),
        shell("ls"),
        shell("grep -r beta ."),
        *(shell(command) for command in ("rm a.txt", "touch t.txt", "mv a.txt b.txt", "cat /etc/passwd")),
        call("Read", file_path=str(outside)),
        call("Write", file_path=str(tmp_path / "new.txt"), content="new\n"),
        call("Write", file_path=str(turn.cwd / ".claude" / "settings.json"), content="{}"),
        call("WebFetch", url="http://127.0.0.1:9/", prompt="x"),
        call("WebSearch", query="anything"),
    ]

    asked_in(turn, *script, DONE, ask=always(Answer(verdict="no")))

    questions = turn.of(ApprovalAsked)
    assert [(asked.kind, asked.tool) for asked in questions] == [
        *[("command", "Bash")] * 4,
        ("tool", "Read"),
        *[("edit", "Write")] * 2,
        ("network", "WebFetch"),
        ("network", "WebSearch"),
    ]
    assert questions[5].diff == f"--- {tmp_path}/new.txt\n+++ {tmp_path}/new.txt\n@@ @@\n+new\n"
    assert questions[5].paths == (f"{tmp_path}/new.txt",)
    assert questions[7].details == {"url": "http://127.0.0.1:9/", "prompt": "x"}
    assert [finished.failed for finished in turn.of(ToolFinished)] == [False] * 5 + [True] * 9
    assert sorted(path.name for path in turn.cwd.iterdir()) == ["a.txt", "new.txt", "sub"]
    assert (turn.cwd / "a.txt").read_text() == "beta"


def test_files_that_decide_what_agents_may_do_are_asked_about(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    names = (".qwen/settings.json", "sub/.github/workflows/x.yml", "opencode.json", "team.toml")
    files = [str(turn.cwd / name) for name in names]
    asked: list[str] = []

    async def ask(question: ApprovalAsked) -> Answer:
        asked.extend(question.paths)
        return Answer(verdict="no", reason="Not that.")

    asked_in(turn, *(call("Write", file_path=file, content="{}") for file in files), DONE, ask=ask)

    assert asked == files
    assert list(turn.cwd.iterdir()) == []


def test_its_own_questions_are_answered(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    questions = [
        {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False},
        {"question": "And why?", "header": "Why", "options": options, "multiSelect": True},
    ]
    answers = {"Which colour?": "Blue", "And why?": "It is cold, and I like that."}

    async def ask(question: ApprovalAsked) -> Answer:
        return Answer(verdict="yes", text=answers[question.why])

    asked_in(turn, call("AskUserQuestion", questions=questions), DONE, ask=ask)

    assert [(asked.kind, asked.choices) for asked in turn.of(ApprovalAsked)] == [("question", ("Red", "Blue"))] * 2
    assert '"Which colour?"="Blue"' in model_heard(turn)
    assert '"And why?"="It is cold, and I like that."' in model_heard(turn)


def test_cancelling_while_it_asks_leaves_no_process_and_no_question(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)

    async def cancelled() -> None:
        running = asyncio.ensure_future(turn.run(shell("touch made"), DONE, permissions="ask", ask=never))
        await until(lambda: running.done() or bool(turn.of(ApprovalAsked)))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(cancelled())

    assert [over.is_answered for over in turn.of(ApprovalOver)] == [False]
    assert processes_in(tmp_path) == []
    assert list(turn.cwd.iterdir()) == []


def test_settings_stay_as_they_are(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    settings = [turn.home / ".claude" / "settings.json", turn.cwd / ".claude" / "settings.local.json"]
    for file in settings:
        file.parent.mkdir(parents=True)
        file.write_text('{ "permissions": {"allow": []} }')

    asked_in(turn, shell("touch made"), shell("touch made"), DONE, ask=always(YES))

    assert len(turn.of(ApprovalAsked)) == 2
    assert {file.read_text() for file in settings} == {'{ "permissions": {"allow": []} }'}
    assert sorted(path.name for path in (turn.cwd / ".claude").iterdir()) == ["settings.local.json"]


class Told:
    """Words told to an agent at work."""

    def __init__(self, turn: Turn, *words: str) -> None:
        self.turn = turn
        self.words = words
        self.are_told = turn.home.parent / "told"
        """A file that is there when all words are told."""
        self.tell: Tell = lambda _: False
        self.taken: list[bool] = []

    def set_tell(self, tell: Tell) -> None:
        self.tell = tell

    async def run(self, *script: Scripted, when: Callable[[], bool], permissions: Permission) -> Reply:
        running = asyncio.ensure_future(self.turn.run(*script, permissions=permissions, on_tell=self.set_tell))
        await until(lambda: running.done() or when())
        self.taken = [self.tell(word) for word in self.words]
        self.are_told.touch()
        reply = await running
        assert not self.tell("too late")
        return reply


every_level = pytest.mark.parametrize("permissions", ["read-only", "edit", "ask"])


@every_level
def test_words_during_a_tool_are_in_the_next_request(permissions: Permission, tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    told = Told(turn, "/clear Look at @notes.txt, too")
    look = Scripted(text="I look.", chunk_characters=1, wait_for=told.are_told, tool_calls=shell("ls").tool_calls)

    reply = run(told.run(look, DONE, when=lambda: "I" in said(turn), permissions=permissions))

    assert told.taken == [True]
    assert reply.text == "I look.\n\ndone"
    assert len(turn.requests) == 2
    assert "/clear Look at @notes.txt, too" in model_heard(turn)


def said(turn: Turn) -> str:
    return "".join(getattr(event, "text", "") for event in turn.events)


def test_words_during_the_last_answer_get_one_of_their_own(tmp_path: Path) -> None:
    """Claude Code answers them together, or one after the other if the second come a moment later."""
    turn = Turn("claude", tmp_path)
    told = Told(turn, "First words", "Second words")

    slow = Scripted(text="A slow answer in two parts.", chunk_characters=20, wait_for=told.are_told)

    reply = run(told.run(slow, Scripted(text="And that."), when=lambda: "A slow" in said(turn), permissions="edit"))

    assert told.taken == [True, True]
    assert len(turn.requests) in (2, 3)
    answers = ["A slow answer in two parts.", *["And that."] * (len(turn.requests) - 1)]
    assert reply.text == "\n\n".join(answers)
    assert model_heard(turn).count("First words") == model_heard(turn).count("Second words") == 1
    assert len(turn.of(Started)) == len(turn.of(Finished)) == 1
    assert turn.of(Usage)[-1].output_tokens == slow.output_tokens * len(answers)


def test_words_before_the_first_request_are_heard(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    told = Told(turn, "Early words")

    run(told.run(DONE, when=lambda: told.tell.__name__ == "tell", permissions="read-only"))

    assert told.taken == [True]
    assert "Early words" in model_heard(turn)


def test_words_reach_it_while_it_asks(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    told = Told(turn)

    async def ask(_: ApprovalAsked) -> Answer:
        told.taken.append(told.tell("Be quick"))
        return YES

    run(turn.run(shell("touch made"), DONE, permissions="ask", ask=ask, on_tell=told.set_tell))

    assert told.taken == [True]
    assert "Be quick" in model_heard(turn)
    assert (turn.cwd / "made").exists()


def test_a_rule_of_the_user_is_not_a_yes(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)
    settings = turn.home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    rules = {
        "allow": ["Bash(touch:*)", "WebFetch", "Write", "Read(//etc/**)"],
        "deny": ["Read(./.env)", "Read(/own.txt)"],
    }
    settings.write_text(json.dumps({"permissions": {**rules, "defaultMode": "bypassPermissions"}}))
    before = settings.read_bytes()
    (turn.cwd / ".env").write_text("KEY=1")
    (settings.parent / "own.txt").write_text("mine")
    script = (
        shell("touch made"),
        call("WebFetch", url="http://127.0.0.1:9/", prompt="x"),
        call("Write", file_path=str(tmp_path / "new.txt"), content="x"),
        call("Read", file_path="/etc/hosts"),
        call("Read", file_path=str(turn.cwd / ".env")),
        call("Read", file_path=str(settings.parent / "own.txt")),
    )

    asked_in(turn, *script, DONE, ask=always(Answer(verdict="no")))

    assert [asked.tool for asked in turn.of(ApprovalAsked)] == ["Bash", "WebFetch", "Write", "Read"]
    assert [finished.failed for finished in turn.of(ToolFinished)] == [True] * 6
    assert settings.read_bytes() == before
