"""Filters as parameters and in columns with each driver, and what drivers make of elements by themselves."""

import asyncio
import contextlib
import logging
import os
import warnings
from datetime import date
from decimal import Decimal

import asyncpg
import pg8000.dbapi
import psycopg
import psycopg2
import psycopg_pool
from common import Color, refused
from psycopg.rows import dict_row, namedtuple_row, scalar_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

import pg_bloom.asyncpg
import pg_bloom.psycopg
from pg_bloom import Filter

A = Filter.build(["a"], 100)
B = Filter.build(range(50), 10)
BOTH_WAYS = "SELECT %s, %s", "SELECT %b, %b", "SELECT %t, %t"


def psycopg_sends_and_reads():
    with psycopg.connect(autocommit=True) as conn:
        pg_bloom.psycopg.register(conn)
        for binary in False, True:
            for sql in BOTH_WAYS:
                assert conn.execute(sql, [A, [A, B, None]], binary=binary).fetchone() == (A, [A, B, None])
        # A client's cursor writes the type's name behind the value.
        with psycopg.ClientCursor(conn) as cursor:
            assert cursor.execute("SELECT %s, %s", [A, [B]]).fetchone() == (A, [B])


def register_leaves_the_connection_as_it_was():
    for row_factory in dict_row, scalar_row, namedtuple_row:
        with psycopg.connect(row_factory=row_factory, cursor_factory=psycopg.RawCursor) as conn:
            pg_bloom.psycopg.register(conn)
            assert conn.info.transaction_status.name == "IDLE"
            conn.autocommit = True

    with psycopg.connect() as conn:
        conn.execute("CREATE TEMPORARY TABLE mine ()")
        pg_bloom.psycopg.register(conn)
        assert conn.info.transaction_status.name == "INTRANS"
        conn.rollback()
        assert conn.execute("SELECT to_regclass('mine')").fetchone() == (None,)


def pools_take_registered_connections():
    with ConnectionPool(configure=pg_bloom.psycopg.register, min_size=2, timeout=20, open=True) as pool:
        for row_factory in None, dict_row:
            with pool.connection() as conn:
                conn.row_factory = row_factory or conn.row_factory
                row = conn.execute("SELECT %s AS f", [A]).fetchone()
                assert row in ({"f": A}, (A,))
        pool.check()
    settings = {"autocommit": True, "row_factory": dict_row}
    with ConnectionPool(configure=pg_bloom.psycopg.register, kwargs=settings, timeout=20, open=True) as pool:
        with pool.connection() as conn:
            assert conn.execute("SELECT %s AS f", [A]).fetchone() == {"f": A}


async def asynchronous_pools_take_registered_connections():
    configure = pg_bloom.psycopg.register_async
    settings = {"row_factory": dict_row}
    async with AsyncConnectionPool(configure=configure, kwargs=settings, min_size=2, timeout=20, open=False) as pool:
        async with pool.connection() as conn:
            assert await (await conn.execute("SELECT %s AS f", [[A, None]])).fetchone() == {"f": [A, None]}
    async with asyncpg.create_pool(init=pg_bloom.asyncpg.register, min_size=2) as pool:
        async with pool.acquire() as conn:
            assert tuple(await conn.fetchrow("SELECT $1::bloom, $2::bloom[]", A, [A, B, None])) == (A, [A, B, None])


def copy_takes_and_gives_filters():
    rows = [(1, A, [A, None]), (2, None, None), (3, B, [])]
    with psycopg.connect() as conn:
        pg_bloom.psycopg.register(conn)
        conn.execute("CREATE TEMPORARY TABLE copied (id integer, f bloom, fs bloom[])")
        for form in "text", "binary":
            with conn.cursor().copy(f"COPY copied FROM STDIN (FORMAT {form})") as copy:
                copy.set_types(["integer", "bloom", "bloom[]"])
                for row in rows:
                    copy.write_row(row)
            with conn.cursor().copy(f"COPY copied TO STDOUT (FORMAT {form})") as copy:
                copy.set_types(["integer", "bloom", "bloom[]"])
                assert list(copy.rows()) == rows, form
            conn.execute("TRUNCATE copied")
            # The bytes and the text of a filter, as with asyncpg; `bytes` would make zeros of a number.
            for value in bytes(A), "\\x" + bytes(A).hex():
                with conn.cursor().copy(f"COPY copied (f) FROM STDIN (FORMAT {form})") as copy:
                    copy.set_types(["bloom"])
                    copy.write_row([value])
            found = conn.execute("SELECT f FROM copied").fetchall()
            conn.execute("TRUNCATE copied")
            assert found == [(A,), (A,)], form
        conn.commit()
        for value in 5, "text", b"bytes":
            refused(Exception, lambda: copy_one(conn, value), "filter")
            conn.rollback()


