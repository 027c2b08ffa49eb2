"""asyncpg: columns of type bloom come as Filter, and Filter goes as a parameter of that type."""

import asyncpg

from . import Filter
from ._types import stored_bytes

__all__ = ["register"]

_FIND_SCHEMA = """
    SELECT n.nspname::pg_catalog.text
    FROM pg_catalog.pg_extension AS e
    JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_bloom'
"""


async def register(connection: asyncpg.Connection) -> None:
    """Registers the type, which must be installed, for a connection; for those of a pool as `create_pool(init=register)`."""
    # A pool has most methods of a connection, but not this one.
    if not hasattr(connection, "set_type_codec"):
        kind = type(connection)
        raise TypeError(
            f"expected an asyncpg.Connection, not {kind.__module__}.{kind.__qualname__}: for a pool write "
            "create_pool(init=register)"
        )
    schema = await connection.fetchval(_FIND_SCHEMA)
    if schema is None:
        raise LookupError("type bloom not found: run CREATE EXTENSION pg_bloom in this database")
    await connection.set_type_codec("bloom", schema=schema, encoder=stored_bytes, decoder=Filter, format="binary")
