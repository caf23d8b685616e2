"""A member on another machine asks through the same inbox as one here, and hears the same words, whoever dies."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from tests.agents.asking import PROGRAM, heard_in
from tests.cluster.asking_worker_process import spec
from tests.cluster.here import times_of_turns, working
from tests.cluster.processes import Processes, Started
from tests.cluster.serving import start_node
from tests.cluster.stage import POOL, WorkerStage
from tests.cluster.test_remote_agent import OWNER, Seen, opened, until_said
from tests.cluster.test_serve import begun, say
from tests.cluster.test_serve import until_said as served_until_said

from bullpen.approvals import Answer, ApprovalRecord
from bullpen.cluster import remote_talk, worker_file
from bullpen.cluster.database import Database
from bullpen.cluster.words import Answered, Word, leave_word
from bullpen.conversation.conversation import Conversation
from bullpen.errors import AnsweredAlready
from bullpen.store.postgres.store import PostgresStore

WORKER = "tests.cluster.asking_worker_process"
MUTE = "tests.cluster.mute_owner_process"
YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="not on a Friday")
Steps = list[list[str]]
TOUCH: Steps = [["ask", "q1", "touch a"], ["wait", "q1"], ["write", "a"], ["end", "fine"]]


class AskingStage(WorkerStage):
    """A machine with programs that ask."""

    def prepare(self, steps: Steps, keys: str = "", **worker: object) -> Path:
        """Write the worker's file, and a team of kim and max, who asks."""
        command = [sys.executable, "-c", PROGRAM, json.dumps(steps)]
        self.commands.append(command)
        self.write_file(**{"permissions": "ask", **worker})
        return self.write_asking_team(keys)

    def write_asking_team(self, keys: str = "") -> Path:
        """Write the team again, with other keys."""
        team = self.file.with_name("team.toml")
        team.write_text(
            'name = "stage"\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncwd = "project"\npermissions = "ask"\n'
            f'pool = "{POOL}"\ncommand = {json.dumps(self.commands[0])}\n{keys}\n'
        )
        return team

    def start_worker(self, **environment: str) -> Started:
        return self._processes.start(WORKER, self.url, POOL, str(self.file), **environment)

    def records(self, conversation_id: str) -> list[ApprovalRecord]:
        """Return what is stored of questions and answers, in a chain that holds."""
        with PostgresStore(self.url) as store:
            assert store.fsck(conversation_id) == []
            return store.approvals(conversation_id)

    @property
    def told(self) -> list[tuple[str, str]]:
        """What the program has heard."""
        if not (self.folder / "heard").exists():
            return []
        return [(one["to"], one["verdict"]) for one in heard_in(self.folder) if "to" in one]

    @property
    def has_run(self) -> bool:
        """Whether it has done what it asked for."""
        return (self.folder / "a").exists()


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> AskingStage:
    return AskingStage(tmp_path, url, processes)


async def until(is_true: Callable[[], Any]) -> None:
    while not is_true():
        await asyncio.sleep(0.01)


async def asked(conversation: Conversation) -> str:
    """Wait until somebody is asked, and return the turn."""
    await until(lambda: conversation.approvals.open)
    (event,) = conversation.approvals.open.values()
    assert (event.member, event.question.id, event.question.command) == ("max", "q1", "touch a")
    return event.turn_id


async def open_question(stage: AskingStage, processes: Processes, team: Path) -> tuple[Started, str]:
    """Have a node ask a question, and return it and the conversation."""
    node = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    while not (await asyncio.to_thread(node.line)).startswith("Asked"):
        pass
    return node, conversation_id


def outcome_of(records: list[ApprovalRecord]) -> list[tuple[str, str, str]]:
    """Return which question was asked, and how and by whom each was answered."""
    questions = [record.question for record in records if record.asked is not None]
    answers: list[tuple[str, str, str]] = [
        (record.question, record.answer.verdict, record.by or record.because)
        for record in records
        if record.answer is not None
    ]
    assert questions == [question for question, _, _ in answers]
    return answers


async def test_it_asks_and_does_nothing_before_the_yes(stage: AskingStage) -> None:
    team = stage.prepare(TOUCH)
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await conversation.say("Hi.")
        turn = await asked(conversation)
        assert not stage.has_run
        assert stage.told == []
        assert conversation.running[turn].doing == "waiting for an answer"

        await conversation.answer(turn, "q1", YES, by="kim")
        with pytest.raises(AnsweredAlready):
            await conversation.answer(turn, "q1", NO, by="kim")

        await until_said(conversation, "fine")
    assert stage.has_run
    assert stage.told == [("q1", "yes")]
    assert outcome_of(stage.records(conversation.id)) == [("q1", "yes", "kim")]


async def test_the_reason_of_a_no_is_heard(stage: AskingStage) -> None:
    team = stage.prepare([*TOUCH[:2], ["end", "fine"]])
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await conversation.say("Hi.")
        await conversation.answer(await asked(conversation), "q1", NO, by="kim")
        await until_said(conversation, "fine")
    assert heard_in(stage.folder) == [{"to": "q1", "verdict": "no", "reason": "not on a Friday"}]


