"""Agents that remember, in a fork: they continue a copy of the session that they had at the message."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import tell, until_at_work
from tests.conversation.test_memory import SLOW, other_process_holds

from bullpen.agents.session_lock import SessionLock
from bullpen.conversation.member_agent import agent_for
from bullpen.conversation.memories import Memories
from bullpen.conversation.prepared_turn import Seen, SessionPlan
from bullpen.exchange.forking import fork_conversation
from bullpen.exchange.importing import Imported, import_conversation
from bullpen.memory import SessionUse
from bullpen.store.base import TurnRecord
from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import load_team
from bullpen.turn_events import Started
from bullpen.view.explanation import explain

every_cli = pytest.mark.parametrize("cli", ["claude", "codex"])


class ForkedStage(RememberingStage):
    """The same stage, on which the conversation that was forked last is looked at."""

    forked = ""

    def fork(self, conversation_id: str, at: int | None = None) -> str:
        with SqliteStore(self.db) as store:
            self.forked = fork_conversation(store, conversation_id, at).id
        return self.forked

    def records(self, name: str) -> list[TurnRecord]:
        with SqliteStore(self.db) as store:
            turns = [turn for turn in store.turns(self.forked) if turn.member == name]
            found = [store.record(self.forked, turn.id) for turn in turns]
        return [record for record in found if record is not None]

    def session_at(self, conversation_id: str) -> str:
        with SqliteStore(self.db) as store:
            left = store.memory(conversation_id, "a")
        assert left is not None
        return left.memory.session_id


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ForkedStage:
    """A person, an agent that remembers, and one that does not."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stage = ForkedStage(tmp_path)
    for name, value in stage.environment().items():
        monkeypatch.setenv(name, value)
    stage.person("kim")
    stage.remembering("a")
    stage.agent("b", *(f"b:{number} says so." for number in range(1, 20)))
    return stage


@every_cli
async def test_the_copy_is_sent_what_is_new_and_its_model_has_all_of_it(cli: str, team: ForkedStage) -> None:
    team.remembering("a", cli=cli)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: b]")
        (session,) = team.sessions(cli)
        before = session.read_bytes()
        fork = team.fork(conversation.id)
        async with team.open(resume=fork) as forked:
            await tell(forked, "three [NEXT: a]")
            await tell(forked, "four [NEXT: a]")
        assert session.read_bytes() == before
        await tell(conversation, "five [NEXT: a]")

    assert team.origins("a") == ["forked", "resumed"]
    first, second = team.prompt_texts("a")
    assert [word in first for word in ("one", "a:1 says", "two", "b:1 says", "three")] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert ["three" in second, "four" in second] == [False, True]
    (asked,) = [one for one in team.asked(cli) if one[-1] == second]
    assert asked[1:] == ["a:1 says so.", first, "a:2 says so.", second]
    (other,) = [one for one in team.asked(cli) if "five" in one[-1]]
    assert other[0] == asked[0]
    assert not any("three" in text for text in other), "the other conversation knows nothing of the fork"


async def test_what_was_said_at_the_same_time_is_sent_in_the_fork_once(team: ForkedStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a & b]")
        fork = team.fork(conversation.id)
        async with team.open(resume=fork) as forked:
            await tell(forked, "two [NEXT: a]")
            await tell(forked, "three [NEXT: a]")

    assert team.origins("a") == ["forked", "resumed"]
    assert ["b:1 says" in prompt for prompt in team.prompt_texts("a")] == [True, False]


