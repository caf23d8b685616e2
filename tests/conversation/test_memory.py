"""Agents that remember: in which session each turn runs, what it is sent there, and what becomes of the session."""

import asyncio
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from tests import forked
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import GO, Script, events_so_far, tell, until_at_work

from bullpen.agents.session_lock import SessionLock
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import TurnEvent
from bullpen.conversation.memories import Memories
from bullpen.store.sqlite import SqliteStore
from bullpen.turn_events import Notice

SLOW: Script = [{"say": "half of it"}, {"hang": True}]


@pytest.fixture
def team(remembering: RememberingStage) -> RememberingStage:
    """A person, an agent that remembers, and two that do not."""
    remembering.person("kim")
    remembering.remembering("a")
    for other in "bc":
        remembering.agent(other, *(f"{other}:{number} says so." for number in range(1, 20)))
    return remembering


async def ended_badly(conversation: Conversation, text: str, *, cancel: bool = True) -> None:
    """Say something, and stop the agent at work on it."""
    await conversation.say(text)
    await until_at_work(conversation, "a")
    if cancel:
        await conversation.cancel()
        await conversation.until_quiet()


async def test_each_turn_is_sent_what_is_new_and_its_model_has_all_of_it(team: RememberingStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: b, a]")
        await tell(conversation, "three [NEXT: a]")

    assert team.origins("a") == ["new", "resumed", "resumed"]
    first, second, third = team.prompt_texts("a")
    assert "one" in first
    assert ["two" in second, "b:1" in second, "one" in second, "a:1" in second] == [True, True, False, False]
    assert ["three" in third, "two" in third, "a:2" in third] == [True, False, False]
    assert team.asked()[-1] == [first, "a:1 says so.", second, "a:2 says so.", third]


async def test_it_goes_on_in_another_process(team: RememberingStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
    async with team.open(resume=conversation.id) as conversation:
        await tell(conversation, "two [NEXT: a]")

    assert team.origins("a") == ["new", "resumed"]
    assert len(team.sessions()) == 1


async def test_those_who_answer_at_the_same_time_learn_what_the_others_said_once(team: RememberingStage) -> None:
    team.remembering("b", cli="codex")
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a & b]")
        await tell(conversation, "two [NEXT: a & b]")
        await tell(conversation, "three [NEXT: a & b]")

    for name, other in ("ab", "ba"):
        prompts = team.prompt_texts(name)
        assert [sum(f"{other}:{number} says" in prompt for prompt in prompts) for number in (1, 2)] == [1, 1]
        assert f"{other}:1 says" in prompts[1]
        assert f"{other}:2 says" in prompts[2]
        assert not any(f"{name}:{number} says" in prompt for prompt in prompts for number in (1, 2))


async def test_what_was_hidden_in_a_turn_that_is_tried_again_is_sent_later(team: RememberingStage) -> None:
    """b has answered when a's turn is tried again: a must not see that answer now, and must see it later."""
    team.remembering("a", "a:1 says so.", [{"exit": 3}])
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a & b]")
        await conversation.retry()
        await conversation.until_quiet()
        assert len(team.memory("a").pending) == 1
        await tell(conversation, "three [NEXT: a]")
        assert team.memory("a").pending == ()

    prompts = team.prompt_texts("a")
    assert ["b:1 says" in prompt for prompt in prompts] == [False, False, False, True]
    assert ["two" in prompt for prompt in prompts] == [False, True, True, False]
    assert team.origins("a") == ["new", "resumed", "resumed", "resumed"]


async def test_what_there_was_no_room_for_is_sent_when_there_is(team: RememberingStage) -> None:
    team.remembering("a", max_bytes=4000)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        for word in ("two", "three"):
            await tell(conversation, f"{word} {'x' * 2400} [NEXT: b]")
        await tell(conversation, "four [NEXT: a]")
        await tell(conversation, "five [NEXT: a]")
        await tell(conversation, "six [NEXT: a]")

    assert team.origins("a") == ["new", "resumed", "resumed", "resumed"]
    prompts = team.prompt_texts("a")
    assert ["two xx" in prompt for prompt in prompts] == [False, False, True, False]
    assert ["three xx" in prompt for prompt in prompts] == [False, True, False, False]
    assert [prompt.count("b:1 says so.") for prompt in prompts] == [0, 1, 0, 0]
    assert team.memory("a").pending == ()


