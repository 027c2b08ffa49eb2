"""psycopg 3: columns of type bloom come as Filter, and Filter goes as a parameter of that type."""

from typing import Any, Awaitable, Iterator, Optional, Tuple, Type, Union

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.rows import tuple_row
from psycopg.types import TypeInfo

from . import Filter
from ._types import FIND_TYPE, stored_bytes

__all__ = ["register", "register_async"]


def register(connection: Connection[Any]) -> None:
    """Registers the type, which must be installed, for a connection; for those of a pool as
    `ConnectionPool(configure=register)`. The connection is left in the transaction, or outside one, that it was in."""
    if not isinstance(connection, Connection):
        raise TypeError(
            f"expected a psycopg.Connection, not {_name_of(connection)}: for a psycopg.AsyncConnection call "
            "register_async, as in AsyncConnectionPool(configure=register_async)"
        )
    # The connection's own cursors may return rows of another form.
    with connection.transaction(), Cursor(connection, row_factory=tuple_row) as cursor:
        row = cursor.execute(FIND_TYPE).fetchone()
    _register_type(row, connection)


def register_async(connection: AsyncConnection[Any]) -> Awaitable[None]:
    """Does the same for an asynchronous connection: `AsyncConnectionPool(configure=register_async)`."""
    # Here, not in a coroutine: a synchronous pool would never run it.
    if not isinstance(connection, AsyncConnection):
        raise TypeError(
            f"expected a psycopg.AsyncConnection, not {_name_of(connection)}: for a psycopg.Connection call register, "
            "as in ConnectionPool(configure=register)"
        )
    return _register_async(connection)


async def _register_async(connection: AsyncConnection[Any]) -> None:
    async with connection.transaction(), AsyncCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(FIND_TYPE)
        row = await cursor.fetchone()
    _register_type(row, connection)


def _name_of(value: Any) -> str:
    """The type of a value as messages name it."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _register_type(
    row: Optional[Tuple[int, int, Union[str, bytes]]], connection: Union[Connection[Any], AsyncConnection[Any]]
) -> None:
    if row is None:
        raise LookupError("type bloom not found: run CREATE EXTENSION pg_bloom in this database")
    oid, array_oid, name = row
    if isinstance(name, bytes):
        # As psycopg has texts where the database's encoding is SQL_ASCII.
        name = name.decode()
    # This lets arrays of filters come and go as lists.
    TypeInfo("bloom", oid, array_oid, regtype=name).register(connection)
    for dumper in dumpers_of(oid):
        connection.adapters.register_dumper(Filter, dumper)
    for loader in _TextLoader, _BinaryLoader:
        connection.adapters.register_loader(oid, loader)


def dumpers_of(oid: int) -> Iterator[Type[Dumper]]:
    """The classes that write a Filter as a parameter of the type with this identifier."""
    for dumper in _TextDumper, _BinaryDumper:
        yield type(dumper.__name__, (dumper,), {"oid": oid})


class _TextLoader(Loader):
    def load(self, data: Buffer) -> Filter:
        return Filter(bytes(data).decode())


class _BinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Filter:
        return Filter(data)


# COPY gives them any value of a column, not only a Filter.
class _TextDumper(Dumper):
    def dump(self, obj: Any) -> Buffer:
        return b"\\x" + stored_bytes(obj).hex().encode()


class _BinaryDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> Buffer:
        return stored_bytes(obj)
