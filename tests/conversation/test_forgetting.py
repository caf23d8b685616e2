"""Making an agent forget: its next turn begins a new session, and everyone learns who wanted that."""

import pytest
from tests.conversation.stage import FAIL, GO, Script, Stage, events_so_far, tell, until_at_work

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Forgotten, Said
from bullpen.errors import NobodyToAsk, NothingToForget, UnknownMember, UnknownSender
from bullpen.memory import SessionUse
from bullpen.store.base import Store
from bullpen.view.decided import decisions_in


@pytest.fixture
def shop(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Two people, an agent with a memory of its own and one without."""
    stage.put_claude_on_the_path(monkeypatch)
    stage.people_and_agents("kim lee", "b")
    stage.agent("a", agent="claude")
    return stage


def sessions(store: Store, conversation_id: str) -> list[SessionUse | None]:
    """Return in which session every turn ran."""
    turns = [store.record(conversation_id, turn.id) for turn in store.turns(conversation_id)]
    return [None if turn is None else turn.report.session for turn in turns]


async def last_session(conversation: Conversation) -> tuple[str, str]:
    """Return how the last turn got its session, and why."""
    use = (await conversation.read(sessions))[-1]
    assert use is not None
    return use.origin, use.reason


async def test_the_next_turn_begins_a_new_session_and_says_who_wanted_that(shop: Stage) -> None:
    async with shop.open() as conversation:
        await tell(conversation, "[FROM: kim] Go [NEXT: a]")
        await conversation.forget("a", by="lee")
        assert conversation.progress.forgotten == {"a": "lee"}
        assert events_so_far(conversation, Forgotten) == [Forgotten(member="a", by="lee")]
    async with shop.open(conversation.id) as again:
        assert again.progress.forgotten == {"a": "lee"}
        await tell(again, "[FROM: kim] And now? [NEXT: a]")
        assert await last_session(again) == ("rebuilt", "lee made it forget")
        assert again.progress.forgotten == {}
        rebuilt = [(one.message.speaker.role_id, one.rebuilt) for one in events_so_far(again, Said)]
        assert rebuilt == [("kim", ""), ("a", "lee made it forget")]
        decided = [(one.person, one.choice) for one in await again.read(decisions_in)]
        assert decided == [("lee", "forget")]


async def test_what_is_forgotten_twice_is_one_decision(shop: Stage) -> None:
    async with shop.open() as conversation:
        await tell(conversation, "[FROM: kim] Go [NEXT: a]")
        await conversation.forget("a", by="lee")
        await conversation.forget("a", by="kim")
        assert conversation.progress.forgotten == {"a": "lee"}
        assert len(await conversation.read(decisions_in)) == 1


async def test_what_is_wanted_again_while_a_new_session_begins_is_not_lost(shop: Stage) -> None:
    slow: Script = [{"say": "Second "}, GO, {"say": "done."}]
    shop.agent("a", "First.", slow, "Third.", "Fourth.", agent="claude")
    async with shop.open() as conversation:
        await tell(conversation, "[FROM: kim] Go [NEXT: a]")
        await conversation.forget("a", by="kim")
        await conversation.say("[FROM: kim] And now? [NEXT: a]")
        await until_at_work(conversation, "a")
        await conversation.forget("a", by="kim")
        await conversation.forget("a", by="lee")
        shop.go()
        await conversation.until_quiet()
        assert conversation.progress.forgotten == {"a": "kim"}
        await tell(conversation, "[FROM: kim] And now? [NEXT: a]")
        assert await last_session(conversation) == ("rebuilt", "kim made it forget")
        assert (conversation.progress.forgotten, conversation.progress.forgetting) == ({}, {})
        await tell(conversation, "[FROM: kim] And now? [NEXT: a]")
        assert "forget" not in (await last_session(conversation))[1]
        assert len(await conversation.read(decisions_in)) == 2


async def test_what_is_wanted_twice_while_an_old_session_is_used_is_done_once(shop: Stage) -> None:
    shop.agent("a", [{"say": "First "}, GO, {"say": "done."}], "Second.", "Third.", agent="claude")
    async with shop.open() as conversation:
        await conversation.say("[FROM: kim] Go [NEXT: a]")
        await until_at_work(conversation, "a")
        await conversation.forget("a", by="kim")
        await conversation.forget("a", by="lee")
        shop.go()
        await conversation.until_quiet()
        await tell(conversation, "[FROM: kim] And now? [NEXT: a]")
        assert await last_session(conversation) == ("rebuilt", "kim made it forget")
        await tell(conversation, "[FROM: kim] And now? [NEXT: a]")
        assert "forget" not in (await last_session(conversation))[1]


async def test_the_reply_of_a_turn_that_ran_meanwhile_does_not_count(shop: Stage) -> None:
    shop.agent("a", [{"say": "First "}, GO, {"say": "done."}], "Second.", agent="claude")
    async with shop.open() as conversation:
        await conversation.say("[FROM: kim] Go [NEXT: a]")
        await until_at_work(conversation, "a")
        await conversation.forget("a", by="kim")
        shop.go()
        await conversation.until_quiet()
        assert conversation.message_count == 2
        assert conversation.progress.forgotten == {"a": "kim"}
        await tell(conversation, "[FROM: kim] And now? [NEXT: a]")
        assert await last_session(conversation) == ("rebuilt", "kim made it forget")


async def test_a_turn_that_fails_has_not_forgotten(shop: Stage) -> None:
    shop.agent("a", "First.", FAIL, "Third.", agent="claude")
    async with shop.open() as conversation:
        await tell(conversation, "[FROM: kim] Go [NEXT: a]")
        await conversation.forget("a", by="kim")
        await tell(conversation, "[FROM: kim] And now? [NEXT: a]")
        assert conversation.progress.forgotten == {"a": "kim"}
        await conversation.retry(by="kim")
        await conversation.until_quiet()
        assert await last_session(conversation) == ("rebuilt", "kim made it forget")
        assert conversation.progress.forgotten == {}


async def test_who_has_nothing_to_forget_gets_a_sentence(shop: Stage) -> None:
    async with shop.open() as conversation:
        with pytest.raises(NothingToForget, match="a has no session yet, so there is nothing to forget"):
            await conversation.forget("a", by="kim")
        with pytest.raises(NothingToForget, match="b has no memory of its own, so there is nothing to forget: bullpen"):
            await conversation.forget("b", by="kim")
        with pytest.raises(NobodyToAsk, match="lee is a person"):
            await conversation.forget("lee", by="kim")
        with pytest.raises(UnknownMember):
            await conversation.forget("eve", by="kim")
        with pytest.raises(UnknownSender):
            await conversation.forget("a", by="b")
        assert await conversation.read(decisions_in) == []