async def test_rules_of_the_team_answer(stage: AskingStage) -> None:
    steps = [*TOUCH[:2], ["ask", "q1", "git push"], ["wait", "q1"], ["end", "fine"]]
    team = stage.prepare(steps, 'allow = ["touch"]\ndeny = ["git push"]', allow=["touch"])
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await conversation.say("Hi.")
        await until_said(conversation, "fine")
    assert stage.told == [("q1", "yes"), ("q1", "no")]
    # The program has used an id again.
    answered = [("q1", "yes", "allow: touch"), ("q1.2", "no", "deny: git push")]
    records = stage.records(conversation.id)
    assert [record.question for record in records] == ["q1", "q1", "q1.2", "q1.2"]
    assert [(one.question, one.answer.verdict, one.because) for one in records if one.answer is not None] == answered


async def test_time_limits_stop_while_a_person_is_asked(stage: AskingStage, monkeypatch: pytest.MonkeyPatch) -> None:
    team = stage.prepare([*TOUCH[:2], ["end", "fine"]], "ask_timeout = 1")
    asking = times_of_turns(monkeypatch)
    monkeypatch.setattr(worker_file, "spec_for", spec)
    async with working(stage), opened(stage.url, team) as conversation:
        await conversation.say("Hi.")
        await until_said(conversation, "fine")
    assert asking[0].seconds > 0
    assert not asking[0].is_asking
    ((question, verdict, because),) = outcome_of(stage.records(conversation.id))
    assert (question, verdict, because) == ("q1", "no", "nobody answered within 0.0166667 minutes")
    assert stage.told == [("q1", "no")]


async def test_words_reach_it_in_the_same_turn(stage: AskingStage) -> None:
    team = stage.prepare([["say", "working"], ["hear"], ["end", "fine"], ["stay"]])
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await conversation.say("Hi.")
        await until(lambda: [one for one in conversation.running.values() if one.can_be_told])

        assert await conversation.tell("max", "look at the tests, too", sender="kim")

        await until_said(conversation, "working\n\nfine")
    assert heard_in(stage.folder) == [{"tell": "look at the tests, too"}]


