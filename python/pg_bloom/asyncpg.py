"""asyncpg: columns of type bloom come as Filter, and Filter goes as a parameter of that type."""

from typing import Any

import asyncpg

from . import Filter

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
    await connection.set_type_codec("bloom", schema=schema, encoder=_stored, decoder=Filter, format="binary")


def _stored(value: Any) -> bytes:
    """Returns the bytes of a Filter, or of a value that Filter reads. `bytes` alone would make 44 zeros of the number 44."""
    return bytes(value if isinstance(value, Filter) else Filter(value))
