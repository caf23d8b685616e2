"""The store in PostgreSQL keeps the contract."""

from pathlib import Path

from tests.store.postgres.server import empty_tables, needs_postgres

from bullpen.store.base import Store
from bullpen.store.postgres.store import PostgresStore
from bullpen.testing.store_contract import StoreContract


@needs_postgres
class TestPostgresStore(StoreContract):
    def open_store(self, folder: Path) -> Store:
        address = folder / "address"
        if not address.exists():
            address.write_text(empty_tables())
        return PostgresStore(address.read_text())
