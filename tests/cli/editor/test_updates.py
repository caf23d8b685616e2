"""Events as an editor shows them: one text after the other, each with the name of who speaks."""

from pathlib import Path
from typing import Any

import pytest

from bullpen.cli.editor.questions import chosen, permission_request
from bullpen.cli.editor.updates import Updates
from bullpen.conversation.events import (
    Asked,
    Continued,
    ConversationEvent,
    Dropped,
    Lagged,
    Queued,
    Said,
    Trouble,
    TurnBegan,
    TurnEnded,
    TurnEvent,
)
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.team.reader import read_team
from bullpen.turn_events import ApprovalAsked, Event, TextDelta, TodoItem, TodoList, ToolFinished, ToolStarted, Usage
from bullpen.view.commands import typed_choice
from bullpen.view.decisions import decisions
from bullpen.view.state import Spent

TEAM = read_team(
    'name = "shop"\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = ["a"]\n'
    '[[member]]\nname = "sarah"\ncommand = ["a"]\ncwd = "sub"\n'
)


def turn(number: str, member: str) -> WaitingTurn:
    return WaitingTurn(id=number, member=member, message_id="m", intent=1)


def began(number: str, member: str) -> TurnBegan:
    return TurnBegan(turn=turn(number, member), at=0, prompt_bytes=1)


def does(number: str, member: str, event: Event) -> TurnEvent:
    return TurnEvent(turn_id=number, member=member, event=event)


def writes(number: str, member: str, text: str) -> TurnEvent:
    return does(number, member, TextDelta(text))


def ended(number: str, member: str, **more: Any) -> TurnEnded:
    return TurnEnded(turn_id=number, member=member, state=more.pop("state", "done"), seconds=1, **more)


def said(text: str, who: str = "kim", turn_id: str | None = None, notes: tuple[str, ...] = ()) -> Said:
    kind: Any = "human" if who == "kim" else "ai"
    speaker = Speaker(role_id=who, role_name=who, role_title=who, type=kind)
    message = ConversationMessage(id=text, timestamp=0, speaker=speaker, content=text)
    return Said(sequence=1, message=message, turn_id=turn_id, notes=notes)


def told(*events: ConversationEvent, updates: Updates | None = None) -> list[dict[str, Any]]:
    updates = updates or Updates(TEAM, Path("/work"))
    return [update for event in events for update in updates.of(event)]


def written(*events: ConversationEvent) -> str:
    return "".join(update["content"]["text"] for update in told(*events) if "chunk" in update["sessionUpdate"])


def test_of_two_that_run_at_once_one_is_followed_and_the_other_is_written_when_it_ends() -> None:
    both = (began("1", "max"), began("2", "sarah"))
    mixed = (writes("1", "max", "a"), writes("2", "sarah", "x"), writes("1", "max", "b"), writes("2", "sarah", "y"))

    assert written(*both, *mixed, ended("1", "max")) == "**max:**\n\nab\n\n**sarah:**\n\nxy"
    assert written(*both, *mixed, ended("2", "sarah"), writes("1", "max", "c")) == (
        "**max:**\n\nab\n\n**sarah:**\n\nxy\n\n**max:**\n\nc"
    )
    assert written(*both, *mixed, ended("1", "max"), writes("2", "sarah", "z")) == "**max:**\n\nab\n\n**sarah:**\n\nxyz"


def test_a_reply_that_was_not_streamed_is_written_and_one_that_was_is_not_repeated() -> None:
    assert written(began("1", "max"), said("Hello.", "max", "1"), ended("1", "max")) == "**max:**\n\nHello."
    streamed = (began("1", "max"), writes("1", "max", "Hm. Hel"), writes("1", "max", "lo."))
    assert written(*streamed, said("Hello.", "max", "1"), ended("1", "max")) == "**max:**\n\nHm. Hello."
    assert written(*streamed, said("Other.", "max", "1")) == "**max:**\n\nHm. Hello.\n\nOther."


def test_text_after_a_tool_is_a_paragraph_of_its_own() -> None:
    tool = (ToolStarted(id="t", name="Bash", input={"command": "ls"}), ToolFinished(id="t", output="x"))

    text = written(
        began("1", "max"), writes("1", "max", "a"), *(does("1", "max", e) for e in tool), writes("1", "max", "b")
    )

    assert text == "**max:**\n\na\n\nb"


def test_what_is_said_here_is_not_shown_again_and_what_is_said_elsewhere_is() -> None:
    updates = Updates(TEAM, Path("/work"))
    updates.own.append("Hi.")

    assert told(said("Hi.", notes=("Nobody here is called eve.",)), updates=updates) == [
        {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "> Nobody here is called eve."},
        }
    ]
    [again] = told(said("Hi."), updates=updates)
    assert (again["sessionUpdate"], again["content"]["text"]) == ("user_message_chunk", "Hi.")


def test_plans_of_all_are_one_and_end_with_their_turns() -> None:
    plan = TodoList((TodoItem("build", done=True),)), TodoList((TodoItem("review", done=False),))
    events = (began("1", "max"), began("2", "sarah"), does("1", "max", plan[0]), does("2", "sarah", plan[1]))

    plans = [update["entries"] for update in told(*events, ended("1", "max"))]

    assert [[entry["content"] for entry in entries] for entries in plans] == [
        ["max: build"],
        ["max: build", "sarah: review"],
        ["sarah: review"],
    ]


