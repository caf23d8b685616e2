"""What an agent is told of its turns that did not end well."""

import pytest
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import Script, tell
from tests.conversation.test_session_leftovers import LOST

UNKNOWN = "before it was done. It is not known what it had done. Files may have been changed"
SILENT: Script = [{"hang": True}]
REFUSED: Script = [{"error": 429, "message": "Too many requests"}]
WORKED: Script = [{"tool": {"name": "Bash", "input": {"command": "make"}}}, {"exit": 3}]
CRASHED: Script = [{"think": "Hm."}, {"exit": 3}]


@pytest.fixture
def team(remembering: RememberingStage) -> RememberingStage:
    """A person, and an agent that remembers."""
    remembering.person("kim")
    remembering.remembering("a")
    return remembering


async def test_a_turn_that_is_cancelled_before_it_tells_of_anything_is_told(team: RememberingStage) -> None:
    """Codex for example does not tell of a command before that has run for a while."""
    team.remembering("a", "a:1 says so.", SILENT)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await conversation.say("two [NEXT: a]")
        await team.until_turn("a", 2)
        await conversation.cancel()
        await conversation.until_quiet()
        await conversation.skip()
        await tell(conversation, "three [NEXT: a]")

    assert f"Your turn 2 was cancelled {UNKNOWN}" in team.prompt_texts("a")[-1]


async def test_a_turn_that_crashed_in_silence_is_told_and_one_that_was_refused_is_not(team: RememberingStage) -> None:
    team.remembering("a", CRASHED, REFUSED)
    async with team.open() as conversation:
        for word in ("one", "two"):
            await tell(conversation, f"{word} [NEXT: a]")
            await conversation.skip()
        await tell(conversation, "three [NEXT: a]")

    last = team.prompt_texts("a")[-1]
    assert f"Your turn 1 failed {UNKNOWN}" in last
    assert "turn 2" not in last


async def test_turns_that_were_refused_do_not_hide_one_that_has_worked(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", WORKED, *[REFUSED] * 4)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")
        for _ in range(4):
            await conversation.retry()
            await conversation.until_quiet()
        await conversation.retry()
        await conversation.until_quiet()

    assert "It had used: Bash make." in team.prompt_texts("a")[-1]


async def test_a_lost_session_is_not_continued_after_turns_in_others_failed(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", LOST, *[CRASHED] * 4)
    async with team.open() as conversation:
        for number in range(7):
            await tell(conversation, f"w{number} [NEXT: a]")
            if conversation.undecided:
                await conversation.skip()

    lost = "rebuilt: its CLI lost its session in its last turn"
    assert team.origins("a") == ["new", "resumed", *[lost] * 5]
