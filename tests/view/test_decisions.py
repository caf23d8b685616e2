"""What a person is asked to decide, the most urgent first."""

import pytest

from bullpen.conversation.events import Asked, Unallowed
from bullpen.conversation.state import UndecidedTurn
from bullpen.errors import BullpenError
from bullpen.routing.missed_hand_overs import MissedHandOver
from bullpen.routing.queue import WaitingTurn
from bullpen.turn_events import ApprovalAsked, Failed
from bullpen.view.choices import Decision, with_key
from bullpen.view.commands import ACTIONS
from bullpen.view.decisions import decisions
from bullpen.view.entered import chosen

FAILURE = Failed(kind="quota", message="the quota is used up", hint="Wait until noon.", partial_text="I was")
MISSED = MissedHandOver(sender="max", members=("sarah",), kind="in_words", quote="over to sarah")


def ended(turn: str, member: str, failure: Failed | None = FAILURE) -> UndecidedTurn:
    return UndecidedTurn(turn=WaitingTurn(id=turn, member=member, message_id="m"), state="failed", failure=failure)


def wanted(**given: object) -> tuple[Decision, ...]:
    nothing = {"undecided": (), "paused": None, "waiting": 0, "held": (), "missed": None, "agents": ("max", "sarah")}
    return decisions(**{**nothing, **given})  # type: ignore[arg-type]


def test_nothing_is_wanted_while_everything_works() -> None:
    assert wanted(waiting=3) == ()


def test_the_latest_failure_comes_first_and_the_pause_is_no_decision_of_its_own() -> None:
    found = wanted(
        undecided=(ended("3", "max"), ended("4", "sarah", None)), paused="20 turns.", waiting=1, missed=MISSED
    )

    assert [(one.kind, one.turn) for one in found] == [("failed", "4"), ("failed", "3")]
    assert found[0].text == "sarah (turn 4): bullpen stopped during this turn. Files may have been changed."
    assert found[1].text == "max (turn 3): the quota is used up. Wait until noon."
    assert (found[1].partial_text, found[1].others) == ("I was", ("sarah",))
    assert [choice.typed for choice in found[1].choices] == ["/retry 3", "/skip 3", "/hand sarah 3"]
    assert [(choice.key, choice.typed) for choice in found[0].choices] == [
        ("1", "/retry 4"),
        ("2", "/skip 4"),
        ("3", "/hand max 4"),
        ("4", "/skip all"),
        ("", "/drop"),
    ]


def test_after_a_failure_a_pause_can_be_ended_if_somebody_could_begin() -> None:
    found = wanted(undecided=(ended("3", "max"),), paused="Turn 3 of max was cancelled.", waiting=1, can_begin=True)
    assert [choice.action for choice in found[0].choices] == ["retry", "skip", "hand-over", "continue", "drop"]
    going = wanted(undecided=(ended("3", "max"),), waiting=1, can_begin=True)
    assert [choice.action for choice in going[0].choices] == ["retry", "skip", "hand-over"]


def asked(turn: str, by: str, member: str) -> Unallowed:
    return Unallowed.of(WaitingTurn(id=turn, member=member, message_id="m"), by)


def test_hand_overs_that_need_a_yes_come_after_failures_and_before_the_rest() -> None:
    questions = (asked("5", "max", "sarah"), asked("6", "lee", "sarah"))
    found = wanted(undecided=(ended("3", "max"),), unallowed=questions, paused="20 turns.", waiting=2)
    alone = wanted(unallowed=questions, paused="20 turns.", waiting=2)

    assert [(one.kind, one.turn) for one in found] == [("failed", "3"), ("allow", "6"), ("allow", "5")]
    assert [one.kind for one in alone] == ["allow", "allow", "paused"], "to continue is not a yes"
    assert alone[1].text == "max hands over to sarah, which has full permissions (turn 5). That needs your yes."
    assert [(choice.action, choice.typed, choice.given) for choice in alone[1].choices] == [
        ("allow", "/allow 5", {"turn": "5"}),
        ("dismiss", "/dismiss 5", {"turn": "5"}),
    ]
    assert not alone[0].is_failure


def test_without_a_queue_there_is_nothing_to_drop() -> None:
    assert [choice.action for choice in wanted(paused="20 turns.")[0].choices] == ["continue"]


def test_held_turns_and_missed_hand_overs() -> None:
    held, missed = wanted(held=("max", "sarah"), waiting=2)[0], wanted(missed=MISSED)[0]

    assert held.text == "2 turns from before the pause are on hold: max, sarah."
    assert [(choice.action, choice.given) for choice in missed.choices] == [
        ("ask", {"names": "sarah"}),
        ("dismiss", {}),
    ]


def test_every_choice_is_an_action_of_the_api() -> None:
    found = [
        *wanted(undecided=(ended("3", "max"),), paused="x", waiting=1),
        *wanted(missed=MISSED),
        *wanted(held=("max",)),
        *wanted(unallowed=(asked("5", "max", "sarah"),)),
    ]

    assert {choice.action for one in found for choice in one.choices} <= set(ACTIONS)


def test_only_what_can_be_done_is_offered() -> None:
    gone, alone = wanted(undecided=(ended("3", "lee"),))[0], wanted(undecided=(ended("3", "max"),), agents=("max",))[0]

    assert [choice.typed for choice in gone.choices] == ["/skip 3", "/hand NAME 3"]
    assert [choice.action for choice in alone.choices] == ["retry", "skip"]


def test_where_many_could_take_a_turn_its_name_is_asked_for() -> None:
    (card,) = wanted(undecided=(ended("3", "max"),), agents=("max", "sarah", "ben", "ada"))
    hand = card.choices[-1]

    assert card.keys == "1 Retry  2 Skip  3 Hand over"
    assert (hand.typed, hand.begins, hand.lacks_name) == ("/hand NAME 3", "/hand ", True)
    with pytest.raises(BullpenError, match="Say which one: /hand NAME 3"):
        chosen(hand, card)


def test_what_cannot_be_undone_has_no_digit() -> None:
    (card,) = wanted(paused="20 turns.", waiting=1, can_begin=True, cancelled=(ended("3", "max"),))

    assert [(choice.key, choice.label) for choice in card.choices] == [
        ("1", "Continue"),
        ("", "Drop the queue"),
        ("2", "Retry"),
    ]


def test_a_digit_means_the_question_of_an_agent_that_waits_before_anything_else() -> None:
    question = Asked(turn_id="7", member="sarah", question=ApprovalAsked(id="q", kind="command", command="ls"), at=0)
    found = wanted(undecided=(ended("3", "max"),), asked=(question,))
    two = wanted(undecided=(ended("3", "max"), ended("4", "sarah")))

    assert (choice := with_key("1", found)) is not None
    assert choice.typed == "/yes"
    with pytest.raises(BullpenError, match="Which one do you mean: /retry 4 or /retry 3"):
        with_key("1", two)


def test_what_a_turn_had_said_is_shown_only_in_part() -> None:
    long = Failed(kind="crashed", message="It crashed.", partial_text="x" * 1_000_000)

    found = wanted(undecided=(ended("3", "max", long),))[0]

    assert len(found.partial_text) < 2_100
    assert found.partial_text.endswith("998,000 more characters")


def test_a_question_shows_all_that_it_is_about() -> None:
    question = ApprovalAsked(
        id="q", kind="command", tool="Bash", command="pytest", details={"dangerouslyDisableSandbox": True}, folder="/x"
    )
    (decision,) = wanted(asked=(Asked(turn_id="7", member="max", question=question, at=0),))

    assert decision.shown == "pytest\ndangerouslyDisableSandbox: True"
