"""What exactly did Codex see in turn 14, and what was left out?"""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bullpen.context.prompt import AssemblerOutput
from bullpen.context.report import PromptReport
from bullpen.errors import UnknownTurn
from bullpen.messages import ConversationMessage
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, EXAMPLE_TEAM, KAI, OWNER, write_example
from bullpen.view.difference import SectionDifference, difference
from bullpen.view.explanation import Explanation, SeenMessage, explain
from bullpen.view.not_offered import NotOffered


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "a.db")
    write_example(store)
    return store


def test_what_a_turn_saw_and_what_it_did_not(store: SqliteStore) -> None:
    explanation = explain(store, EXAMPLE_ID, "3")

    assert explanation.turn is not None
    assert (explanation.member, explanation.turn.state, explanation.seconds) == ("sarah", "done", 12.5)
    assert explanation.asked_by == SeenMessage(
        sequence=5,
        id="m5",
        speaker="Kai",
        first_words="Sarah, please review it, and Max, please write the test.",
        said_bytes=56,
        fate="kept",
    )
    why = "did not fit into 300 bytes"
    assert [(seen.sequence, seen.fate, seen.why) for seen in explanation.context] == [
        (2, "dropped", why),
        (3, "dropped", why),
        (4, "dropped", why),
    ]
    assert explanation.not_offered == (NotOffered(first=1, last=1, why="its window is 3"),)
    assert (explanation.total_bytes, explanation.max_bytes) == (121, 300)
    assert explanation.section_bytes == {"system": 23, "team_task": 28, "context": 0, "message": 66, "separators": 4}
    assert explanation.cuts == ("CONTEXT trimmed to 0 of 3 messages",)
    assert explanation.command == ("openai-codex", "--json", "-")
    assert explanation.prompt is not None
    assert explanation.prompt.startswith("[SYSTEM]\nYou are Sarah.")


def test_a_turn_whose_system_text_went_beside_the_prompt(store: SqliteStore) -> None:
    explanation = explain(store, EXAMPLE_ID, "4")

    assert explanation.system == "You are Max."
    assert [(seen.sequence, seen.fate) for seen in explanation.context] == [(2, "kept"), (3, "kept"), (4, "kept")]
    assert explanation.turn is not None
    assert explanation.turn.failure is not None
    assert explanation.stream_bytes == 0


def test_a_turn_that_has_not_started_was_given_nothing(store: SqliteStore) -> None:
    explanation = explain(store, EXAMPLE_ID, "5")

    assert (explanation.prompt, explanation.seconds, explanation.context) == (None, None, ())


def test_a_turn_that_does_not_exist(store: SqliteStore) -> None:
    with pytest.raises(UnknownTurn):
        explain(store, EXAMPLE_ID, "99")


def test_an_explanation_is_data(store: SqliteStore) -> None:
    explanation = explain(store, EXAMPLE_ID, "3")

    assert msgspec.json.decode(msgspec.json.encode(explanation), type=Explanation) == explanation


def conversation(
    store: Store, report: PromptReport, *, messages: int, answers: int, team_file: str = EXAMPLE_TEAM
) -> Explanation:
    """Explain a turn of max that answers one of many messages, said a millisecond apart, and starts at 100."""
    store.create("c", team="T", team_file=team_file, started_at=1)
    store.claim("c", OWNER, is_alive=lambda _: False)
    for number in range(1, messages + 1):
        message = ConversationMessage(id=f"m{number}", content=f"word {number}", speaker=KAI, timestamp=number)
        turn = WaitingTurn(id="1", member="max", message_id=f"m{number}")
        store.append("c", message, turns=[turn] if number == answers else [], owner=OWNER)
    store.start_turn("c", "1", owner=OWNER, given=AssemblerOutput(prompt="p", report=report), at=100)
    return explain(store, "c", "1")


def report(*ids: str, **fields: Any) -> PromptReport:
    return PromptReport(agent_type="claude-code", max_bytes=300, section_bytes={}, context_ids=ids, **fields)


def test_messages_outside_the_window_are_counted(store: SqliteStore) -> None:
    explanation = conversation(store, report("m13", "m14", "m15"), messages=16, answers=16)

    (left_out,) = explanation.not_offered
    assert left_out.sentence == "12 messages (#1 to #12) were not offered: its window is 3."


