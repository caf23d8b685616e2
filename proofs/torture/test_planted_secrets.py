"""What the torture with planted secrets stands on."""

from random import Random

from proofs.torture.secret_keys import CUTTERS, KEYS, made_keys


def test_there_are_many_keys_none_part_of_another() -> None:
    values = [key.value for key in made_keys(Random(1))]

    assert len(values) == KEYS
    assert not [one for one in values for other in values if one is not other and one in other]


def test_every_way_to_plant_a_key_is_used() -> None:
    keys = made_keys(Random(1))

    assert {bool(key.variable) for key in keys} == {True, False}
    assert {key.printed_by for key in keys} == {"", "max", "cody", "tool", "hanger", "quitter", *CUTTERS}
    assert {key.stream for key in keys} == {"error", "output"}
    assert {mark for mark in " \n'\"" if any(mark in key.value for key in keys)} == {*" \n'\""}
    assert sum(bool(key.file) for key in keys) == 8
    assert sum(key.is_said for key in keys) == 1
