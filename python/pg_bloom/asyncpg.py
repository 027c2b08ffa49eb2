"""asyncpg: columns of type bloom come as Filter, and Filter goes as a parameter of that type."""

import asyncpg

from . import Filter


async def register(connection: asyncpg.Connection) -> None:
    """Registers the type, which must be installed, for a connection; of a pool as `create_pool(init=register)`."""
    schema = await connection.fetchval(
        "SELECT nspname::text FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'pg_bloom'"
    )
    if schema is None:
        raise LookupError("type bloom not found: run CREATE EXTENSION pg_bloom in this database")
    await connection.set_type_codec("bloom", schema=schema, encoder=bytes, decoder=Filter, format="binary")