async def test_words_that_come_too_late_are_for_its_next_turn(
    stage: AskingStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = stage.prepare([["hear"], ["end", "fine"]])
    is_late = asyncio.Event()

    async def late(database: Database, node: int, key: tuple[str, str], word: Word) -> None:
        if "late" in str(word):
            await is_late.wait()
        await leave_word(database, node, key, word)

    monkeypatch.setattr(remote_talk, "leave_word", late)
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await conversation.say("Hi.")
        await until(lambda: [one for one in conversation.running.values() if one.can_be_told])
        telling = asyncio.create_task(conversation.tell("max", "late words", sender="kim"))
        assert await conversation.tell("max", "look", sender="kim")
        await until_said(conversation, "fine")
        is_late.set()

        assert not await telling


async def test_cancelling_leaves_no_process_and_no_question(stage: AskingStage) -> None:
    team = stage.prepare([*TOUCH[:2], ["stay"]])
    worker = stage.start_worker()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await asyncio.sleep(0)
        await conversation.say("Hi.")
        turn = await asked(conversation)
        family = [one for one in psutil.Process(worker.pid).children(recursive=True) if "heard" in str(one.cmdline())]
        assert family

        await conversation.cancel(turn, by="kim")

        assert conversation.approvals.open == {}
        assert [ended.state for ended in seen.ended()] == ["cancelled"]
        assert not [one for one in family if one.is_running() and one.status() != "zombie"]
    assert outcome_of(stage.records(conversation.id)) == [("q1", "no", "it was over before an answer")]
    assert ("q1", "yes") not in stage.told


async def test_no_and_stop_ends_the_turn(stage: AskingStage) -> None:
    team = stage.prepare([*TOUCH[:2], ["stay"]])
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await asyncio.sleep(0)
        await conversation.say("Hi.")
        await conversation.answer(await asked(conversation), "q1", Answer(verdict="stop"), by="kim")
        await until(seen.ended)
    assert outcome_of(stage.records(conversation.id)) == [("q1", "stop", "kim")]


@pytest.mark.parametrize("is_killed", [True, False])
async def test_a_question_outlives_its_node(stage: AskingStage, processes: Processes, is_killed: bool) -> None:
    team = stage.prepare(TOUCH)
    stage.start_worker()
    node, conversation_id = await open_question(stage, processes, team)

    node.kill() if is_killed else await asyncio.to_thread(node.stop)

    (question,) = stage.records(conversation_id)
    async with opened(stage.url, team, conversation_id) as conversation:
        turn = await asked(conversation)
        assert stage.records(conversation_id) == [question]
        assert not stage.has_run
        await conversation.answer(turn, "q1", YES, by="kim")
        await until_said(conversation, "fine")
    assert stage.told == [("q1", "yes")]
    assert outcome_of(stage.records(conversation_id)) == [("q1", "yes", "kim")]


async def test_an_answer_that_its_node_stored_before_it_died_is_heard(stage: AskingStage, processes: Processes) -> None:
    team = stage.prepare(TOUCH, 'allow = ["touch"]', allow=["touch"])
    stage.start_worker()
    node = processes.start(MUTE, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    while len(stage.records(conversation_id)) < 2:
        await asyncio.sleep(0.01)
    assert stage.told == []

    node.kill()
    # Nobody would say yes to this any more.
    stage.write_asking_team('deny = ["touch"]')
    async with opened(stage.url, team, conversation_id) as conversation:
        await until_said(conversation, "fine")
        assert conversation.approvals.open == {}
    assert stage.told == [("q1", "yes")]
    assert outcome_of(stage.records(conversation_id)) == [("q1", "yes", "allow: touch")]


async def test_a_question_ends_with_its_worker(stage: AskingStage) -> None:
    team = stage.prepare(TOUCH)
    worker = stage.start_worker()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await asyncio.sleep(0)
        await conversation.say("Hi.")
        await asked(conversation)

        await asyncio.to_thread(stage.lose, worker)
        await until(seen.ended)

        assert seen.ended()[0].state == "interrupted"
        assert conversation.approvals.open == {}
    assert outcome_of(stage.records(conversation.id)) == [("q1", "no", "its worker of gpu-box is gone")]
    assert not stage.has_run


async def test_a_question_ends_though_its_node_and_its_worker_die(stage: AskingStage, processes: Processes) -> None:
    team = stage.prepare(TOUCH)
    worker = stage.start_worker()
    node, conversation_id = await open_question(stage, processes, team)

    node.kill()
    stage.lose(worker)

    async with opened(stage.url, team, conversation_id) as conversation:
        await until(lambda: conversation.undecided)
        assert conversation.approvals.open == {}
    assert outcome_of(stage.records(conversation_id)) == [("q1", "no", "its worker of gpu-box is gone")]


@pytest.mark.parametrize("is_adopted", [False, True])
async def test_it_needs_no_connection(stage: AskingStage, processes: Processes, is_adopted: bool) -> None:
    team = stage.prepare(TOUCH)
    resume = None
    if is_adopted:
        stage.start_worker()
        node, resume = await open_question(stage, processes, team)
        node.kill()
    async with opened(stage.url, team, resume) as conversation:
        with psycopg.connect(stage.url) as connection:
            query = "UPDATE bullpen_cluster.processes SET address = '127.0.0.1:1' WHERE kind = 'node'"
            connection.execute(query)
        if not is_adopted:
            stage.start_worker()
            await conversation.say("Hi.")
        await conversation.answer(await asked(conversation), "q1", YES, by="kim")
        await until_said(conversation, "fine")
    assert stage.told == [("q1", "yes")]
    assert outcome_of(stage.records(conversation.id)) == [("q1", "yes", "kim")]


async def test_what_is_left_twice_is_heard_once(stage: AskingStage, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [["hear"], *TOUCH[:2], ["ask", "q2", "touch a"], ["wait", "q2"], ["end", "fine"]]
    team = stage.prepare(steps, 'allow = ["touch"]', allow=["touch"])

    async def twice(database: Database, node: int, key: tuple[str, str], word: Word) -> None:
        await asyncio.gather(leave_word(database, node, key, word), leave_word(database, node, key, word))
        await leave_word(database, node, key, word)
        if isinstance(word, Answered):
            # The first answer counts, as in the record.
            await leave_word(database, node, key, Answered(word.question, NO))

    monkeypatch.setattr(remote_talk, "leave_word", twice)
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await conversation.say("Hi.")
        await until(lambda: [one for one in conversation.running.values() if one.can_be_told])
        assert await conversation.tell("max", "look", sender="kim")
        await until_said(conversation, "fine")
    assert stage.told == [("q1", "yes"), ("q2", "yes")]
    assert [one["tell"] for one in heard_in(stage.folder) if "tell" in one] == ["look"]


async def test_any_node_takes_the_answer_before_and_after_the_owner_was_killed(
    stage: AskingStage, processes: Processes
) -> None:
    steps = [*TOUCH[:2], ["ask", "q2", "touch b"], ["wait", "q2"], ["hear"], ["end", "fine"]]
    team = stage.prepare(steps)
    stage.start_worker()
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")
    one = await begun(a)
    async with b.client() as client:
        here = f"/api/conversations/{one}"

        async def until_asked(command: str) -> None:
            while command not in json.dumps((await client.get(here)).json()["decisions"]):
                await asyncio.sleep(0.01)

        await say(b, one, "Hi.")
        await until_asked("touch a")
        assert (await client.post(f"{here}/yes")).status_code == 200
        await until_asked("touch b")

        a.process.kill()
        await until_asked("touch b")
        answer = await client.post(f"{here}/no", json={"text": "not on a Friday"})
        assert answer.status_code == 200, answer.text
        await until(lambda: ("q2", "no") in stage.told)
        told = await client.post(f"{here}/tell", json={"member": "max", "text": "look"})
        assert told.status_code == 200, told.text
        await served_until_said(b, one, "fine")
    assert stage.told == [("q1", "yes"), ("q2", "no")]
    assert [verdict for _, verdict, _ in outcome_of(stage.records(one))] == ["yes", "no"]
