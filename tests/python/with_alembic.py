"""Migrations by Alembic, as a project runs them: after an upgrade there is nothing left to migrate."""

import contextlib
import io
import sys
import tempfile
import warnings
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config

ENV = """
from alembic import context
from sqlalchemy import NullPool, create_engine
import pg_bloom.alembic
import models

with create_engine("postgresql+psycopg://", poolclass=NullPool).connect() as connection:
    context.configure(
        connection=connection, target_metadata=models.metadata, include_schemas=True, **pg_bloom.alembic.options
    )
    with context.begin_transaction():
        context.run_migrations()
"""

MODELS = """
from sqlalchemy import JSON, BigInteger, Column, Identity, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY
from pg_bloom.sqlalchemy import Bloom, CountingBloom, bloom_index

metadata = MetaData()
Table(
    "readers",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("url", Text),
    Column("tags", ARRAY(Text)),
    Column("seen", Bloom, nullable=False),
    Column("copies", CountingBloom),
    Column("days", ARRAY(Bloom)),
    Column("stored", Bloom().with_variant(LargeBinary(), "sqlite")),
    Column("history", ARRAY(Bloom, zero_indexes=True).with_variant(JSON(), "sqlite")),
    Column("other", JSON().with_variant(ARRAY(Bloom, as_tuple=True), "postgresql")),
    bloom_index("readers_url", "url", fpr=0.001, pages_per_range=16),
    bloom_index("readers_parts", "url", ops={"url": "text_ngram_ops"}),
    bloom_index("readers_tags", "tags", ops={"tags": "array_ops"}),
    bloom_index("readers_seen", "seen"),
)
Table("writers", metadata, Column("id", BigInteger, primary_key=True), Column("seen", Bloom), schema="app")
"""

TEMPLATE = """
from alembic import op
import sqlalchemy as sa
${imports or ''}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}

def upgrade():
    ${upgrades}

def downgrade():
    ${downgrades}
"""


def project(folder):
    """Writes a project into a folder, and returns its configuration."""
    (folder / "env.py").write_text(ENV)
    (folder / "models.py").write_text(MODELS)
    (folder / "script.py.mako").write_text(TEMPLATE)
    (folder / "versions").mkdir()
    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "os")
    return config


def nothing_is_left_to_migrate(folder):
    config = project(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        command.revision(config, "first", autogenerate=True)
        command.upgrade(config, "head")
        command.check(config)
        command.downgrade(config, "base")
        command.upgrade(config, "head")
        command.check(config)
    (migration,) = (folder / "versions").glob("*.py")
    for column in (
        "sa.Column('stored', Bloom().with_variant(sa.LargeBinary(), 'sqlite'), nullable=True)",
        "BloomArray(zero_indexes=True).with_variant(sa.JSON(), 'sqlite'), nullable=True)",
        "sa.JSON().with_variant(BloomArray(as_tuple=True), 'postgresql'), nullable=True)",
    ):
        assert column in migration.read_text(), column


if __name__ == "__main__":
    warnings.simplefilter("error")
    with psycopg.connect(autocommit=True) as conn:
        # A filter set is a table that no model describes.
        conn.execute("CREATE SCHEMA app; SELECT bloom_set_create('app.crawled', 'text', 1000)")
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        nothing_is_left_to_migrate(Path(folder))
