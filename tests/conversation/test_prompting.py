"""What an agent is given, what is recorded about it, and what keeps it from being given anything."""

import sys
from pathlib import Path

import pytest
from tests.conversation.stage import Stage, said, tell

from bullpen.errors import NobodyToAsk
from bullpen.store.base import Turn, TurnRecord


async def record_of(stage: Stage, *says: str) -> tuple[TurnRecord, Turn]:
    """Return the record of the last turn after these messages."""
    async with stage.open() as conversation:
        for text in says:
            await tell(conversation, text)
        turn = (await conversation.read(lambda store, id_: store.turns(id_)))[-1]
        record = await conversation.read(lambda store, id_: store.record(id_, turn.id))
        assert record is not None
        return record, turn


async def test_prompt_and_system_text_are_recorded_exactly(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.settings["hand_over_note"] = True
    stage.person("kim")
    stage.agent("a", [{"say": "Yes"}, {"usage": {"input": 7, "output": 3}, "cost": 0.5}], agent="claude")
    stage.members["a"]["system_instruction"] = ["Be brief.", "Be kind."]
    record, turn = await record_of(stage, "[TEAM_TASK: ship] Ready? 准备好了吗")
    assert record.prompt in stage.prompt("a").replace("\\n", "\n")
    assert record.system is not None
    assert record.system.startswith("Be brief.\n\nBe kind.")
    assert "kim" in record.system
    assert "ship" in record.prompt
    assert record.report.message_bytes_cut == 0
    assert "--member=" in " ".join(record.command)
    assert b'"type"' in record.stream
    assert turn.usage is not None
    assert (turn.usage.cost_usd, turn.state, turn.failure) == (0.5, "done", None)
    assert turn.started_at is not None
    assert turn.ended_at is not None
    assert turn.queued_at <= turn.started_at <= turn.ended_at


async def test_the_report_says_what_was_left_out(team: Stage) -> None:
    team.members["a"]["max_bytes"] = 400
    record, _ = await record_of(team, "x" * 380, "Well? [NEXT: a]")
    assert record.report.dropped_messages == 1
    assert len(record.prompt.encode()) <= 400


async def test_a_window_of_zero_shows_only_the_message(team: Stage) -> None:
    team.members["a"]["window"] = 0
    async with team.open() as conversation:
        await tell(conversation, "Earlier [NEXT: b]")
        await tell(conversation, "Now [NEXT: a]")
    assert "Now" in team.prompt("a")
    assert "Earlier" not in team.prompt("a")


async def test_a_window_holds_the_newest_messages(team: Stage) -> None:
    team.members["a"]["window"] = 2
    async with team.open() as conversation:
        for word in ("one", "two", "three"):
            await tell(conversation, f"{word} [NEXT: b]")
        await tell(conversation, "Now [NEXT: a]")
    prompt = team.prompt("a")
    assert ("two" not in prompt, "three" in prompt, prompt.count("I am b.")) == (True, True, 1)


async def test_a_member_may_see_only_what_concerns_it(team: Stage) -> None:
    team.person("lee")
    team.members["a"]["visibility"] = "addressed"
    async with team.open() as conversation:
        await tell(conversation, "Between us [NEXT: b]", sender="kim")
        await tell(conversation, "For you [NEXT: a]", sender="kim")
        await tell(conversation, "Secret [NEXT: lee]", sender="kim")
        await tell(conversation, "Again [NEXT: a]", sender="kim")
    prompt = team.prompt("a")
    assert "For you" in prompt
    assert "I am a." in prompt
    assert "Between us" not in prompt
    assert "Secret" not in prompt


@pytest.mark.parametrize(
    ("tune", "words"),
    [
        ({"max_bytes": 50, "system_instruction": "Be brief." * 9}, "does not fit into 50 bytes"),
        ({"instruction_file": "NOTES.md"}, "'NOTES.md' does not exist"),
        ({"instruction_file": "big.md"}, "longer than 256 KiB"),
        ({"instruction_file": "../outside.md"}, "lies outside"),
        ({"cwd": "nowhere"}, "nowhere does not exist"),
        ({"command": ["no-such-program-anywhere"]}, "no-such-program-anywhere was not found"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_what_cannot_be_prepared_fails_with_a_sentence_and_can_be_tried_again(
    team: Stage, tune: dict[str, object], words: str
) -> None:
    (team.folder / "big.md").write_text("x" * 300_000)
    (team.folder.parent / "outside.md").write_text("no")
    team.members["a"] |= tune
    async with team.open() as conversation:
        await tell(conversation, "Go [NEXT: a & b, c]")
        assert (await said(conversation))[1:] == ["b: I am b."]
        turn = await conversation.read(lambda store, id_: store.turn(id_, "1"))
        assert turn.state == "failed"
        assert turn.failure is not None
        assert words in turn.failure.message
        await conversation.retry()
        await conversation.until_quiet()
        assert [turn.id for turn in conversation.undecided] == ["4"]
        await conversation.skip()
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "c: I am c."


async def test_instruction_files_are_read_anew_for_every_turn(team: Stage) -> None:
    team.settings["instruction_file"] = "TEAM.md"
    team.members["a"]["instruction_file"] = "A.md"
    (team.folder / "TEAM.md").write_text("We are polite.")
    (team.folder / "A.md").write_text("You are first.")
    async with team.open() as conversation:
        await tell(conversation, "Go [NEXT: a]")
        (team.folder / "A.md").write_text("You are last.")
        await tell(conversation, "Go [NEXT: a]")
    first, last = team.prompts("a")
    assert first.index("We are polite.") < first.index("You are first.")
    assert "You are last." in last
    assert "You are first." not in last


async def test_only_the_named_variables_are_passed_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "let me in")
    monkeypatch.setenv("MY_SECRET", "stay out")
    stage.person("kim")
    program = "import os; print(os.environ.get('MY_TOKEN'), os.environ.get('MY_SECRET'), os.getcwd())"
    folder = stage.folder / "place"
    folder.mkdir()
    stage.agent("a", command=[sys.executable, "-c", program], env=["MY_TOKEN", "NOT_SET"], cwd="place")
    async with stage.open() as conversation:
        assert (await tell(conversation, "Hello"))[-1] == f"a: let me in None {folder.resolve()}"


async def test_the_preview_is_what_the_agent_would_get(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: b]")
        preview = await conversation.preview("A")
        with pytest.raises(NobodyToAsk):
            await conversation.preview("kim")
        await conversation.ask("a")
        await conversation.until_quiet()
    assert team.prompt("a") == preview.prompt


async def test_the_hand_over_note_can_be_on_off_or_ones_own(stage: Stage, tmp_path: Path) -> None:
    stage.people_and_agents("kim", "a b")
    notes = []
    for setting in (True, False, "Shout when done."):
        stage.settings["hand_over_note"] = setting
        async with stage.open() as conversation:
            await tell(conversation, "Hello")
        notes.append(stage.prompt("a"))
    assert ["[NEXT:" in note for note in notes] == [True, False, False]
    assert "Shout when done." in notes[2]
