"""Who answers: every rule of routing, in a small team."""

import pytest
from msgspec.structs import replace

from bullpen.context import read_markers
from bullpen.errors import UnknownSender
from bullpen.routing.router import NOBODY_WAS_ASKED, Asked, Route, Router
from bullpen.team.reader import read_team
from bullpen.team.team import Member

TEAM = read_team(
    """
    lead = "max"
    [[member]]
    name = "kailai"
    [[member]]
    name = "ana"
    display_name = "Ana Lucía"
    [[member]]
    name = "max"
    agent = "claude"
    may_set_task = true
    [[member]]
    name = "sarah"
    display_name = "Sarah (backend)"
    agent = "codex"
    may_address = ["max", "kailai"]
    [[member]]
    name = "carol"
    agent = "gemini"
    """
)
ROUTER = Router(TEAM)


def route(
    text: str,
    sender: str = "kailai",
    *,
    last_to_hand_over: str | None = None,
    person: str | None = None,
    in_relay: bool = False,
) -> Route:
    return ROUTER.route(
        TEAM.member(sender),
        read_markers(text),
        last_to_hand_over=last_to_hand_over,
        person=person,
        in_relay=in_relay,
    )


def asked(member: str, intent: int = 2, step: int = 0) -> Asked:
    return Asked(member=member, intent=intent, step=step)


def test_a_relay_has_steps_and_a_group_shares_one() -> None:
    assert route("[NEXT: max, sarah & carol]").asked == (asked("max"), asked("sarah", step=1), asked("carol", step=1))


def test_names_are_found_whatever_their_dress() -> None:
    found = route("[NEXT: @Max] [NEXT: **sarah (backend)**] [NEXT: ＣＡＲＯＬ!P1]")

    assert found.addressees == ("max", "sarah", "carol")
    assert found.asked[-1] == asked("carol", intent=1, step=2)


def test_one_turn_per_member_at_its_first_step_and_the_strongest_intent_wins() -> None:
    assert route("[NEXT: max!P3, sarah, max!P1]").asked == (asked("max", intent=1), asked("sarah", step=1))


def test_a_person_who_names_nobody_asks_the_lead() -> None:
    assert route("hello") == Route(asked=(asked("max"),), addressees=("max",), reason="max leads the team.")


def test_several_may_lead_as_in_a_relay() -> None:
    router = Router(replace(TEAM, lead="max & sarah, carol"))

    found = router.route(TEAM.member("kailai"), read_markers("hello"))

    assert found == Route(
        asked=(asked("max"), asked("sarah"), asked("carol", step=1)),
        addressees=("max", "sarah", "carol"),
        reason="The team file says: lead = max & sarah, carol.",
    )
    assert router.route(TEAM.member("kailai"), read_markers("and?"), last_to_hand_over="carol").asked == (
        asked("carol"),
    )


def test_who_judges_the_leads_may_be_told_no_names() -> None:
    found = Router(replace(TEAM, lead="max & sarah, carol; blind")).route(TEAM.member("kailai"), read_markers("hello"))

    assert found.is_blind
    assert found.addressees == ("max", "sarah", "carol")


def test_a_person_who_names_nobody_answers_whoever_handed_over_last() -> None:
    found = route("yes", last_to_hand_over="sarah")

    assert (found.addressees, found.reason) == (("sarah",), "sarah spoke to you last.")


def test_an_agent_that_names_nobody_goes_back_to_the_person() -> None:
    assert route("done", "max", person="ana") == Route(waits_for="ana")


def test_an_agent_hands_over_to_a_person() -> None:
    assert route("[NEXT: kailai]", "max") == Route(waits_for="kailai", addressees=("kailai",))


def test_unknown_names_are_reported_and_the_others_run() -> None:
    found = route("[NEXT: sahra, carol]")

    assert found.addressees == ("carol",)
    assert found.notes == ("Nobody here is called 'sahra'. Did you mean sarah?",)


def test_only_unknown_names_ask_nobody() -> None:
    found = route("[NEXT: zzz]", last_to_hand_over="carol")

    assert (found.asked, found.addressees) == ((), ())
    assert found.waits_for == "kailai"
    assert found.notes == ("Nobody here is called 'zzz'.", NOBODY_WAS_ASKED)


@pytest.mark.parametrize("name", ["all", "ALL", "agents", "everyone", "所有人"])
def test_all_agents_are_asked_at_once(name: str) -> None:
    assert route(f"[NEXT: {name}]").asked == (asked("max"), asked("sarah"), asked("carol"))
    assert route(f"[NEXT: carol, {name}]").asked == (asked("carol"), asked("max", step=1), asked("sarah", step=1))


def test_an_agent_asks_all_that_it_may_address_but_itself() -> None:
    assert route("[NEXT: all]", "max").asked == (asked("sarah"), asked("carol"))
    assert route("[NEXT: all]", "sarah").asked == (asked("max"),)


def test_an_agent_addresses_only_whom_it_may() -> None:
    found = route("[NEXT: carol & max]", "sarah")

    assert found.addressees == ("max",)
    assert found.notes == ("sarah may not hand over to carol: the team file does not list it in may_address.",)


def test_nobody_hands_over_to_itself() -> None:
    assert route("[NEXT: max]", "max", person="kailai").notes == ("max cannot hand over to itself.",)