async def test_in_a_relay_it_answers_the_step_before(team: RememberingStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: b, c, a]")

    second = team.prompt_texts("a")[1]
    assert [second.count(text) for text in ("two", "b:1 says", "c:1 says", "one")] == [1, 1, 1, 0]
    assert second.rindex("c:1 says") > second.rindex("b:1 says") > second.rindex("two")


async def test_an_older_message_is_answered_and_later_ones_are_sent_with_the_next_turn(team: RememberingStage) -> None:
    team.agent("b", [{"say": "b works"}, GO])
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await conversation.say("two [NEXT: b]")
        await conversation.say("three [NEXT: a]")
        await conversation.say("four [NEXT: a]")
        team.go()
        await conversation.until_quiet()
        await tell(conversation, "five [NEXT: a]")

    sent = team.prompt_texts("a")
    assert ["four" in prompt for prompt in sent] == [False, False, True, False]
    assert ["b works" in prompt for prompt in sent] == [False, False, False, True], "it was said after four"
    assert all(sum(word in prompt for prompt in sent) == 1 for word in ("one", "two", "three", "four", "five"))


async def test_an_agent_that_sees_only_what_concerns_it_is_sent_only_that(team: RememberingStage) -> None:
    team.remembering("a", visibility="addressed")
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "secret [NEXT: b]")
        await tell(conversation, "two [NEXT: a & b]")
        await tell(conversation, "three [NEXT: a]")

    assert team.origins("a") == ["new", "resumed", "resumed"]
    assert not any("secret" in prompt for prompt in team.prompt_texts("a"))
    assert ["two" in prompt for prompt in team.prompt_texts("a")] == [False, True, False]


