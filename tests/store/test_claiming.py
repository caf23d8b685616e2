"""Becoming the owner of a conversation: what is locked, unlocked and removed, and in which order."""

import pytest
from msgspec.structs import replace

from bullpen.errors import StoreFull, UnknownConversation
from bullpen.store.base import Owner
from bullpen.store.claiming import claim
from bullpen.testing.store_contract import OTHER, OWNER, alive, dead


class Place:
    """A conversation and its locks, with all that is done to them."""

    def __init__(self, owner: Owner | None, error: Exception | None = None) -> None:
        self.owner = owner
        self.done: list[str] = []
        self._error = error

    def hold(self, token: str) -> None:
        self.done.append(f"hold {token}")

    def let_go(self, token: str) -> None:
        self.done.append(f"let go {token}")

    def remove(self, token: str) -> None:
        self.done.append(f"remove {token}")

    def present(self) -> Owner | None:
        if self._error is not None and self.done:
            raise self._error
        return self.owner

    def become(self, before: Owner | None) -> bool:
        self.done.append(f"become after {before and before.token}")
        self.owner = OTHER
        return True

    def claimed(self, *, others_live: bool = False) -> bool:
        return claim(self, OTHER, is_alive=alive if others_live else dead, present=self.present, become=self.become)


class Refused(Place):
    """Another process was faster."""

    def become(self, before: Owner | None) -> bool:
        return False


class Failing(Place):
    """The disk is full: nothing is stored, or nobody knows."""

    def become(self, before: Owner | None) -> bool:
        raise StoreFull("bullpen.db")


class FailingLate(Place):
    """It is stored, and an error is told all the same."""

    def become(self, before: Owner | None) -> bool:
        self.owner = OTHER
        raise StoreFull("bullpen.db")


def test_who_comes_first_locks_before_anybody_can_read_who_owns_it() -> None:
    place = Place(None)

    assert place.claimed(others_live=True)
    assert place.done == [f"hold {OTHER.token}", "become after None"]


def test_nothing_is_touched_while_another_owner_lives() -> None:
    place = Place(OWNER)

    assert place.claimed(others_live=True) is False
    assert place.done == []


def test_the_lock_of_a_dead_owner_is_removed_once_there_is_another() -> None:
    place = Place(OWNER)

    assert place.claimed()
    assert place.done == [f"hold {OTHER.token}", f"become after {OWNER.token}", f"remove {OWNER.token}"]


def test_who_owns_it_already_keeps_its_lock() -> None:
    place = Place(replace(OTHER, seen_at=5))

    assert place.claimed(others_live=True)
    assert place.done == [f"hold {OTHER.token}", f"become after {OTHER.token}"]


def test_who_was_too_late_leaves_no_lock_and_removes_no_other() -> None:
    place = Refused(OWNER)

    assert not place.claimed()
    assert place.done == [f"hold {OTHER.token}", f"remove {OTHER.token}"]


@pytest.mark.parametrize("before", [None, OWNER])
def test_after_an_error_nothing_is_left_of_who_is_not_stored(before: Owner | None) -> None:
    place = Failing(before)

    with pytest.raises(StoreFull):
        place.claimed()
    assert place.done == [f"hold {OTHER.token}", f"let go {OTHER.token}", f"remove {OTHER.token}"]


def test_who_is_stored_in_spite_of_an_error_is_said_to_be_dead_by_a_free_lock() -> None:
    place = FailingLate(OWNER)

    with pytest.raises(StoreFull):
        place.claimed()
    assert place.done == [f"hold {OTHER.token}", f"let go {OTHER.token}"]


@pytest.mark.parametrize("error", [StoreFull("bullpen.db"), UnknownConversation("c")])
def test_where_nobody_can_know_whether_it_is_stored_the_first_error_is_told(error: Exception) -> None:
    place = Failing(OWNER, error)

    with pytest.raises(StoreFull, match=r"bullpen\.db"):
        place.claimed()
    assert place.done == [f"hold {OTHER.token}", f"let go {OTHER.token}"]
