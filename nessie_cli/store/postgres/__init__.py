"""The store in PostgreSQL, by psycopg. Loaded only when a URL names one."""

from nessie_cli.store.postgres.store import PostgresStore, create_postgres, open_postgres

__all__ = ["PostgresStore", "create_postgres", "open_postgres"]