async def test_a_request_from_before_its_session_is_sent_once(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", "a:2 says so. [NEXT: b]", window=0)
    team.agent("b", [{"exit": 3}], "b:2 says so. [NEXT: a]", "b:3 says so. [NEXT: a]")
    async with team.open() as conversation:
        await tell(conversation, "Build a timer. [NEXT: b]")
        await tell(conversation, "one [NEXT: a]")
        await conversation.retry("1")
        await conversation.until_quiet()

    sent = team.prompt_texts("a")
    assert team.origins("a") == ["new", "resumed", "resumed"]
    assert ["b:2" in prompt for prompt in sent] == [False, True, False]
    assert ["b:3" in prompt for prompt in sent] == [False, False, True]
    assert ["Build a timer." in prompt for prompt in sent] == [False, True, False], "it led to both"


async def test_the_team_task_is_sent_when_it_changes_and_its_end_is_told(team: RememberingStage) -> None:
    async with team.open() as conversation:
        await conversation.set_task("Build a timer.")
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")
        await conversation.set_task("Build a clock.")
        await tell(conversation, "three [NEXT: a]")
        await conversation.set_task(None)
        await tell(conversation, "four [NEXT: a]")
        await tell(conversation, "five [NEXT: a]")

    sent = team.prompt_texts("a")
    assert ["timer" in prompt for prompt in sent] == [True, False, False, False, False]
    assert ["clock" in prompt for prompt in sent] == [False, False, True, False, False]
    assert ["The team task no longer holds." in prompt for prompt in sent] == [False, False, False, True, False]


async def test_instructions_in_the_message_are_sent_again_only_when_they_change(team: RememberingStage) -> None:
    team.remembering("a", cli="codex")
    file = team.folder / "AGENTS.md"
    file.write_text("Be brief.", encoding="utf-8")
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")
        file.write_text("Be kind.", encoding="utf-8")
        await tell(conversation, "three [NEXT: a]")
        await tell(conversation, "four [NEXT: a]")

    sent = team.prompt_texts("a")
    assert ["Be brief." in prompt for prompt in sent] == [True, False, False, False]
    assert ["Be kind." in prompt for prompt in sent] == [False, False, True, False]
    assert team.origins("a") == ["new", "resumed", "resumed", "resumed"]


async def test_instructions_beside_the_message_are_given_every_time_and_apply_at_once(team: RememberingStage) -> None:
    file = team.folder / "CLAUDE.md"
    file.write_text("Be brief.", encoding="utf-8")
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")
        file.write_text("Be kind.", encoding="utf-8")
        await tell(conversation, "three [NEXT: a]")

    assert [record.system for record in team.records("a")] == ["Be brief.", "Be brief.", "Be kind."]
    assert [use.has_other_system for use in team.uses("a")] == [False, False, True]
    log = team.sessions()[0].with_suffix(".asked").read_text(encoding="utf-8").splitlines()
    assert ["Be kind." in line for line in log] == [False, False, True], "the CLI sends it, too"


async def test_a_cancelled_turn_is_taken_out_of_the_session_and_told(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", SLOW)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        before = team.sessions()[0].read_bytes()
        await ended_badly(conversation, "two [NEXT: a]")
        assert team.sessions()[0].read_bytes() == before
        await conversation.retry()
        await conversation.until_quiet()

    first, second, third = team.prompt_texts("a")
    assert team.asked()[-1] == [first, "a:1 says so.", third]
    assert third.startswith(second)
    remark = third.removeprefix(second).strip()
    assert remark.startswith("(bullpen: Your turn 2 was cancelled before it was done. It had begun to answer: “half")
    assert team.origins("a") == ["new", "resumed", "resumed"]


async def test_a_failed_turn_leaves_nothing_in_the_session(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", [{"say": "half of it"}, {"exit": 3}])
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")
        await conversation.skip()
        await tell(conversation, "three [NEXT: a]")

    third = team.prompt_texts("a")[2]
    assert [third.count(word) for word in ("two", "three", "half of it")] == [1, 1, 1]
    assert team.asked()[-1] == [team.prompt_texts("a")[0], "a:1 says so.", third]


async def test_while_another_turn_runs_in_its_session_a_turn_runs_in_a_new_one(team: RememberingStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        session = team.memory("a").session_id
        before = team.sessions()[0].read_bytes()
        with other_process_holds(session):
            await tell(conversation, "two [NEXT: a]")
        assert team.sessions()[0].read_bytes() == before
        await tell(conversation, "three [NEXT: a]")

    assert team.origins("a") == ["new", "rebuilt: another turn runs in its session", "resumed"]
    _, second, third = team.prompt_texts("a")
    assert ["one" in second, "a:1 says" in second] == [True, True]
    assert [second, "a:2 says so.", third] in team.asked()


class other_process_holds:  # noqa: N801 - used as a function
    """Another process has a session's lock."""

    PROGRAM = (
        "import sys; from bullpen.agents.session_lock import SessionLock;"
        "assert SessionLock(sys.argv[1]).hold(); print(1, flush=True); sys.stdin.read()"
    )

    def __init__(self, session_id: str) -> None:
        command = [sys.executable, "-c", self.PROGRAM, session_id]
        self._process = forked.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline()

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()


async def test_turns_that_follow_at_once_continue_the_session(team: RememberingStage) -> None:
    team.limits["identical_replies"] = 1000
    async with team.open() as conversation:
        for number in range(8):
            await conversation.say(f"{number} [NEXT: a]")
        await conversation.until_quiet()

    assert team.origins("a") == ["new"] + ["resumed"] * 7


async def test_a_turn_that_is_cancelled_while_it_takes_its_session_does_not_keep_it(
    team: RememberingStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, taking, cancelled = SessionLock.hold, threading.Event(), threading.Event()

    def hold(lock: SessionLock) -> bool:
        taking.set()
        cancelled.wait()
        return real(lock)

    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        monkeypatch.setattr(SessionLock, "hold", hold)
        await conversation.say("two [NEXT: a]")
        while not taking.is_set():
            await asyncio.sleep(0.01)
        monkeypatch.setattr(SessionLock, "hold", real)
        for task in list(conversation._turns.tasks.values()):
            # Twice, since whoever cleans up must not be stopped by that either.
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
        cancelled.set()
        await conversation.until_quiet()
        assert [ended.state for ended in conversation.undecided] == ["cancelled"]
        await tell(conversation, "three [NEXT: a]")

    assert team.origins("a")[-1] == "resumed"


async def test_the_file_is_looked_at_only_when_nobody_else_can_change_it(
    team: RememberingStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another turn in the same session ends just before this one gets the lock."""
    real = SessionLock.hold

    def hold(lock: SessionLock) -> bool:
        _longer(team)
        return real(lock)

    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        session = team.memory("a").session_id
        monkeypatch.setattr(SessionLock, "hold", hold)
        await tell(conversation, "two [NEXT: a]")

    assert team.origins("a")[1].startswith("rebuilt: somebody else ")
    monkeypatch.setattr(SessionLock, "hold", real)
    lock = SessionLock(session)
    assert lock.hold(), "it was let go of"
    lock.release()


async def test_the_lock_is_held_while_a_turn_runs_and_only_then(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", SLOW)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        session = team.memory("a").session_id
        await ended_badly(conversation, "two [NEXT: a]", cancel=False)
        assert not SessionLock(session).hold()
        await conversation.cancel()
        await conversation.until_quiet()
    lock = SessionLock(session)
    assert lock.hold()
    lock.release()


async def test_a_session_that_cannot_be_locked_is_not_continued(
    team: RememberingStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another turn may run in it, and nobody would know."""
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        before = team.sessions()[0].read_bytes()
        monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
        await tell(conversation, "two [NEXT: a]")

    assert team.origins("a") == ["new", "rebuilt: its session cannot be locked (Not a directory)"]
    assert before in [file.read_bytes() for file in team.sessions()]


async def test_a_session_is_let_go_of_if_it_cannot_be_planned(
    team: RememberingStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        with monkeypatch.context() as patched:
            patched.setattr(Memories, "_ended_badly_in", damaged)
            await tell(conversation, "two [NEXT: a]")
            assert [ended.state for ended in conversation.undecided] == ["failed"]
        lock = SessionLock(team.memory("a").session_id)
        assert lock.hold()
        lock.release()


async def test_what_the_cli_does_not_find_is_rebuilt_in_the_same_turn_and_stored_as_it_was(
    team: RememberingStage,
) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        file = team.sessions()[0]
        elsewhere = file.parent.with_name("elsewhere")
        elsewhere.mkdir()
        file.rename(elsewhere / file.name)
        await tell(conversation, "two [NEXT: a]")
        notices = [
            news.event.text
            for news in events_so_far(conversation, TurnEvent)
            if isinstance(news.event, Notice) and news.event.kind == "session"
        ]
        await tell(conversation, "three [NEXT: a]")

    first, second, _ = team.prompt_texts("a")
    use = team.uses("a")[1]
    assert (use.origin, "No conversation found" in use.reason) == ("rebuilt", True)
    assert notices == [use.sentence]
    assert not use.sentence.endswith("..")
    assert [second] in team.asked(), "the stored prompt is what the agent really got"
    assert "one" in second
    assert "a:1 says" in second
    assert team.origins("a")[2] == "resumed"
    assert first != second


Change = Callable[[RememberingStage], None]


def _gone(team: RememberingStage) -> None:
    team.sessions()[0].unlink()


def _cut(team: RememberingStage) -> None:
    os.truncate(team.sessions()[0], 10)


def _changed(team: RememberingStage) -> None:
    file = team.sessions()[0]
    file.write_bytes(file.read_bytes().replace(b"one", b"two"))


def _longer(team: RememberingStage) -> None:
    with team.sessions()[0].open("ab") as file:
        file.write(b"{}\n")


def _unreadable(team: RememberingStage) -> None:
    file = team.sessions()[0]
    file.unlink()
    file.mkdir()


def _other_agent(team: RememberingStage) -> None:
    team.remembering("a", cli="codex")


def _other_visibility(team: RememberingStage) -> None:
    team.members["a"]["visibility"] = "addressed"


def _other_folder(team: RememberingStage) -> None:
    (team.folder / "sub").mkdir()
    team.members["a"]["cwd"] = "sub"


def _too_large(team: RememberingStage) -> None:
    team.members["a"]["memory_tokens"] = 1


REASONS: dict[Change, str] = {
    _gone: "the file of its session is gone",
    _cut: "the file of its session is not what its last turn left",
    _changed: "the file of its session is not what its last turn left",
    _longer: "somebody else ",
    _unreadable: "the file of its session cannot be read",
    _other_agent: "its agent was claude-code and is openai-codex now",
    _other_visibility: "what it may see has changed",
    _other_folder: "it worked in ",
    _too_large: "its session had grown to ",
}


@pytest.mark.parametrize("change", list(REASONS), ids=lambda change: change.__name__[1:])
async def test_a_session_that_must_not_go_on_is_rebuilt_with_the_reason(change: Change, team: RememberingStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
    change(team)
    async with team.open(resume=conversation.id) as conversation:
        await tell(conversation, "two [NEXT: a]")
        (memory,) = [conversation.memories["a"]]

    assert team.origins("a")[0] == "new"
    assert team.origins("a")[1].startswith(f"rebuilt: {REASONS[change]}")
    assert memory.origin == "rebuilt"
    assert memory.turns == 1
    second = team.prompt_texts("a")[1]
    assert [second.count(text) for text in ("one", "a:1 says", "two")] == [1, 1, 1]
    assert [second] in team.asked("codex" if change is _other_agent else "claude")


async def test_another_model_begins_a_new_session_only_where_the_cli_needs_that(team: RememberingStage) -> None:
    team.remembering("b", cli="codex")
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a & b]")
    team.members["a"]["model"] = team.members["b"]["model"] = "other"
    async with team.open(resume=conversation.id) as conversation:
        await tell(conversation, "two [NEXT: a & b]")

    assert team.origins("a") == ["new", "resumed"]
    assert team.origins("b") == ["new", "rebuilt: its model was the default and is other now"]


async def test_a_turn_that_left_no_session_is_followed_by_a_new_one(
    team: RememberingStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(team.folder))
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")

    assert team.origins("a") == ["new", "rebuilt: its last turn left no session"]
    assert "one" in team.prompt_texts("a")[1]


@pytest.mark.parametrize("cli", ["claude", "codex"])
async def test_a_session_that_its_cli_has_shortened_is_rebuilt(cli: str, team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", [{"compact": "a summary"}, {"say": "a:2 says so."}], cli=cli)
    async with team.open() as conversation:
        for text in ("one", "two", "three", "four"):
            await tell(conversation, f"{text} [NEXT: a]")

    reason = "rebuilt: its CLI had replaced a part of its session with a summary"
    assert team.origins("a") == ["new", "resumed", reason, "resumed"]
    third = team.prompt_texts("a")[2]
    assert [third.count(text) for text in ("one", "a:1 says", "two", "a:2 says", "three")] == [1] * 5


async def test_what_was_forgotten_begins_anew_even_after_a_crash_before_that(team: RememberingStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await conversation.forget("a")
    async with team.open(resume=conversation.id) as conversation:
        await tell(conversation, "two [NEXT: a]")
        await tell(conversation, "three [NEXT: a]")

    assert team.origins("a") == ["new", "rebuilt: kim made it forget", "resumed"]
    assert len(team.sessions()) == 2


async def test_shared_memory_is_given_a_window_every_time(team: RememberingStage) -> None:
    team.members["a"]["memory"] = "shared"
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")

    assert team.uses("a") == []
    assert "one" in team.prompt_texts("a")[1]
    with SqliteStore(team.db) as store:
        assert store.memories(store.conversations()[0].id) == []


async def test_a_command_of_its_own_has_a_shared_memory_unless_the_team_file_says_otherwise(
    team: RememberingStage,
) -> None:
    del team.members["a"]["memory"]
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")

    assert team.uses("a") == []


async def test_a_preview_shows_what_would_be_sent_and_changes_nothing(team: RememberingStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        before = team.sessions()[0].read_bytes()
        await conversation.note("two")
        preview = await conversation.preview("a")
        assert team.sessions()[0].read_bytes() == before

    assert preview.report.session is not None
    assert preview.report.session.origin == "resumed"
    assert ["one" in preview.prompt, "two" in preview.prompt] == [False, True]


@pytest.mark.parametrize("cli", ["claude", "codex"])
async def test_usage_is_that_of_each_turn(cli: str, team: RememberingStage) -> None:
    usage: Script = [{"say": "yes"}, {"usage": {"input": 100, "output": 10}}]
    team.remembering("a", usage, usage, usage, cli=cli)
    async with team.open() as conversation:
        for number in range(3):
            await tell(conversation, f"{number} [NEXT: a]")

    with SqliteStore(team.db) as store:
        turns = store.turns(store.conversations()[0].id)
    used = [(turn.usage.input_tokens, turn.usage.output_tokens) for turn in turns if turn.usage]
    assert used == [(100, 10)] * 3


async def test_two_conversations_of_one_team_have_their_own_sessions(team: RememberingStage) -> None:
    async with team.open() as one, team.open() as other:
        await asyncio.gather(tell(one, "apple [NEXT: a]"), tell(other, "pear [NEXT: a]"))
        await asyncio.gather(tell(one, "more [NEXT: a]"), tell(other, "more [NEXT: a]"))
        assert one.memories["a"].session_id != other.memories["a"].session_id

    for asked in team.asked():
        text = "\n".join(asked)
        assert ("apple" in text) != ("pear" in text)


async def test_what_it_has_seen_is_not_sent_again_because_it_must_not_see_it_now(team: RememberingStage) -> None:
    """b answered at the same time, a has seen that since, and only then a's own turn is tried again."""
    team.remembering("a", [{"exit": 3}])
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a & b]")
        await tell(conversation, "two [NEXT: a]")
        await conversation.retry("1")
        await conversation.until_quiet()
        await tell(conversation, "three [NEXT: a]")

    sent = team.prompt_texts("a")[1:]
    assert ["b:1 says" in prompt for prompt in sent] == [True, False, False]


async def test_a_reply_that_was_hidden_behind_a_later_one_is_sent_with_the_next_turn(team: RememberingStage) -> None:
    """In a relay the first step is tried again after the second, so the answered message is newer than a hidden one."""
    team.remembering("a", "a:1 says so.", [{"exit": 3}])
    team.agent("c", [{"exit": 3}], "c:2 says so.")
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: c, a & b]")
        await conversation.continue_turns()
        await conversation.until_quiet()
        for member in ("c", "a"):
            (ended,) = [ended.id for ended in conversation.undecided if ended.member == member]
            await conversation.retry(ended)
            await conversation.until_quiet()
        assert len(team.memory("a").pending) == 1
        await tell(conversation, "three [NEXT: a]")

    sent = [record.prompt for record in team.records("a")]
    assert ["b:1 says" in prompt for prompt in sent][-2:] == [False, True]
    assert ["c:2 says" in prompt for prompt in sent][-2:] == [True, False]


async def test_its_own_reply_is_not_sent_back_when_it_is_given_the_turn_of_another(team: RememberingStage) -> None:
    team.agent("b", [{"exit": 3}])
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a & b]")
        await conversation.hand_over("a")
        await conversation.until_quiet()
        await tell(conversation, "two [NEXT: a]")
        await tell(conversation, "three [NEXT: a]")

    assert team.origins("a") == ["new", "resumed", "resumed", "resumed"]
    assert not any("says so" in prompt for prompt in team.prompt_texts("a"))