async def test_a_session_in_which_a_turn_runs_is_not_copied(team: ForkedStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
    fork = team.fork(conversation.id)
    async with team.open(resume=fork) as forked:
        with other_process_holds(team.session_at(conversation.id)):
            await tell(forked, "two [NEXT: a]")
        await tell(forked, "three [NEXT: a]")

    assert team.origins("a") == ["rebuilt: another turn runs in its session", "resumed"]
    assert "one" in team.prompt_texts("a")[0]


async def test_a_session_that_is_copied_can_be_continued_while_the_copy_works(team: ForkedStage) -> None:
    team.remembering("a", "a:1 says so.", SLOW)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        fork = team.fork(conversation.id)
        async with team.open(resume=fork) as forked:
            await forked.say("two [NEXT: a]")
            await until_at_work(forked, "a")
            await tell(conversation, "three [NEXT: a]")
            await forked.cancel()
            await forked.until_quiet()

    assert team.origins("a") == ["forked"]
    team.forked = conversation.id
    assert team.origins("a") == ["new", "resumed"]


async def test_a_session_that_was_continued_since_is_rebuilt(team: ForkedStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")
    for at in (2, 3):
        fork = team.fork(conversation.id, at)
        async with team.open(resume=fork) as forked:
            await tell(forked, "three [NEXT: a]")
        assert team.origins("a") == ["rebuilt: its session was continued elsewhere"]
        assert ["one" in team.prompt_texts("a")[0], "two" in team.prompt_texts("a")[0]] == [True, at == 3]


async def test_a_first_turn_that_is_cancelled_leaves_the_copy_to_the_next(team: ForkedStage) -> None:
    team.remembering("a", "a:1 says so.", SLOW)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
    (session,) = team.sessions()
    before = session.read_bytes()
    fork = team.fork(conversation.id)
    async with team.open(resume=fork) as forked:
        await forked.say("two [NEXT: a]")
        await until_at_work(forked, "a")
        await forked.cancel()
        await forked.until_quiet()
        await tell(forked, "three [NEXT: a]")

    assert session.read_bytes() == before
    assert team.origins("a") == ["forked", "forked"]
    assert ["two" in prompt for prompt in team.prompt_texts("a")] == [True, True]


async def test_a_copy_that_is_too_long_for_its_model_is_not_tried_again(team: ForkedStage) -> None:
    team.remembering("a", "a:1 says so.", [{"error": 400, "message": "prompt is too long"}])
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
    fork = team.fork(conversation.id)
    async with team.open(resume=fork) as forked:
        await tell(forked, "two [NEXT: a]")
        await forked.retry()
        await forked.until_quiet()

    assert team.origins("a") == ["forked", "rebuilt: its last turn in its session was too long for its model"]


async def test_who_forgot_has_forgotten_in_the_fork(team: ForkedStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await conversation.forget("a", by="kim")
    fork = team.fork(conversation.id)
    async with team.open(resume=fork) as forked:
        await tell(forked, "two [NEXT: a]")
        await tell(forked, "three [NEXT: a]")

    assert team.origins("a") == ["rebuilt: kim made it forget", "resumed"]


async def test_people_see_what_was_in_the_copy(team: ForkedStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
    session = team.session_at(conversation.id)
    fork = team.fork(conversation.id)
    with SqliteStore(team.db) as store:
        left = store.memory(conversation.id, "a")
        assert left is not None
        said = [stored.message for stored in store.messages(conversation.id)]
        own = replace(left, turn_id="")
        content = Imported(messages=said, team="t", team_task=None, started_at=1, sessions={"a": own})
        imported = import_conversation(store, content, team_path=str(team.path))
    seen = []
    for copy in (fork, imported):
        async with team.open(resume=copy) as forked:
            await tell(forked, "two [NEXT: a]")
        with SqliteStore(team.db) as store:
            explained = explain(store, copy, store.turns(copy)[0].id)
        seen.append((explained.in_session, [known.sequence for known in explained.known]))

    assert seen == [
        (f"a copy of {session}, after turn 1, with 1 turn in it", [1, 2]),
        (f"a copy of {session}, with 1 turn in it", [1, 2]),
    ]


async def test_people_are_not_told_that_a_copy_has_what_its_agent_may_not_see(team: ForkedStage) -> None:
    team.remembering("a", visibility="addressed")
    async with team.open() as conversation:
        for text in ("one [NEXT: a]", "secret [NEXT: b]", "two [NEXT: a]"):
            await tell(conversation, text)
    fork = team.fork(conversation.id)
    async with team.open(resume=fork) as forked:
        await tell(forked, "three [NEXT: a]")
    with SqliteStore(team.db) as store:
        explained = explain(store, fork, store.turns(fork)[0].id)

    assert team.origins("a") == ["forked"]
    assert [known.first_words.split()[0] for known in explained.known] == ["one", "a:1", "b:1", "two", "a:2"]


@pytest.mark.parametrize("reported", [None, "session-of-the-other"])
def test_what_is_not_known_to_be_a_copy_is_not_continued(reported: str | None, team: ForkedStage) -> None:
    """The next turn would write to the session of another conversation, or to a person's own."""
    file = team.folder / "homes" / "claude" / "projects" / "p" / "session-of-the-other.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("{}\n", encoding="utf-8")
    agent = agent_for(load_team(team.write()).team.member("a"), team.folder)
    use = SessionUse(origin="forked", id="session-of-the-other")
    plan = SessionPlan(use=use, lock=SessionLock(use.id))
    with SqliteStore(team.db) as store:
        memories = Memories(store, "c")
        left = memories.after(agent, plan, Seen(since=1, seen_to=1), Started(session_id=reported), None, at=1)

    assert left is not None
    assert left.session_id == ""
