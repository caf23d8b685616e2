"""Whatever happens in a conversation, each model gets each message once: a property of random conversations."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import Script, tell, until_at_work
from tests.conversation.what_models_got import problems, what_was_asked

from bullpen.conversation.conversation import Conversation
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.played import played

SLOW: Script = [{"say": "half of it"}, {"hang": True}]
FAILS: Script = [{"say": "half of it"}, {"exit": 3}]
WHOM = ("a", "b", "a & b", "a, b", "b, a", "a & b, c", "c, a & b", "c", "kim")
ACTIONS = ("say", "say", "say", "say more", "ask", "cancel", "fail", "reopen", "forget", "task", "note")


class Life:
    """A conversation that goes as the actions say."""

    def __init__(self, stage: RememberingStage) -> None:
        self.stage = stage
        self.words = 0

    async def live(self, actions: Sequence[tuple[str, str]]) -> str:
        rest = list(actions)
        conversation_id: str | None = None
        while True:
            async with self.stage.open(resume=conversation_id) as conversation:
                await tell(conversation, self.word("a & b"))
                conversation_id = conversation.id
                while rest:
                    action, whom = rest.pop(0)
                    if action == "reopen":
                        break
                    await self.act(conversation, action, whom)
                else:
                    await tell(conversation, self.word("a & b"))
                    return conversation.id

    async def act(self, conversation: Conversation, action: str, whom: str) -> None:
        match action:
            case "say":
                await tell(conversation, self.word(whom))
            case "say more":
                for one in (whom, "a", "b"):
                    await conversation.say(self.word(one))
                await conversation.until_quiet()
            case "ask":
                await conversation.ask("a")
                await conversation.until_quiet()
            case "cancel":
                self.next_turn("a", SLOW)
                await conversation.say(self.word("a & b"))
                await until_at_work(conversation, "a")
                await conversation.cancel()
                await self.decide(conversation, whom)
            case "fail":
                self.next_turn("a", FAILS)
                await tell(conversation, self.word("a & b"))
                await self.decide(conversation, whom)
            case "forget":
                await conversation.forget("b")
            case "task":
                await conversation.set_task(f"Task {self.words}." if whom != "kim" else None)
            case "note":
                await conversation.note(self.word(""))

    async def decide(self, conversation: Conversation, whom: str) -> None:
        await conversation.until_quiet()
        for ended in conversation.undecided:
            if len(whom) == 1:
                await conversation.retry(ended.id)
            else:
                await conversation.skip(ended.id)
        await conversation.drop()
        await conversation.continue_turns()
        await conversation.until_quiet()

    def word(self, whom: str) -> str:
        self.words += 1
        return f"w{self.words} 😀" + (f" [NEXT: {whom}]" if whom else "")

    def next_turn(self, name: str, script: Script) -> None:
        begun = len(list((self.stage.folder / "agents" / name).glob("prompt-*")))
        self.stage.script(name, script, begun + 1)


# A smaller example would take minutes.
@settings(max_examples=10, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(actions=st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(WHOM)), max_size=7))
def test_no_message_is_missing_and_none_is_sent_twice(actions: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch, played():
        stage = RememberingStage(Path(folder))
        stage.limits["identical_replies"] = 100
        for name, value in {**stage.environment(), "XDG_STATE_HOME": folder, "BULLPEN_HOME": folder}.items():
            patch.setenv(name, value)
        stage.person("kim")
        stage.remembering("a")
        stage.remembering("b", cli="codex")
        stage.remembering("c", window=1000)

        conversation_id = asyncio.run(asyncio.wait_for(Life(stage).live(actions), 100))

        with SqliteStore(stage.db) as store:
            assert list(problems(store, conversation_id, what_was_asked(stage.folder / "homes"))) == []
            assert store.fsck() == []
            done = [turn for turn in store.turns(conversation_id) if turn.state == "done"]
        assert len(done) >= 4
