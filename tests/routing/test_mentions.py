"""Mentions: whom a person's "@name" addresses, and which words with an "@" are not names."""

import pytest
from msgspec.structs import replace
from tests.routing.test_router import ROUTER, TEAM

from bullpen.context import read_markers
from bullpen.routing.router import NOBODY_WAS_ASKED, Route, Router


def route(text: str) -> Route:
    return ROUTER.route(TEAM.member("kailai"), ROUTER.with_mentions(read_markers(text), text))


@pytest.mark.parametrize(
    ("text", "addressees"),
    [
        ("@sarah please review", ("sarah",)),
        ("(@sarah) look", ("sarah",)),
        ("\n\n> Is it done?\n\n@Sarah, is it?", ("sarah",)),
        ("[FROM: kailai] @sarah look", ("sarah",)),
        ("@sarah, then @carol and @sarah again", ("sarah", "carol")),
        ("@sarah请看一下", ("sarah",)),
        ("＠sarah看一下，再给@carol", ("sarah", "carol")),
        ("@Ana Lucía, what do you say?", ("ana",)),
        ("@ana_lucía", ("ana",)),
        ("@all, who has seen this?", ("max", "sarah", "carol")),
        ("@所有人 看一下", ("max", "sarah", "carol")),
        ("@所有人请看一下", ("max", "sarah", "carol")),
        ("请@所有人看", ("max", "sarah", "carol")),
        ("What do you think, @all?", ("max", "sarah", "carol")),
        ("@agents", ("max", "sarah", "carol")),
        ("- @carol tests\n- @sarah builds", ("carol", "sarah")),
    ],
)
def test_a_mention_addresses_like_next(text: str, addressees: tuple[str, ...]) -> None:
    assert route(text).addressees == addressees
    assert not route(text).notes


@pytest.mark.parametrize(
    ("text", "addressees"),
    [
        ("Add a thing, and @sarah too", ("max", "sarah")),
        ("Please review this, @sarah.", ("max", "sarah")),
        ("Build it.\n@Sarah: look", ("max", "sarah")),
        ("ask @sarah, then @carol and @sarah again", ("max", "sarah", "carol")),
        ("请＠sarah看一下，再给@carol", ("max", "sarah", "carol")),
        ("ask @max", ("max",)),
    ],
)
def test_a_mention_later_in_a_message_answers_after_the_lead_as_next_would_say(
    text: str, addressees: tuple[str, ...]
) -> None:
    found = route(text)

    written = ROUTER.route(TEAM.member("kailai"), read_markers(f"[NEXT: {', '.join(addressees)}]"))
    assert (found.addressees, found.asked) == (addressees, written.asked)
    assert (found.reason, found.added) == ("max leads the team.", addressees[1:])


def test_a_mention_later_in_a_message_answers_after_who_spoke_to_you_last() -> None:
    text = "Thanks, and @sarah too"
    markers = ROUTER.with_mentions(read_markers(text), text)

    found = ROUTER.route(TEAM.member("kailai"), markers, last_to_hand_over="carol")

    assert [(one.member, one.step) for one in found.asked] == [("carol", 0), ("sarah", 1)]
    assert found.reason == "carol spoke to you last."
    assert ROUTER.route(TEAM.member("kailai"), markers, in_relay=True).addressees == ("sarah",)


def test_a_mention_answers_after_all_who_lead() -> None:
    router = Router(replace(TEAM, lead="max & carol"))
    text = "Look, and @sarah too"

    found = router.route(TEAM.member("kailai"), router.with_mentions(read_markers(text), text))

    assert [(one.member, one.step) for one in found.asked] == [("max", 0), ("carol", 0), ("sarah", 1)]


def test_several_mentions_are_a_relay_in_order_and_all_are_asked_at_once() -> None:
    assert [(one.member, one.step) for one in route("@carol looks, then @sarah").asked] == [("carol", 0), ("sarah", 1)]
    assert [one.step for one in route("@all look").asked] == [0, 0, 0]


@pytest.mark.parametrize(
    "text",
    [
        "write to kim@sarah.example",
        "`@sarah` is a name",
        "> @sarah said so\n\nWhat does it mean?",
        "```\n@sarah\n```",
        "put @dataclass above it",
        "use @functools.cache here",
        "install @types/node",
        "call @carol(1)",
        "it costs 5 @ 3 each",
        "@ nobody",
        "[TEAM_TASK] @sarah builds it",
        "Fix @max_length in foo",
        "see @maxLength",
        "the @maximum size, the @carolina case",
        "an @allowed word",
    ],
)
def test_other_words_with_an_at_are_not_names(text: str) -> None:
    assert route(text).addressees == ("max",)


def test_a_marker_takes_precedence_over_mentions() -> None:
    assert route("[NEXT: carol] what did @sarah mean?").addressees == ("carol",)


@pytest.mark.parametrize("text", ["@sarha please look", "so, @saraah, look", "@nobody-at-all look"])
def test_a_name_that_is_nobodys_asks_nobody(text: str) -> None:
    found = route(text)

    assert (found.asked, found.addressees) == ((), ())
    assert found.waits_for == "kailai"
    assert "Nobody here is called" in found.notes[0]
    assert found.notes[-1] == NOBODY_WAS_ASKED


def test_a_wrong_name_beside_a_right_one_is_only_noted() -> None:
    found = route("@sarah and @carrol, look")

    assert found.addressees == ("sarah",)
    assert found.notes == ("Nobody here is called 'carrol'. Did you mean carol?",)
