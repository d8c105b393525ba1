"""Run by Alembic: migrates the connection that Database gives it."""

from alembic import context
from alembic.ddl.impl import DefaultImpl


class DuckDBImpl(DefaultImpl):
    """Alembic has none for DuckDB; what we need of DDL is standard SQL."""

    __dialect__ = "duckdb"


context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
