"""Mentions: whom a person's "@name" addresses, and which words with an "@" are not names."""

import pytest
from tests.routing.test_router import ROUTER, TEAM

from bullpen.context import read_markers
from bullpen.routing.router import NOBODY_WAS_ASKED, Route


def route(text: str) -> Route:
    return ROUTER.route(TEAM.member("kailai"), ROUTER.with_mentions(read_markers(text), text))


@pytest.mark.parametrize(
    ("text", "addressees"),
    [
        ("@sarah please review", ("sarah",)),
        ("Please review this, @sarah.", ("sarah",)),
        ("please, @Sarah: look", ("sarah",)),
        ("(@sarah) look", ("sarah",)),
        ("ask @sarah, then @carol and @sarah again", ("sarah", "carol")),
        ("@sarah请看一下", ("sarah",)),
        ("请＠sarah看一下，再给@carol", ("sarah", "carol")),
        ("@Ana Lucía, what do you say?", ("ana",)),
        ("@ana_lucía", ("ana",)),
        ("@all, who has seen this?", ("max", "sarah", "carol")),
        ("@所有人 看一下", ("max", "sarah", "carol")),
        ("@所有人请看一下", ("max", "sarah", "carol")),
        ("请@所有人看", ("max", "sarah", "carol")),
        ("@agents", ("max", "sarah", "carol")),
        ("- @carol tests\n- @sarah builds", ("carol", "sarah")),
    ],
)
def test_a_mention_addresses_like_next(text: str, addressees: tuple[str, ...]) -> None:
    assert route(text).addressees == addressees
    assert not route(text).notes


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
