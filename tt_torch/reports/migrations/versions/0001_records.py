"""The table of records."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TEXT = ("commit", "time", "error", "message")


def upgrade() -> None:
    op.create_table(
        "records",
        sa.Column("id", sa.String(64), primary_key=True),
        *[sa.Column(name, sa.String, nullable=False) for name in ("kind", "key", "verdict", "data")],
        *[sa.Column(name, sa.String) for name in _TEXT],
        *[sa.Column(name, sa.Float) for name in ("pcc", "seconds")],
    )