def test_a_member_that_sees_only_what_is_addressed_to_it(store: SqliteStore) -> None:
    team = EXAMPLE_TEAM.replace("window = 3\n\n", 'window = 3\nvisibility = "addressed"\n\n')
    explanation = conversation(store, report("m2", "m5", "m6"), messages=7, answers=7, team_file=team)

    only_addressed = "it sees only what it said, what was addressed to it, and what went to everyone"
    assert explanation.not_offered == (
        NotOffered(first=1, last=1, why="its window is 3"),
        NotOffered(first=3, last=4, why=only_addressed),
    )


def test_what_was_said_while_a_turn_waited(store: SqliteStore) -> None:
    explanation = conversation(store, report("m1"), messages=4, answers=2)

    assert explanation.not_offered == (NotOffered(first=3, last=4, why="said after #2, which it was to answer"),)


def test_without_a_team_file_nothing_is_made_up(store: SqliteStore) -> None:
    explanation = conversation(store, report("m3"), messages=4, answers=4, team_file="")

    assert explanation.not_offered == (NotOffered(first=1, last=2, why="outside its window"),)


def test_a_message_that_was_cut(store: SqliteStore) -> None:
    cut = report("m2", dropped_messages=1, message_bytes_cut=1200, instruction_bytes_cut=7)
    explanation = conversation(store, cut, messages=3, answers=3)

    assert (explanation.answers.fate, explanation.answers.why) == ("cut", "its last 1,200 bytes did not fit")
    assert explanation.context[0].why == "the message alone filled the budget"
    assert explanation.instruction_bytes_cut == 7
    assert len(explanation.cuts) == 3


def test_a_message_that_the_store_does_not_know(store: SqliteStore) -> None:
    explanation = conversation(store, report("#1"), messages=2, answers=2)

    assert [(seen.sequence, seen.id, seen.fate) for seen in explanation.context] == [(None, "#1", "kept")]


def test_two_members_beside_each_other(store: SqliteStore) -> None:
    compared = difference(explain(store, EXAMPLE_ID, "3"), explain(store, EXAMPLE_ID, "4"))

    assert compared.only_left == ()
    assert [seen.sequence for seen in compared.only_right] == [2, 3, 4]
    assert compared.in_both == 1
    assert compared.sections == (
        SectionDifference(section="system", left_bytes=23, right_bytes=12),
        SectionDifference(section="context", left_bytes=0, right_bytes=307),
    )
    assert compared.system_diff.endswith("+You are Max.")
    assert "--- turn 3 (sarah)\n+++ turn 4 (max)\n" in compared.prompt_diff
    assert "+- Kai -> max: Cookie or token? 你怎么看?" in compared.prompt_diff


def test_a_turn_does_not_differ_from_itself(store: SqliteStore) -> None:
    compared = difference(explain(store, EXAMPLE_ID, "3"), explain(store, EXAMPLE_ID, "3"))

    nothing = ((), (), (), "", "")
    parts = (compared.only_left, compared.only_right, compared.sections, compared.system_diff, compared.prompt_diff)
    assert parts == nothing


def test_in_a_relay_it_answers_the_last_reply(store: SqliteStore) -> None:
    explanation = conversation(store, report("m1", "m2", message_id="m3"), messages=4, answers=1)

    assert (explanation.asked_by.sequence, explanation.answers.sequence) == (1, 3)
    assert explanation.not_offered == (NotOffered(first=4, last=4, why="said after #3, which it was to answer"),)


def test_a_turn_to_which_nothing_was_sent_saw_nothing(store: SqliteStore) -> None:
    store.create("c", team="T", team_file=EXAMPLE_TEAM, started_at=1)
    store.claim("c", OWNER, is_alive=lambda _: False)
    message = ConversationMessage(id="m1", content="word", speaker=KAI, timestamp=1)
    store.append("c", message, turns=[WaitingTurn(id="1", member="max", message_id="m1")], owner=OWNER)
    store.start_turn("c", "1", owner=OWNER, given=AssemblerOutput(prompt="", report=report()), at=100)

    answers = explain(store, "c", "1").answers

    assert (answers.fate, answers.why) == ("dropped", "nothing was sent")


def test_the_rules_that_hold_for_a_member_are_named() -> None:
    seen = SeenMessage(sequence=1, id="m1", speaker="kim", first_words="Hi", said_bytes=2, fate="kept")
    explanation = Explanation(conversation_id="c", member="a", turn=None, seconds=None, answers=seen, asked_by=seen)

    assert explanation.rules == ""
    own = replace(explanation, instruction_files=("AGENTS.md", "style.md"))
    assert own.rules == "AGENTS.md, style.md"
    assert replace(own, read_by_itself=("part/CLAUDE.md",)).rules == (
        "AGENTS.md, style.md, part/CLAUDE.md (its program reads that by itself)"
    )