def test_an_editor_is_not_told_an_estimate_as_what_was_spent() -> None:
    updates = Updates(TEAM, Path("/work"), lambda: Spent(cost_usd=1.5, is_estimate=True))

    [one] = told(began("1", "max"), ended("1", "max", usage=Usage(input_tokens=5, context_window=9)), updates=updates)

    meta = {"estimatedCost": {"amount": 1.5, "currency": "USD"}}
    assert one == {"sessionUpdate": "usage_update", "used": 5, "size": 9, "_meta": meta}


def test_what_was_used_is_told_with_what_the_conversation_has_cost() -> None:
    updates = Updates(TEAM, Path("/work"), lambda: Spent(cost_usd=1.5))
    usage = Usage(input_tokens=100, output_tokens=20, cached_tokens=10, context_window=1000)

    [one] = told(began("1", "max"), ended("1", "max", usage=usage), updates=updates)
    told(began("2", "max"), ended("2", "max", usage=Usage(input_tokens=1)), updates=updates)

    cost = {"amount": 1.5, "currency": "USD"}
    assert one == {"sessionUpdate": "usage_update", "used": 120, "size": 1000, "cost": cost}
    assert (updates.usage.input_tokens, updates.usage.output_tokens, updates.usage.cached_tokens) == (101, 20, 10)
    updates.begin()
    assert updates.usage == Usage(input_tokens=101, output_tokens=20, cached_tokens=10), (
        "a session that is loaded again"
    )


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Dropped(turns=(turn("1", "max"),)), "> dropped: max"),
        (Queued(turns=(turn("1", "max"),)), ""),
        (Continued(), "> Continued."),
        (Trouble(text="The disk\nis full."), "> ! The disk\n> is full."),
        (Lagged(missed=2), "> (2 events missing here; the messages are complete.)"),
    ],
)
def test_what_bullpen_says_is_set_apart(event: ConversationEvent, text: str) -> None:
    assert written(event) == text


def test_a_turn_that_fails_is_said() -> None:
    assert written(began("1", "max"), ended("1", "max", state="failed")) == "> max: turn 1 failed."


def test_a_path_is_where_its_member_works() -> None:
    edit = ToolStarted(id="t", name="Write", input={"file_path": "a.py", "content": "x\n"})

    [call] = told(began("1", "sarah"), does("1", "sarah", edit))

    [diff] = call["content"]
    assert diff == {"type": "diff", "path": "/work/sub/a.py", "oldText": None, "newText": "x\n"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Read", "read"), ("Grep", "search"), ("WebFetch", "fetch"), ("mcp__x", "other"), ("Bash", "other")],
)
def test_a_tool_has_a_kind(name: str, kind: str) -> None:
    [call] = told(began("1", "max"), does("1", "max", ToolStarted(id="t", name=name, input={"x": 1})))

    assert call["kind"] == kind


def question(**asked: Any) -> tuple[dict[str, Any], Any]:
    event = Asked(turn_id="1", member="max", question=ApprovalAsked(id="q", folder="/work", **asked), at=0)
    [decision] = decisions(undecided=(), asked=[event], paused=None, waiting=0, held=(), missed=None, agents=["max"])
    return permission_request("s", event, decision), decision


def test_all_of_a_change_is_shown_also_lines_that_look_like_a_heading() -> None:
    diff = "--- a.sql\n+++ a.sql\n@@ -1,2 +1,2 @@\n kept\n--- gone\n+++ came\n"

    request, _ = question(kind="edit", diff=diff, paths=("a.sql",))

    _, change, text = request["toolCall"]["content"]
    assert change == {"type": "diff", "path": "/work/a.sql", "oldText": "kept\n-- gone\n", "newText": "kept\n++ came\n"}
    assert "--- gone" in text["content"]["text"]
    assert request["toolCall"]["kind"] == "edit"


def test_answers_that_an_agent_offers_are_the_buttons() -> None:
    request, decision = question(kind="question", why="Which colour?", choices=("red", "blue"))
    assert request["toolCall"]["_meta"] == {"bullpen/isQuestion": True}
    assert request["options"][-1]["kind"] == "reject_once"

    assert [(option["name"], option["kind"]) for option in request["options"]] == [
        ("red", "allow_once"),
        ("blue", "allow_once"),
        ("No answer", "reject_once"),
    ]
    blue = chosen({"outcome": {"outcome": "selected", "optionId": "1"}}, decision)
    assert blue is not None
    assert typed_choice(blue).given.text == "blue"
    for outcome in (None, {}, {"outcome": {"outcome": "selected", "optionId": "99"}}, {"outcome": {"outcome": "new"}}):
        assert chosen(outcome, decision) is None


def test_a_question_for_words_says_where_to_answer() -> None:
    request, _ = question(kind="question", why="Which colour?")

    assert "bullpen inbox" in request["toolCall"]["content"][-1]["content"]["text"]
