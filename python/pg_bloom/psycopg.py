"""psycopg 3: columns of type bloom come as Filter, and Filter goes as a parameter of that type."""

from psycopg import AsyncConnection, Connection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from . import Filter

_SCHEMA = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_bloom'"


class _TextLoader(Loader):
    def load(self, data: Buffer) -> Filter:
        return Filter(bytes(data).decode())


class _BinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Filter:
        return Filter(data)


class _TextDumper(Dumper):
    def dump(self, obj: Filter) -> Buffer:
        return b"\\x" + bytes(obj).hex().encode()


class _BinaryDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Filter) -> Buffer:
        return bytes(obj)


def _register(info, context) -> None:
    if info is None:
        raise LookupError("type bloom not found: run CREATE EXTENSION pg_bloom in this database")
    info.register(context)
    for dumper in _TextDumper, _BinaryDumper:
        context.adapters.register_dumper(Filter, type(dumper.__name__, (dumper,), {"oid": info.oid}))
    for loader in _TextLoader, _BinaryLoader:
        context.adapters.register_loader(info.oid, loader)


def register(connection: Connection) -> None:
    """Registers the type, which must be installed, for a connection."""
    row = connection.execute(_SCHEMA).fetchone()
    _register(row and TypeInfo.fetch(connection, f"{row[0]}.bloom"), connection)


async def register_async(connection: AsyncConnection) -> None:
    """The same for an asynchronous connection."""
    row = await (await connection.execute(_SCHEMA)).fetchone()
    _register(row and await TypeInfo.fetch(connection, f"{row[0]}.bloom"), connection)
