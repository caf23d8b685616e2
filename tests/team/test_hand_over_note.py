"""The note on the team and on handing over, as the agents read it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.context import build_prompt, read_markers
from bullpen.context.builder import PromptInput
from bullpen.team.hand_over_note import MOST_LINES, hand_over_note
from bullpen.team.team import Member, Team

KIM = Member(name="kim", type="human", display_name="Kim Lee", role="product owner")
MAX = Member(name="max", type="ai", display_name="Max", role="the builder")
SARAH = Member(name="sarah", type="ai", role="reviewer")
CAROL = Member(name="carol", type="ai")


def team_of(*members: Member, note: bool | str = True) -> Team:
    return Team(name="Reading room", lead="max", members=members, hand_over_note=note)


def test_the_whole_note() -> None:
    assert hand_over_note(team_of(KIM, MAX, SARAH, CAROL), MAX) == (
        "You are Max (max) in the team “Reading room”. Your role: the builder. With you in this conversation:\n"
        "- kim (Kim Lee), person: product owner\n"
        "- sarah, agent: reviewer\n"
        "- carol, agent\n"
        "To hand over, write a marker at the end of your reply, as plain text, not in code or in a quote:\n"
        "[NEXT: sarah] lets sarah answer next.\n"
        "[NEXT: sarah, carol] lets them answer one after the other.\n"
        "[NEXT: sarah & carol] lets them answer at the same time; neither sees the other's answer.\n"
        "Spell names as above. Without a marker the conversation returns to the person who asked.\n"
        "[ASK: yes | no | later] at the end of a question to a person lets them answer with one key."
    )


def test_the_note_can_be_turned_off_or_replaced() -> None:
    assert hand_over_note(team_of(KIM, MAX, note=False), MAX) == ""
    assert hand_over_note(team_of(KIM, MAX, note="Be brief."), MAX) == "Be brief."


@pytest.mark.parametrize(
    ("may_address", "addressed"),
    [
        (("carol",), {"carol"}),
        (("kim", "carol"), {"carol", "kim"}),
        (("kim",), {"kim"}),
        ((), set()),
    ],
)
def test_only_members_that_it_may_address_are_in_the_examples(
    may_address: tuple[str, ...], addressed: set[str]
) -> None:
    max_ = Member(name="max", type="ai", may_address=may_address)

    note = hand_over_note(team_of(KIM, max_, SARAH, CAROL), max_)

    assert set(read_markers(note).addressees) == addressed
    assert "- sarah, agent: reviewer" in note
    assert ("You may hand over only to: " in note) == bool(may_address)


def test_one_that_may_address_nobody_is_told_so() -> None:
    alone = Member(name="max", type="ai", may_address=())

    note = hand_over_note(team_of(KIM, alone), alone)

    assert "\nYou cannot hand over: after your reply the conversation returns to the person who asked.\n" in note


def test_nobody_answers_at_once_with_a_person() -> None:
    note = hand_over_note(team_of(KIM, MAX, SARAH), MAX)

    assert "[NEXT: sarah, kim]" in note
    assert "&" not in note


def test_the_task_is_mentioned_to_those_who_may_set_it() -> None:
    may = Member(name="zoe", type="ai", may_set_task=True)
    team = team_of(KIM, MAX, may)

    assert "[TEAM_TASK]" in hand_over_note(team, may)
    assert "[TEAM_TASK]" not in hand_over_note(team, MAX)


def test_the_agent_knows_where_a_person_is_asked_and_whether_it_may_drop() -> None:
    boss = Member(name="boss", type="ai", permissions="full", may_drop=True)
    team = team_of(KIM, MAX, SARAH, boss)

    assert "A person is asked before a hand-over to boss takes effect." in hand_over_note(team, MAX).splitlines()
    assert "A person is asked" not in hand_over_note(team, boss)
    assert "[DROP: " in hand_over_note(team, boss)
    assert "[DROP: " not in hand_over_note(team, MAX)


def test_the_agent_knows_that_it_works_in_a_worktree() -> None:
    ann = Member(name="ann", type="ai", permissions="edit", workspace="own")
    reader = Member(name="reader", type="ai", workspace="own")
    both = Team(name="t", members=(Member(name="kim", type="human"), ann, reader), lead="ann")
    assert "You work in a git worktree of your own" in hand_over_note(both, ann)
    assert "worktree" not in hand_over_note(both, reader)


def test_it_reaches_the_agent_as_it_is() -> None:
    note = hand_over_note(team_of(KIM, MAX, SARAH, CAROL), MAX)

    for agent_type in ("claude-code", "openai-codex", "google-gemini", "plain"):
        output = build_prompt(
            PromptInput(agent_type=agent_type, message="Hello", system_instruction_text=f"Build.\n\n{note}")
        )
        assert note in (output.system_flag or "") + output.prompt


TEXTS = st.text() | st.text(alphabet="ab \n\r\t\v\f\x1b\x85\u2028\u2029[]")


@given(display_name=TEXTS, role=TEXTS, team_name=TEXTS, others=st.integers(min_value=1, max_value=40))
def test_nothing_in_a_team_file_breaks_a_line(display_name: str, role: str, team_name: str, others: int) -> None:
    you = Member(name="max", type="ai", display_name=display_name, role=role, may_set_task=True)
    crowd = [Member(name=f"m{n}", type="ai", display_name=display_name, role=role) for n in range(others)]

    note = hand_over_note(Team(name=team_name, lead="max", members=(you, *crowd)), you)

    assert len(note.splitlines()) <= MOST_LINES + 9 == 15
    assert all(f"m{n}" in note for n in range(others))
    assert all(line.isprintable() for line in note.splitlines())
