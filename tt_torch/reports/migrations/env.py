"""Alembic runs this file, which migrates the connection that Database gives it."""

from alembic import context
from alembic.ddl.impl import DefaultImpl


class DuckDBImpl(DefaultImpl):
    """Alembic has no implementation for DuckDB. The default one is enough, because our DDL is standard SQL."""

    __dialect__ = "duckdb"


context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
