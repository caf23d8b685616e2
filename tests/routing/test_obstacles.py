"""Which turns may begin beside others, and what each of the others waits for."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.routing.obstacles import Checking, Situation, may_begin, obstacles
from bullpen.routing.queue import PUT_FIRST, TurnQueue, WaitingTurn

EDITORS = {"a": "/repo", "b": "/repo", "c": "/repo/part", "d": "/other"}
"""Members that may edit; r, s and kim may not."""
PEOPLE = frozenset({"kim"})


def turn(member: str, message: str = "m1", *, intent: int = 2, step: int = 0) -> WaitingTurn:
    return WaitingTurn(
        id=f"{message}-{member}-{step}-{intent}", member=member, message_id=message, intent=intent, step=step
    )


def situation(*running: WaitingTurn, **more: Any) -> Situation:
    return Situation(**{"running": running, "people": PEOPLE, "workspaces": EDITORS, **more})


def begin(*waiting: WaitingTurn, beside: Situation | None = None) -> list[str]:
    """Return whose turns may begin now."""
    queue = TurnQueue(waiting)
    return [one.member for one in may_begin(queue.waiting, beside or situation())]


def waits(*waiting: WaitingTurn, beside: Situation | None = None) -> dict[str, tuple[str, str]]:
    """Return what each member waits for: the kind, and whose turn."""
    found = obstacles(TurnQueue(waiting).waiting, beside or situation())
    members = {one.id: one.member for one in waiting}
    return {members[turn_id]: (obstacle.kind, obstacle.turn.member) for turn_id, obstacle in found.items()}


def test_a_question_is_answered_while_another_works() -> None:
    assert begin(turn("r", "m2"), beside=situation(turn("a"))) == ["r"]
    assert begin(turn("a", "m2"), beside=situation(turn("r"))) == ["a"]
    assert begin(turn("r"), turn("s", "m2"), turn("a", "m3"), turn("d", "m4")) == ["r", "s", "a", "d"]


def test_two_that_may_edit_one_workspace_for_different_messages_do_not_run_together() -> None:
    running = turn("a")

    assert waits(turn("b", "m2"), turn("d", "m3"), beside=situation(running)) == {"b": ("workspace", "a")}
    found = obstacles([turn("c", "m2")], situation(running))
    assert found["m2-c-0-2"].workspace == "/repo/part", "what is in both: one folder is inside the other"
    assert waits(turn("a", "m2"), beside=situation(turn("c"))) == {"a": ("workspace", "c")}


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        ("/repo", "/repo", True),
        ("/repo", "/repository", False),
        ("/", "/repo", True),
        ("/repo/x", "/repo", True),
        ("/repo/x", "/repo/y", False),
        ("/", "/", True),
    ],
)
def test_a_workspace_is_the_same_or_one_is_inside_the_other(one: str, other: str, collide: bool) -> None:
    for first, second in ((one, other), (other, one)):
        here = Situation(running=[turn("a")], workspaces={"a": first, "b": second})
        assert bool(obstacles([turn("b", "m2")], here)) == collide


def test_who_would_disturb_checks_waits_for_them_and_who_reads_does_not() -> None:
    done = turn("a")
    workspaces = {"a": "/repo", "b": "/repo/inside", "c": "/other"}
    shared = Situation(workspaces=workspaces, checking=[Checking(turn=done, workspace="/repo", reply="m9")])
    for member, message, waits_for in (("a", "m2", True), ("b", "m2", True), ("c", "m2", False), ("r", "m9", False)):
        found = obstacles([turn(member, message)], shared)
        assert [one.kind for one in found.values()] == (["checks"] if waits_for else [])
    own = Situation(workspaces={"b": "/repo"}, checking=[Checking(turn=done, reply="m9")])
    followers = (
        ("a", "m2", True),
        ("b", "m2", False),
        ("r", "m9", True),
        ("r", done.message_id, True),
        ("r", "m2", False),
    )
    for member, message, waits_for in followers:
        assert bool(obstacles([turn(member, message)], own)) == waits_for, (member, message)


def test_what_one_message_asks_for_keeps_its_order() -> None:
    relay = turn("r"), turn("s", step=1), turn("a", step=2)

    assert begin(*relay) == ["r"]
    assert waits(*relay) == {"s": ("step", "r"), "a": ("step", "s")}
    assert begin(*relay[1:], beside=situation(relay[0])) == []
    assert begin(*relay[1:]) == ["s"]


def test_members_who_are_asked_together_begin_together_whatever_they_may_edit() -> None:
    group = turn("a"), turn("b"), turn("c")

    assert begin(*group, turn("r", step=1)) == ["a", "b", "c"]
    assert begin(*group[1:], beside=situation(group[0])) == ["b", "c"], "a limit let one begin before the others"


def test_no_intent_reverses_a_relay() -> None:
    first, urgent = turn("r"), turn("s", step=1, intent=1)

    assert begin(first, urgent) == ["r"]
    assert begin(turn("r", intent=3), turn("s", step=1)) == ["r"]
    assert begin(first, beside=situation(urgent)) == []


def test_within_a_group_an_intent_comes_before_the_order() -> None:
    assert begin(turn("s", intent=3), turn("r", intent=1)) == ["r"]


def test_what_a_person_puts_first_begins_beside_the_others_of_its_step() -> None:
    assert begin(turn("r", intent=PUT_FIRST), beside=situation(turn("s"))) == ["r"]
    assert begin(turn("r", intent=PUT_FIRST), beside=situation(turn("s", step=1))) == []


def test_a_member_takes_one_turn_at_a_time() -> None:
    assert waits(turn("r", "m2"), beside=situation(turn("r"))) == {"r": ("member", "r")}
    assert begin(turn("r"), turn("r", "m2")) == ["r"]
    assert waits(turn("r", intent=1), beside=situation(turn("r"))) == {"r": ("step", "r")}


def test_a_member_that_waits_for_its_step_answers_something_else_meanwhile() -> None:
    assert begin(turn("s", step=1), turn("s", "m2"), beside=situation(turn("r"))) == ["s"]


def test_whoever_waits_for_a_workspace_is_not_overtaken() -> None:
    waiting = turn("c", "m2"), turn("b", "m3"), turn("r", "m4")

    assert waits(*waiting, beside=situation(turn("a"))) == {"c": ("workspace", "a"), "b": ("workspace", "a")}
    # b waits for the step before it, which edits nothing; the workspace is still its own before it is a's.
    relay = turn("b", step=1), turn("a", "m2")
    assert waits(*relay, beside=situation(turn("r"))) == {"b": ("step", "r"), "a": ("workspace", "b")}


def test_who_is_asked_later_to_help_does_not_overtake_either() -> None:
    waiting = turn("b", "m2"), turn("c", "m1")

    assert waits(*waiting, beside=situation(turn("a"))) == {"b": ("workspace", "a"), "c": ("workspace", "b")}


def test_intents_decide_among_those_that_collide() -> None:
    waiting = turn("a", "m1"), turn("b", "m2", intent=1), turn("r", "m3", intent=3)

    assert begin(*waiting) == ["b", "r"]
    assert waits(*waiting) == {"a": ("workspace", "b")}


def test_a_person_holds_up_the_relay_after_them_and_nothing_else() -> None:
    queue = turn("kim"), turn("a", step=1), turn("b", "m2")

    assert begin(*queue) == ["b"]
    assert waits(*queue) == {"kim": ("person", "kim"), "a": ("person", "kim")}
    assert begin(*queue[1:2]) == ["a"]
    assert begin(turn("r"), turn("kim")) == ["r"], "who is asked together with a person does not wait"


def test_a_person_whose_turn_has_not_come_waits_like_others() -> None:
    assert waits(turn("kim", step=1), turn("a", step=2), beside=situation(turn("r"))) == {
        "kim": ("step", "r"),
        "a": ("person", "kim"),
    }


def test_each_waits_for_the_step_right_before_it() -> None:
    relay = turn("s", step=1), turn("kim", step=2), turn("a", step=3)

    assert waits(*relay, beside=situation(turn("r"))) == {
        "s": ("step", "r"),
        "kim": ("step", "s"),
        "a": ("person", "kim"),
    }


def test_a_relay_stops_where_the_first_person_must_act() -> None:
    stopped = situation(undecided=[turn("r", step=1)])

    assert waits(turn("kim"), turn("s", step=1), beside=stopped) == {"kim": ("person", "kim"), "s": ("person", "kim")}


def test_what_is_held_holds_up_its_relay_and_no_workspace() -> None:
    queue = turn("a"), turn("r", step=1), turn("b", "m2")

    assert begin(*queue, beside=situation(held={queue[0].id})) == ["b"]
    assert waits(*queue, beside=situation(held={queue[0].id})) == {"a": ("hold", "a"), "r": ("hold", "a")}
    assert begin(*queue, beside=situation(held={queue[0].id, queue[2].id})) == []


def test_a_failed_turn_holds_up_its_relay_until_somebody_decides() -> None:
    queue = turn("b", step=1), turn("d", "m2")

    assert begin(*queue, beside=situation(undecided=[turn("r")])) == ["d"]
    assert waits(*queue, beside=situation(undecided=[turn("r")])) == {"b": ("decision", "r")}
    assert begin(*queue) == ["b", "d"]
    assert begin(turn("s"), beside=situation(undecided=[turn("r")])) == ["s"], "those of its own step do not wait"


TURNS = st.builds(
    turn,
    st.sampled_from(["a", "b", "c", "d", "r", "s", "kim"]),
    st.sampled_from(["m1", "m2", "m3", "m4"]),
    intent=st.integers(0, 3),
    step=st.integers(0, 2),
)
QUEUES = st.lists(TURNS, max_size=14, unique_by=lambda one: (one.member, one.message_id))
WORKSPACES = st.dictionaries(st.sampled_from("abcdrs"), st.sampled_from(["/x", "/x/y", "/x/y/z", "/xx", "/v"]))


def may_collide(one: WaitingTurn, other: WaitingTurn, where: Mapping[str, str]) -> bool:
    """Return whether both may edit one workspace, for different messages; written without looking at the product."""
    if one.message_id == other.message_id or one.member not in where or other.member not in where:
        return False
    first, second = (where[turn.member].split("/") for turn in (one, other))
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter]


def keeps_order(one: WaitingTurn, other: WaitingTurn) -> bool:
    """Return whether one message asked for both, one after the other."""
    parallel = one.step == other.step and (one.intent == other.intent or 0 in (one.intent, other.intent))
    return one.message_id == other.message_id and not parallel


class Played:
    """A queue that is played to its end: turns begin as soon as they may, and end in any order."""

    def __init__(self, turns: list[WaitingTurn], where: Mapping[str, str], held: set[str]) -> None:
        self.queue = TurnQueue(turns)
        self.where = where
        self.held = held
        self.running: list[WaitingTurn] = []
        self.begun: list[WaitingTurn] = []

    @property
    def situation(self) -> Situation:
        return Situation(running=self.running, people=PEOPLE, held=self.held, workspaces=self.where)

    def stopped(self, one: WaitingTurn) -> bool:
        """Return whether a turn waits for a person."""
        stops = [turn for turn in self.queue.waiting if turn.member in PEOPLE or turn.id in self.held]
        return one in stops or any(s.message_id == one.message_id and s.step < one.step for s in stops)

    def check(self, now: tuple[WaitingTurn, ...]) -> None:
        """Check what begins together, and that everything else has a reason to wait."""
        together = [*self.running, *now]
        for number, one in enumerate(together):
            assert one.member not in PEOPLE
            for other in together[:number]:
                assert one.member != other.member
                assert not may_collide(one, other, self.where)
                assert not keeps_order(one, other)
        waiting = self.queue.waiting
        for place, one in enumerate(waiting):
            ahead = [other for other in waiting[:place] if not self.stopped(other)]
            if one in now:
                assert not any(may_collide(one, other, self.where) for other in ahead), "it overtook one"
                assert not any(keeps_order(one, other) for other in ahead)
            elif not self.stopped(one):
                assert any(
                    may_collide(one, other, self.where) or keeps_order(one, other) for other in [*self.running, *ahead]
                ) or one.member in {other.member for other in together}, "it waits for nothing"

    def begin(self) -> None:
        now = may_begin(self.queue.waiting, self.situation)
        self.check(now)
        assert [one.intent for one in now] == sorted(one.intent for one in now)
        self.queue.remove(one.id for one in now)
        self.running += now
        self.begun += now


@given(turns=QUEUES, later=QUEUES, where=WORKSPACES, data=st.data())
def test_nothing_collides_overtakes_or_waits_for_nothing(
    turns: list[WaitingTurn], later: list[WaitingTurn], where: dict[str, str], data: st.DataObject
) -> None:
    held = data.draw(st.sets(st.sampled_from([one.id for one in turns]), max_size=2)) if turns else set()
    played = Played(turns, where, held)
    more = [turn(one.member, f"later-{one.message_id}", intent=one.intent, step=one.step) for one in later]
    while True:
        played.begin()
        if not played.running and not more:
            break
        if more and (not played.running or data.draw(st.booleans())):
            played.queue.add([more.pop(0)])
        else:
            played.running.remove(data.draw(st.sampled_from(played.running)))

    assert all(map(played.stopped, played.queue.waiting)), "whatever waits for nobody has had its turn"
    assert len({one.id for one in played.begun}) == len(played.begun)
    assert len(played.begun) + len(played.queue.waiting) == len(turns) + len(later)


@given(turns=QUEUES, running=QUEUES, where=WORKSPACES)
def test_a_turn_waits_for_one_that_runs_or_is_ahead_of_it(
    turns: list[WaitingTurn], running: list[WaitingTurn], where: dict[str, str]
) -> None:
    waiting = TurnQueue(turns).waiting
    found = obstacles(waiting, Situation(running=running, people=PEOPLE, workspaces=where))

    for place, one in enumerate(waiting):
        if one.id in found and found[one.id].kind in ("step", "member", "workspace"):
            assert found[one.id].turn in [*running, *waiting[:place]]
