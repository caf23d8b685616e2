"""What the torture with hostile agents stands on."""

from benchmarks.agents_flood import GOAL_BYTES
from proofs.torture.agent_cuts import CASES, every_cut
from proofs.torture.agent_floods import peak


def test_every_byte_of_every_recording_can_be_the_last() -> None:
    cuts = list(every_cut(1))

    assert len(set(cuts)) == len(cuts) == sum(cut.length for cut in every_cut(10**9)) + len(CASES)


def test_brackets_take_no_more_memory_than_other_floods() -> None:
    assert peak("lists of lists", 10_000_000_000).highest < GOAL_BYTES