def copy_one(conn, value):
    conn.execute("CREATE TEMPORARY TABLE others (f bloom)")
    with conn.cursor().copy("COPY others FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["bloom"])
        copy.write_row([value])


def cursors_of_each_kind_have_filters():
    """Prepared statements after a pooler has discarded them, pipelines, cursors of the server."""
    with psycopg.connect(autocommit=True) as conn:
        pg_bloom.psycopg.register(conn)
        for prepared in True, False, None:
            conn.execute("DISCARD ALL")
            conn._prepared.clear()
            assert conn.execute("SELECT %s", [A], prepare=prepared).fetchone() == (A,)
        with conn.pipeline():
            assert [conn.execute("SELECT %s", [filter]).fetchone() for filter in (A, B)] == [(A,), (B,)]
        with conn.transaction(), conn.cursor("of_the_server", binary=True) as cursor:
            assert cursor.execute("SELECT %s, %s", [A, [B, None]]).fetchall() == [(A, [B, None])]


async def asyncpg_sends_what_filter_reads():
    conn = await asyncpg.connect()
    await pg_bloom.asyncpg.register(conn)
    sent = "SELECT $1::bloom"
    for value in A, bytes(A), memoryview(bytes(A)), "\\x" + bytes(A).hex():
        assert await conn.fetchval(sent, value) == A, value
    # `bytes` would make zeros of a number, as many as it says.
    for value in 5, 10**12, True, [A], "text", b"bytes", object():
        try:
            await conn.fetchval(sent, value)
        except asyncpg.DataError as error:
            assert "bloom" in str(error) or "filter" in str(error), error
        else:
            raise AssertionError(value)
    await conn.execute("CREATE TEMPORARY TABLE copied (f bloom, fs bloom[])")
    await conn.copy_records_to_table("copied", records=[(A, [A, None]), (None, None)])
    assert [tuple(row) for row in await conn.fetch("SELECT * FROM copied")] == [(A, [A, None]), (None, None)]
    await conn.close()


def any_encoding_and_schema():
    """In a database of encoding SQL_ASCII psycopg has texts as bytes."""
    with psycopg.connect(autocommit=True) as conn:
        conn.execute("CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII'")
    with psycopg.connect(dbname="ascii", autocommit=True) as conn:
        conn.execute('CREATE SCHEMA "of extensions"; CREATE EXTENSION pg_bloom SCHEMA "of extensions"')
    with psycopg.connect(dbname="ascii", cursor_factory=psycopg.ClientCursor) as conn:
        pg_bloom.psycopg.register(conn)
        assert conn.info.transaction_status.name == "IDLE"
        assert conn.execute("SELECT %s, %s", [A, [B]]).fetchone() == (A, [B])

    async def with_asyncpg():
        conn = await asyncpg.connect(database="ascii")
        await pg_bloom.asyncpg.register(conn)
        assert await conn.fetchval('SELECT $1::"of extensions".bloom', A) == A
        await conn.close()

    asyncio.run(with_asyncpg())


def what_is_missing_is_said():
    with psycopg.connect(dbname="template1") as conn:
        refused(LookupError, lambda: pg_bloom.psycopg.register(conn), "CREATE EXTENSION pg_bloom")
        assert conn.info.transaction_status.name == "IDLE"
        refused(TypeError, lambda: asyncio.run(pg_bloom.psycopg.register_async(conn)), "call register")

    async def asynchronous():
        conn = await psycopg.AsyncConnection.connect()
        refused(TypeError, lambda: pg_bloom.psycopg.register(conn), "call register_async")
        await conn.close()

    asyncio.run(asynchronous())


class Messages(logging.Handler):
    """What is logged."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def the_function_for_other_connections_is_refused():
    """At once, whether or not somebody awaits the result. A pool logs why it has no connection."""
    with psycopg.connect() as conn, contextlib.closing(psycopg2.connect("")) as older:
        refused(TypeError, lambda: pg_bloom.psycopg.register_async(conn), "call register", "configure=register)")
        refused(TypeError, lambda: pg_bloom.psycopg.register(older), "psycopg.Connection, not psycopg2")
        refused(TypeError, lambda: asyncio.run(pg_bloom.asyncpg.register(conn)), "asyncpg.Connection, not psycopg")

    messages = Messages()
    logger = logging.getLogger("psycopg.pool")
    logger.addHandler(messages)
    with ConnectionPool(configure=pg_bloom.psycopg.register_async, min_size=1, open=True) as pool:
        refused(psycopg_pool.PoolTimeout, lambda: pool.getconn(timeout=0.5))
    assert any("call register, as in ConnectionPool(configure=register)" in text for text in messages.texts), messages.texts
    messages.texts.clear()

    async def asynchronously():
        async with AsyncConnectionPool(configure=pg_bloom.psycopg.register, min_size=1, open=False) as pool:
            try:
                await pool.getconn(timeout=0.5)
            except psycopg_pool.PoolTimeout:
                pass
            else:
                raise AssertionError("a connection of another kind was registered")
        async with asyncpg.create_pool(min_size=1) as pool:
            try:
                await pg_bloom.asyncpg.register(pool)
            except TypeError as error:
                assert "create_pool(init=register)" in str(error), error
            else:
                raise AssertionError("a pool was registered")
            async with pool.acquire() as conn:
                await pg_bloom.asyncpg.register(conn)
                assert await conn.fetchval("SELECT $1::bloom", A) == A

    asyncio.run(asynchronously())
    named = "call register_async, as in AsyncConnectionPool(configure=register_async)"
    assert any(named in text for text in messages.texts), messages.texts
    logger.removeHandler(messages)


# Filters of texts, among them what drivers make of a list and of an enumeration's member.
OF_TEXTS = "(SELECT bloom_agg(x, 100) FROM (VALUES ('a'), ('{a,b}'), ('red'), ('r'), ('5')) AS v (x))"


@contextlib.contextmanager
def connections():
    """A connection of each driver that sends parameters by `cursor.execute(sql, [value])`."""
    socket = f"{os.environ['PGHOST']}/.s.PGSQL.{os.environ['PGPORT']}"
    other = pg8000.dbapi.connect(os.environ["PGUSER"], unix_sock=socket, database=os.environ["PGDATABASE"])
    with psycopg.connect() as own, contextlib.closing(psycopg2.connect("")) as older, contextlib.closing(other):
        for conn in own, older, other:
            conn.autocommit = True
        yield {"psycopg": own, "psycopg2": older, "pg8000": other}


def first(conn, sql, value):
    cursor = conn.cursor()
    cursor.execute(sql, [value])
    return cursor.fetchone()[0]


def strings_and_lists(drivers):
    """What docs/applications.md says of drivers under "What drivers send"."""
    found = f"SELECT {OF_TEXTS} @> %s"
    for name in "psycopg", "pg8000":
        conn = drivers[name]
        # A list is the text {a,b}, until a cast says that it is an array. The cast to text doesn't help.
        assert first(conn, found, ["a", "b"]) is True
        assert first(conn, found + "::text", ["a", "b"]) is True
        refused(Exception, lambda: first(conn, found + "::text[]", ["a", "b"]), "array of text")
        added = f"SELECT bloom_cardinality({OF_TEXTS} || %s) - bloom_cardinality({OF_TEXTS})"
        assert first(conn, added, ["x", "y"]) == 1
        # Functions of arrays refuse what has no type.
        any_of = f"SELECT bloom_contains_any({OF_TEXTS}, %s"
        refused(Exception, lambda: first(conn, any_of + ")", ["z", "a"]), "polymorphic type")
        assert first(conn, any_of + "::text[])", ["z", "a"]) is True
    refused(psycopg2.errors.DatatypeMismatch, lambda: first(drivers["psycopg2"], found, ["a", "b"]), "array of text")

    # The member of an enumeration goes by its name, or by its value.
    of_value = "SELECT bloom_agg('r'::text, 100) @> %s"
    assert first(drivers["psycopg"], of_value, Color.red) is False
    assert first(drivers["psycopg"], of_value, Color.red.value) is True
    assert first(drivers["pg8000"], of_value, Color.red) is True
    refused(psycopg2.ProgrammingError, lambda: first(drivers["psycopg2"], of_value, Color.red), "can't adapt")


def numbers_and_dates(drivers):
    """The rest of what the page says there."""
    floats = "SELECT bloom_agg(1.5::float8, 100) @> %s"
    assert first(drivers["psycopg"], floats, 1.5) is True
    refused(psycopg2.errors.DatatypeMismatch, lambda: first(drivers["psycopg2"], floats, 1.5), "float", "numeric")
    assert first(drivers["psycopg2"], floats + "::float8", 1.5) is True

    infinite = "SELECT bloom_agg('Infinity'::numeric, 100) @> %s"
    assert first(drivers["psycopg"], infinite, Decimal("Infinity")) is True
    assert first(drivers["psycopg2"], infinite, Decimal("Infinity")) is False
    assert first(drivers["psycopg2"], infinite + "::numeric", "Infinity") is True

    # pg8000 sends everything without a type.
    integers = "SELECT bloom_agg(5, 100) @> %s"
    refused(pg8000.dbapi.DatabaseError, lambda: first(drivers["pg8000"], integers, 5), "integer", "text")
    assert first(drivers["pg8000"], integers + "::bigint", 5) is True
    assert first(drivers["pg8000"], f"SELECT {OF_TEXTS} @> %s", 5) is True

    async def with_asyncpg():
        conn = await asyncpg.connect()
        first_day = "SELECT bloom_agg('0001-01-01'::date, 100) @> $1"
        assert await conn.fetchval(first_day + "::date", date.min) is False
        assert await conn.fetchval(first_day + "::text::date", date.min.isoformat()) is True
        # The server determines a text, and asyncpg checks it.
        for value in ["a", "b"], Color.red, 5:
            with_text = conn.fetchval(f"SELECT {OF_TEXTS} @> $1", value)
            try:
                await with_text
            except asyncpg.DataError:
                continue
            raise AssertionError(value)
        await conn.close()

    asyncio.run(with_asyncpg())


def types_are_named(drivers):
    """The second argument of bloom_set_create, which needs a cast where the driver sends a text with its type."""
    for name, conn in drivers.items():
        for cast in "", "::regtype", "::text::regtype":
            cursor = conn.cursor()
            cursor.execute(f"SELECT bloom_set_create(%s, %s{cast})", ["named", "text"])
            assert cursor.fetchone()[0] == "named", name
            cursor.execute("DROP TABLE named")
    conn = drivers["psycopg"]
    with conn.cursor() as cursor:
        cursor.adapters.register_dumper(str, psycopg.types.string.StrDumper)
        without_cast = "SELECT bloom_set_create(%s, %s)"
        refused(psycopg.errors.UndefinedFunction, lambda: cursor.execute(without_cast, ["named", "text"]))
        assert cursor.execute("SELECT bloom_set_create(%s, %s::regtype)", ["named", "text"]).fetchone() == ("named",)
        cursor.execute("DROP TABLE named")

    async def with_asyncpg():
        conn = await asyncpg.connect()
        for cast in "", "::regtype", "::text::regtype":
            assert await conn.fetchval(f"SELECT bloom_set_create($1, $2{cast})", "named", "text") == "named"
            await conn.execute("DROP TABLE named")
        await conn.close()

    asyncio.run(with_asyncpg())


def copies_are_counted(drivers):
    filter_of = "(SELECT counting_bloom_add_all(counting_bloom_empty(100), %s) AS f) AS made"
    texts = "SELECT counting_bloom_count(f, %s) FROM " + filter_of % "ARRAY['a', 'b', 'b']"
    integers = "SELECT counting_bloom_count(f, %s) FROM " + filter_of % "ARRAY[5, 7, 7]"
    for name, conn in drivers.items():
        assert [first(conn, texts, x) for x in ("a", "b", "c", None)] == [1, 2, 0, None]
        # pg8000 sends everything without a type.
        typed = integers.replace("%s", "%s::integer") if name == "pg8000" else integers
        assert [first(conn, typed, x) for x in (5, 7, 9)] == [1, 2, 0]


if __name__ == "__main__":
    warnings.simplefilter("error")
    psycopg_sends_and_reads()
    register_leaves_the_connection_as_it_was()
    pools_take_registered_connections()
    asyncio.run(asynchronous_pools_take_registered_connections())
    copy_takes_and_gives_filters()
    cursors_of_each_kind_have_filters()
    asyncio.run(asyncpg_sends_what_filter_reads())
    any_encoding_and_schema()
    what_is_missing_is_said()
    the_function_for_other_connections_is_refused()
    with connections() as drivers:
        strings_and_lists(drivers)
        numbers_and_dates(drivers)
        types_are_named(drivers)
        copies_are_counted(drivers)