def test_drops_come_by_name_or_all() -> None:
    found = route("[DROP: Sarah | nobody] [DROP: all]")

    assert (found.drops, found.drops_all) == (("sarah",), True)
    assert found.notes == ("Nobody here is called 'nobody'.",)


@pytest.mark.parametrize(("sender", "task"), [("kailai", "ship"), ("max", "ship"), ("sarah", None)])
def test_a_task_counts_from_people_and_from_agents_that_may(sender: str, task: str | None) -> None:
    found = route("[TEAM_TASK: ship]", sender)

    assert found.team_task == task
    assert bool(found.notes) == (task is None)


def sender(text: str = "", **known: str | None) -> Member:
    return ROUTER.sender_of(read_markers(text), **known)


def test_the_sender_is_given_or_named_or_waited_for() -> None:
    assert sender("[FROM: ana]", given="kailai", waited_for="ana").name == "kailai"
    assert sender("[FROM: Ana Lucía]", waited_for="kailai").name == "ana"
    assert sender(waited_for="ana").name == "ana"


def test_the_only_person_need_not_say_who_they_are() -> None:
    alone = read_team('[[member]]\nname="kim"\n[[member]]\nname="max"\nagent="claude"')

    assert Router(alone).sender_of(read_markers("hi")).name == "kim"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hi", r"Say who you are, with \[FROM: name\] or --as name\. The people in this team are: kailai, ana\."),
        ("[FROM: max]", "max is an agent; only people can send messages here"),
        ("[FROM: kaila]", "Nobody here is called 'kaila'. Did you mean kailai"),
    ],
)
def test_nobody_speaks_for_somebody_else(text: str, complaint: str) -> None:
    with pytest.raises(UnknownSender, match=complaint):
        sender(text)


def test_markers_that_are_too_many_are_said() -> None:
    found = route("[NEXT: max] " * 1_000 + "[NEXT: sarah]")

    assert found.asked == (asked("max"),)
    assert found.notes == ("Only the first 1,000 markers and 1,000 names of a message are read; this one has more.",)
    assert route("[NEXT: max] " * 1_000).notes == ()


def test_names_that_are_too_many_are_said_before_those_that_are_wrong() -> None:
    names = ", ".join(f"nobody{number}" for number in range(1_001))

    notes = route(f"[NEXT: {names}]").notes

    assert notes[0] == "Only the first 1,000 markers and 1,000 names of a message are read; this one has more."
    assert notes[-2:] == ("996 more names did not work either.", NOBODY_WAS_ASKED)


LEVELS = read_team(
    """
    [[member]]
    name = "kim"
    [[member]]
    name = "scout"
    agent = "claude"
    [[member]]
    name = "writer"
    agent = "codex"
    permissions = "edit"
    [[member]]
    name = "boss"
    agent = "claude"
    permissions = "full"
    [[member]]
    name = "chief"
    agent = "codex"
    permissions = "full"
    may_drop = true
    [[member]]
    name = "trusted"
    agent = "gemini"
    may_address = ["boss"]
    """
)


def needing_a_yes(sender: str, text: str) -> list[str]:
    found = Router(LEVELS).route(LEVELS.member(sender), read_markers(text))
    return [one.member for one in found.asked if one.needs_yes]


@pytest.mark.parametrize("sender", ["scout", "writer"])
def test_an_agent_needs_a_yes_for_members_with_full_permissions(sender: str) -> None:
    assert needing_a_yes(sender, "[NEXT: trusted, boss]") == ["boss"]
    assert needing_a_yes(sender, "[NEXT: all]") == ["boss", "chief"]
    assert needing_a_yes(sender, "[NEXT: kim, boss!P1]") == ["boss"]
    assert needing_a_yes(sender, "[NEXT: boss!P3] [NEXT: ＢＯＳＳ!P1]") == ["boss"]
    assert needing_a_yes(sender, "[NEXT: trusted]") == []


def test_people_and_agents_with_full_permissions_need_none() -> None:
    assert needing_a_yes("kim", "[NEXT: scout, boss & chief]") == []
    assert needing_a_yes("boss", "[NEXT: chief, writer]") == []
    assert needing_a_yes("trusted", "[NEXT: boss]") == [], "may_address lists it"


def test_what_may_address_does_not_list_is_refused_and_not_asked_about() -> None:
    found = Router(LEVELS).route(LEVELS.member("trusted"), read_markers("[NEXT: chief]"))

    assert found.asked == ()
    assert found.notes == ("trusted may not hand over to chief: the team file does not list it in may_address.",)


@pytest.mark.parametrize("text", ["[DROP: all]", "[DROP: boss]", "[DROP: nobody]"])
def test_an_agent_drops_nothing_unless_it_may(text: str) -> None:
    found = Router(LEVELS).route(LEVELS.member("boss"), read_markers(text), person="kim")

    assert (found.drops, found.drops_all) == ((), False)
    assert found.notes == ("boss may not drop turns: the team file does not allow it (may_drop).",)


def test_an_agent_that_may_drop_does_and_people_always_do() -> None:
    for sender in ("chief", "kim"):
        found = Router(LEVELS).route(LEVELS.member(sender), read_markers("[DROP: scout] [DROP: ALL]"))

        assert (found.drops, found.drops_all, found.notes) == (("scout",), True, ())


def test_nothing_is_noted_where_nothing_is_dropped() -> None:
    assert Router(LEVELS).route(LEVELS.member("scout"), read_markers("Done."), person="kim").notes == ()
