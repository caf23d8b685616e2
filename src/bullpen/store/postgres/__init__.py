"""PostgresStore: conversations of many machines in one PostgreSQL database. Needs the extra `cluster`."""
