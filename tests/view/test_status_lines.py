"""What a person can type about a turn that failed."""

import pytest

from bullpen.view.state import ConversationView, MemberView, Spent, UndecidedView
from bullpen.view.status_lines import left_open_lines, queue_lines, status_line


@pytest.mark.parametrize(("agents", "answers"), [(1, "/retry or /skip"), (2, "/retry, /skip or /hand NAME")])
def test_a_turn_is_handed_over_only_where_there_is_another_agent(agents: int, answers: str) -> None:
    members = (_member("kim", ""), *(_member(name, "claude") for name in ("max", "eva")[:agents]))
    ended = UndecidedView(turn="3", member="max", state="failed", text="It crashed.")
    view = ConversationView(id="x", team="t", is_open=True, members=members, undecided=(ended,))

    assert list(left_open_lines(view)) == [f"Waiting for your decision: turn 3 of max. In chat: {answers}."]
    assert queue_lines(view) == [f"✗ turn 3  max: {answers}?"]


def test_a_paused_conversation_waits_for_a_person_and_needs_no_fifth_word() -> None:
    view = ConversationView(id="x", team="t", is_open=True, paused="20 turns.")

    assert status_line(view) == "◆ waits for you"


def _member(name: str, agent: str) -> MemberView:
    kind = "ai" if agent else "human"
    return MemberView(name=name, display_name=name, type=kind, role="", color="", agent=agent, spent=Spent())
