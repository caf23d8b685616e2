"""A commit of which nobody heard that it was done is done, and no error says that it was not."""

from collections.abc import Callable

import pytest
from tests.store.postgres.server import empty_tables, needs_postgres
from tests.store.postgres.unheard import way_to

from bullpen.context.prompt import AssemblerOutput
from bullpen.store.base import Store, TurnEnd
from bullpen.store.postgres.store import PostgresStore
from bullpen.testing.store_contract import OWNER, asked, begin, dead, said

pytestmark = needs_postgres
GIVEN = AssemblerOutput(prompt="Hello.")

WRITES: dict[str, Callable[[Store], object]] = {
    "append": lambda store: store.append("c", said("m2"), turns=[asked("m2")], owner=OWNER),
    "start_turn": lambda store: store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=5),
    "update": lambda store: store.update("c", at=5, drops=["m1-max"], owner=OWNER),
}


@pytest.mark.parametrize("name", WRITES)
def test_it_is_done(name: str) -> None:
    with way_to(empty_tables()) as way, PostgresStore(way.url) as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        store.append("c", said("m1"), turns=[asked("m1")], owner=OWNER)
        way.break_after(1)

        WRITES[name](store)

        assert way.broken == 1
        if name == "append":
            assert [one.message.id for one in store.messages("c")] == ["m1", "m2"]
        else:
            assert [turn.state for turn in store.turns("c")] == ["running" if name == "start_turn" else "dropped"]


def test_the_end_of_a_turn_is_known() -> None:
    with way_to(empty_tables()) as way, PostgresStore(way.url) as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        store.append("c", said("m1"), turns=[asked("m1")], owner=OWNER)
        store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=5)
        way.break_after(1)

        ended = store.end_turn("c", TurnEnd(turn_id="m1-max", state="cancelled", at=6), owner=OWNER)

        assert ended.state == "cancelled"
        assert way.broken == 1
