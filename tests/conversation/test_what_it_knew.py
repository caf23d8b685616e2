"""What an explanation lists, already known and new, is what the model got: with agents that keep real session files."""

import pytest
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import tell

from bullpen.cli import main
from bullpen.view.explanation import Explanation, explain, explain_now


@pytest.fixture
def team(remembering: RememberingStage) -> RememberingStage:
    """A person, and two agents that remember."""
    remembering.person("kim")
    remembering.remembering("a")
    remembering.remembering("b", cli="codex")
    return remembering


def listed(explanation: Explanation) -> list[str]:
    """Return what was said in each message that an explanation lists, in order, without its markers."""
    seen = [one for one in explanation.messages if one.fate != "dropped"]
    return [one.first_words.partition(" [NEXT")[0] for one in sorted(seen, key=lambda one: one.sequence or 0)]


def known(explanation: Explanation) -> list[tuple[int | None, str | None]]:
    return [(one.sequence, one.since_turn) for one in explanation.known]


async def test_known_and_new_together_are_what_the_model_got(team: RememberingStage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a & b]")
        await tell(conversation, "two [NEXT: b, a]")
        await tell(conversation, "three [NEXT: a]")
        turns = await conversation.read(lambda store, id_: [turn.id for turn in store.turns(id_) if turn.member == "a"])
        explained = [await conversation.read(explain, turn) for turn in turns]
        now = await explain_now(conversation, "a")

    said = ["one", "two", "three", *(f"{name}:{number} says so." for name in "ab" for number in (1, 2, 3))]
    for explanation, texts in zip(explained, team.asked(), strict=True):
        got = "\n".join(texts)
        assert sorted(listed(explanation)) == sorted(words for words in said if words in got)
    assert known(explained[0]) == []
    assert {turn for _, turn in known(explained[2])} == {turns[0], turns[1]}
    assert {turn for _, turn in known(now)} == {*turns}


async def test_a_preview_lists_what_is_already_known(
    team: RememberingStage, capsys: pytest.CaptureFixture[str]
) -> None:
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")

    words = [str(team.path), "--to", "a", "--session", conversation.id, "--db", str(team.db), "--message", "two"]
    assert main(["preview", *words]) == 0
    shown = capsys.readouterr().out

    assert "2 messages already in its session: #1 to #2 since turn 1" in shown
    assert "continued after turn 1, with 1 turn in it" in shown
    prompt = shown.partition("--- prompt for a\n")[2].partition("\n---")[0]
    assert ["two" in prompt, "one" in prompt] == [True, False]
