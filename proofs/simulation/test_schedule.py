"""A schedule is decided by its seed alone, and much happens in it. proofs/torture plays many, and plants mistakes."""

from proofs.simulation.schedule import Size, play


def test_the_same_seed_does_the_same_again() -> None:
    assert play(1, Size()) == play(1, Size())
    assert play(1, Size()) != play(2, Size())


def test_in_a_larger_world_much_is_killed_and_nothing_is_broken() -> None:
    played = play(1, Size(nodes=10, workers=50, conversations=100, seconds=15, mishaps=40))

    assert played.problem == ""
    assert played.counts["words acknowledged"] == 300
    assert {"kill", "freeze", "cut off", "deliver twice", "turns lost", "turns cancelled"} <= set(played.counts)
