"""Orders to workers, as rows: placed in the commit that starts a turn. All else about them is in bullpen.cluster."""

from typing import LiteralString

from bullpen.store.base import PoolOrder
from bullpen.store.postgres.place import Place

PLACE: LiteralString = """
    INSERT INTO bullpen_cluster.orders (conversation, turn, pool, worker, work, notes, token, owner)
    VALUES (%(id)s, %(turn)s, %(pool)s, %(worker)s, %(work)s, %(notes)s, %(token)s, %(node)s) ON CONFLICT DO NOTHING
"""

# Where there is no cluster, there are no orders either.
IS_THERE: LiteralString = """
    SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'bullpen_cluster' AND has_schema_privilege(oid, 'USAGE'))
"""
FORGET: LiteralString = "SELECT bullpen_cluster.remove_orders(%(id)s, '{}')"


def place_order(place: Place, turn_id: str, order: PoolOrder) -> None:
    """Place the order for a turn."""
    where = {"pool": order.pool, "worker": order.worker}
    what = {"work": order.work, "notes": order.notes}
    place.ask(PLACE, turn=turn_id, token=order.token, node=order.node, **where, **what)


def forget(place: Place) -> None:
    """Let nobody run what was ordered for a conversation, and leave nothing of it; what runs is cancelled first."""
    if place.all(IS_THERE) == [(True,)]:
        place.ask(FORGET)
