"""SQLAlchemy with each of its drivers: elements of each kind, arrays of filters, expressions, the ORM."""

import asyncio
import os
import warnings

from common import ELEMENTS, LISTS_WITHOUT_A_TYPE, MISSING, NO_ELEMENTS, Letter, One, refused
from sqlalchemy import ARRAY, JSON, BigInteger, Column, Integer, MetaData, Table, Text, bindparam, case, cast
from sqlalchemy import create_engine, event, func, insert, literal, select, text, type_coerce, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.ext.mutable import MutableList
from sqlalchemy.orm import DeclarativeBase, Session, aliased, mapped_column

import pg_bloom.psycopg
from pg_bloom import Filter
from pg_bloom.sqlalchemy import Bloom, BloomArray, bloom_agg

A = Filter.build(["a"], 100)
B = Filter.build(range(50), 10)


class Base(DeclarativeBase):
    pass


class Reader(Base):
    __tablename__ = "reader"
    id = mapped_column(Integer, primary_key=True)
    name = mapped_column(Text)
    seen = mapped_column(Bloom)
    days = mapped_column(ARRAY(Bloom))


class Archive(Base):
    """Arrays with options, a default of the database, and changes of a list that SQLAlchemy notices."""

    __tablename__ = "archive"
    id = mapped_column(Integer, primary_key=True)
    from_zero = mapped_column(ARRAY(Bloom, zero_indexes=True))
    tuples = mapped_column(ARRAY(Bloom, as_tuple=True, dimensions=1))
    square = mapped_column(ARRAY(Bloom, dimensions=2))
    changing = mapped_column(MutableList.as_mutable(ARRAY(Bloom)), default=list)
    seen = mapped_column(Bloom, server_default=text(f"'\\x{bytes(A).hex()}'"))
    days = mapped_column(ARRAY(Bloom), server_default=text("'{NULL}'"))


READERS = Reader.__table__


def asked(element):
    return select(READERS.c.seen.may_contain(element)).where(READERS.c.id == 1)


def elements_have_the_type_of_their_kind(conn):
    for element in ELEMENTS:
        filter = literal(Filter.build([element]), Bloom)
        assert conn.scalar(select(filter.may_contain(element))) is True, element


def elements_of_columns(conn):
    """An element has the type of its kind; a list is an array; what has no type is refused."""
    conn.execute(insert(READERS), [{"id": 1}, {"id": 2}])
    for element in ELEMENTS:
        conn.execute(update(READERS).values(seen=Filter.build([element])))
        assert conn.scalar(asked(element)) is True, element
    conn.execute(update(READERS).values(seen=Filter.build([1])))
    assert conn.scalar(asked(One.one)) is True
    for missing in MISSING:
        assert conn.scalar(asked(missing)) is None
    refused(TypeError, lambda: asked(bindparam("x")), "bindparam", "type_")
    assert conn.scalar(asked(bindparam("x", type_=BigInteger)), {"x": 1}) is True
    for element in NO_ELEMENTS:
        refused(TypeError, lambda: asked(element), "cannot be an element", "literal(value, TYPE)")
    for element in LISTS_WITHOUT_A_TYPE:
        refused(TypeError, lambda: asked(element), "array", "write")
    refused(OverflowError, lambda: asked(2**63))

    conn.execute(update(READERS).values(seen=Filter.build([["a"]])))
    for typed in (
        cast(["a"], ARRAY(Text)),
        postgresql.array(["a"]),
        func.array(select(literal("a")).scalar_subquery()),
    ):
        assert conn.scalar(asked(typed)) is True
    assert conn.scalar(asked(cast([], ARRAY(Text)))) is False
    conn.execute(update(READERS).values(seen=Filter.build(["a"])))
    assert conn.scalar(asked(Letter.a)) is True
    conn.execute(READERS.delete())


def filters_are_values_in_expressions(conn):
    conn.execute(insert(READERS), [{"id": 1, "name": "a", "seen": A}, {"id": 2, "name": "b", "seen": None}])
    in_order = READERS.c.id
    either = case((READERS.c.name == "a", B), else_=A)
    assert conn.scalars(select(either).order_by(in_order)).all() == [B, A]
    assert conn.scalars(select(func.coalesce(READERS.c.seen, B)).order_by(in_order)).all() == [A, B]
    conn.execute(update(READERS).values(seen=either))
    assert conn.scalars(select(READERS.c.seen).order_by(in_order)).all() == [B, A]
    assert conn.scalar(select(literal(A))) == A and conn.scalar(select(bindparam("f", A))) == A
    assert conn.scalar(select(READERS.c.id).where(READERS.c.seen == A)) == 2
    assert conn.scalar(select(READERS.c.id).where(READERS.c.seen.in_([A, Filter.build([])]))) == 2
    assert conn.scalar(select(func.bloom_union(A, Filter.build(["b"], 100)))).contains_many(["a", "b"]) == [True, True]
    assert conn.scalars(select(READERS.c.id).where(READERS.c.seen.in_([]))).all() == []
    assert conn.scalars(select(READERS.c.id).where(READERS.c.seen.not_in([])).order_by(in_order)).all() == [1, 2]
    listed = select(READERS.c.id).where(READERS.c.seen.in_(bindparam("filters", expanding=True)))
    for filters, found in ([A, bytes(B)], {1, 2}), ([A], {2}), ([], set()):
        assert set(conn.scalars(listed, {"filters": filters})) == found, filters
    literals = update(READERS).values(seen=A).compile(conn, compile_kwargs={"literal_binds": True})
    conn.execute(text(str(literals).replace(":", "\\:")))
    assert set(conn.scalars(select(READERS.c.seen))) == {A}
    union = select(func.bloom_union_agg(READERS.c.seen)).scalar_subquery()
    assert conn.scalar(select(type_coerce(union, Bloom).may_contain("a"))) is True
    conn.execute(READERS.delete())


def operators_of_filters(conn):
    """`|` and `&` are those of SQL, not OR and AND of conditions."""
    b, c = Filter.build(["b"], 100), Filter.build(["c"], 100)
    conn.execute(insert(READERS), {"id": 1, "seen": A})
    seen = READERS.c.seen
    assert conn.scalar(select(seen | b)) == A | b and conn.scalar(select(seen & b)) == A & b
    assert conn.scalar(select((seen | b | c) & (seen | c))) == (A | b | c) & (A | c)
    assert conn.scalar(select((seen | b).may_contain("b"))) is True
    assert conn.scalar(select((seen & b).may_contain("b"))) is False
    union = update(READERS).values(seen=seen | literal(b)).returning(READERS.c.seen)
    assert conn.scalar(union) == A | b
    either = seen.may_contain("z") | seen.may_contain("b")
    assert conn.scalar(select(READERS.c.id).where(either)) == 1
    conn.execute(READERS.delete())


def arrays_are_values_in_expressions(conn):
    """Also where SQLAlchemy's own type of arrays stands."""
    for array in BloomArray(), ARRAY(Bloom), postgresql.ARRAY(Bloom):
        assert conn.scalar(select(cast(cast([A, None, B], array), BloomArray))) == [A, None, B], array
        assert conn.scalar(select(cast(cast([], array), BloomArray))) == []
    conn.execute(insert(READERS), {"id": 1, "days": [A, None]})
    literals = select(READERS.c.id).where(READERS.c.days == [A, None])
    literals = literals.compile(conn, compile_kwargs={"literal_binds": True})
    assert conn.scalar(text(str(literals).replace(":", "\\:"))) == 1
    conn.execute(READERS.delete())


def arguments_of_functions_are_elements(conn):
    """A list of texts has no type for some drivers, and the server would take it for one text."""
    empty = func.bloom_empty(100, 0.01)
    assert conn.scalar(select(func.bloom_add(A, "b"))).contains_many(["a", "b"]) == [True, True]
    assert conn.scalar(select(func.bloom_add(empty, 1.5))) == Filter.build([1.5], 100)
    assert conn.scalar(select(func.bloom_add(empty, ["a", "b"]))) == Filter.build([["a", "b"]], 100)
    assert conn.scalar(select(func.bloom_add_all(empty, ["a", "b"]))) == Filter.build(["a", "b"], 100)
    assert conn.scalar(select(func.bloom_from_array([1.5, None], 100))) == Filter.build([1.5], 100)
    assert conn.scalar(select(func.bloom_contains_any(A, ["z", "a"]))) is True
    assert conn.scalar(select(func.bloom_contains_all(A, ["z", "a"]))) is False
    assert conn.scalar(select(func.bloom_contains(A, "a"))) is True
    assert conn.scalar(select(func.bloom_present(A, ["z", "a"]))) == ["a"]
    assert conn.scalar(select(func.bloom_absent(A, ["z", "a"]))) == ["z"]
    for element in NO_ELEMENTS[:-1]:
        refused(TypeError, lambda: func.bloom_add(A, element), "cannot be an element")
    refused(TypeError, lambda: func.bloom_contains_any(A, []), "write")
    refused(Exception, lambda: conn.execute(select(func.bloom_contains(A, ["a"]))), "array of text")


def sets_take_elements(conn):
    conn.execute(text("SELECT bloom_set_create('crawled', 'text')"))
    assert conn.scalar(select(func.bloom_set_add("crawled", "a"))) is True
    assert conn.scalar(select(func.bloom_set_add_all("crawled", ["a", "b"]))) == ["b"]
    assert conn.scalar(select(func.bloom_set_contains("crawled", "b"))) is True
    assert conn.scalar(select(func.bloom_set_present("crawled", ["b", "c"]))) == ["b"]
    assert conn.scalar(select(func.bloom_set_absent("crawled", ["b", "c"]))) == ["c"]
    assert conn.scalar(select(func.bloom_set_remove("crawled", "b"))) is True
    conn.execute(text("DROP TABLE crawled"))


def adding_a_list_to_a_set_is_refused(conn):
    with conn.begin_nested() as savepoint:
        conn.execute(text("SELECT bloom_set_create('crawled', 'text')"))
        refused(Exception, lambda: conn.execute(select(func.bloom_set_add("crawled", ["a", "b"]))), "array of text")
        savepoint.rollback()


def arrays_are_read_whoever_made_the_table(conn):
    rows = [
        {"id": 1, "name": "a", "seen": A, "days": [A, None, B]},
        {"id": 2, "name": "b", "seen": None, "days": []},
    ]
    conn.execute(insert(READERS), rows)
    conn.execute(insert(READERS).values(id=3, name="c", seen=bytes(B), days=None))
    reflected = Table("reader", MetaData(), autoload_with=conn)
    assert isinstance(reflected.c.days.type, BloomArray) and isinstance(reflected.c.seen.type, Bloom)
    for table in READERS, reflected:
        rows = conn.execute(select(table.c.seen, table.c.days).order_by(table.c.id)).all()
        assert rows == [(A, [A, None, B]), (None, []), (B, None)]
        assert conn.scalar(select(table.c.id).where(table.c.days == [A, None, B])) == 1
        assert conn.scalar(select(table.c.days[1]).where(table.c.id == 1)) == A
        assert conn.scalar(select(table.c.id).where(table.c.days[1].may_contain("a"))) == 1
        members = select(func.unnest(table.c.days, type_=Bloom)).where(table.c.id == 1)
        assert conn.scalars(members).all() == [A, None, B]
        assert conn.scalars(select(table.c.id).where(table.c.days.contains([B]))).all() == [1]
        assert conn.scalar(select(table.c.days + [A]).where(table.c.id == 2)) == [A]
        second = update(table).where(table.c.id == 2)
        assert conn.execute(second.values(days=[B]).returning(table.c.days)).scalar() == [B]
        conn.execute(second.values(days=[]))
    raw = text("SELECT seen, days FROM reader WHERE id = 1").columns(seen=Bloom, days=BloomArray)
    assert conn.execute(raw).one() == (A, [A, None, B])
    nested = text("SELECT ARRAY[[seen, NULL]] AS square, array_prepend(seen, '[0:0]={NULL}') AS bounds FROM reader WHERE id = 1")
    assert conn.execute(nested.columns(square=BloomArray, bounds=BloomArray)).one() == ([[A, None]], [A, None])
    conn.execute(READERS.delete())


def functions_return_filters(conn):
    rows = [{"id": 1, "name": "a", "seen": A}, {"id": 2, "name": "b", "seen": None}, {"id": 3, "name": "c", "seen": B}]
    conn.execute(insert(READERS), rows)
    assert conn.scalar(select(func.bloom_union_agg(READERS.c.seen)).where(READERS.c.id == 1)) == A
    assert conn.scalar(select(func.bloom_from_array(cast(["a"], ARRAY(Text)), 100))) == A
    built = conn.scalar(select(bloom_agg(READERS.c.name, 100, 0.01, "classic")))
    assert built.header.layout == "classic" and built.contains_many(["a", "b", "c"]) == [True] * 3
    in_order = postgresql.aggregate_order_by(READERS.c.seen, READERS.c.id)
    assert conn.scalar(select(func.array_agg(in_order, type_=BloomArray))) == [A, None, B]
    conn.execute(READERS.delete())


def an_array_of_sqlalchemy_s_own_is_refused(conn):
    """The driver has the text of the array, of which SQLAlchemy reads each letter."""
    conn.execute(insert(READERS).values(id=1, seen=A))
    refused(TypeError, lambda: conn.scalar(select(func.array_agg(READERS.c.seen))), "BloomArray")


def columns_keep_their_options(engine):
    with Session(engine) as session:
        session.add(Archive(id=1, from_zero=[A, B], tuples=(A, None), square=[[A, B], [B, None]]))
        session.commit()
        one = session.get(Archive, 1)
        assert (one.seen, one.days) == (A, [None])
        assert one.tuples == (A, None) and one.square == [[A, B], [B, None]]
        assert session.scalar(select(Archive.from_zero[0])) == A
        one.changing.append(B)
        session.commit()
        assert session.scalar(select(Archive.changing)) == [B]
        # What the database fills in comes back by RETURNING.
        returned = insert(Archive).values(id=2).returning(Archive.seen, Archive.days)
        assert session.execute(returned).one() == (A, [None])
        session.query(Archive).delete()
        session.commit()


def the_orm_maps_filters(engine):
    """Aliases, and other columns as elements."""
    with Session(engine) as session:
        both = Filter.build(["b", "a"])
        session.add_all([Reader(id=1, name="a", seen=A, days=[A]), Reader(id=2, name="b", seen=both)])
        session.commit()
        other = aliased(Reader)
        pairs = select(Reader.id, other.id).where(other.seen.may_contain(Reader.name)).order_by(Reader.id, other.id)
        assert session.execute(pairs).all() == [(1, 1), (1, 2), (2, 2)]
        assert session.scalars(select(Reader).where(~Reader.seen.may_contain("b"))).one().id == 1
        one = session.get(Reader, 1)
        assert one.seen == A and one.days == [A]
        one.seen = one.seen | Filter.build(["c"], 100)
        one.days = [*one.days, one.seen]
        session.commit()
        assert "c" in session.scalar(select(Reader.days).where(Reader.id == 1))[1]
        session.query(Reader).delete()
        session.commit()


def variants_of_a_type_stay():
    table = Table(
        "variants",
        MetaData(),
        Column("arrays", ARRAY(Bloom, as_tuple=True).with_variant(JSON(), "sqlite")),
        Column("others", JSON().with_variant(postgresql.ARRAY(Bloom, zero_indexes=True), "postgresql")),
        Column("none", JSON().with_variant(Text(), "sqlite")),
    )
    sqlite, postgres = create_engine("sqlite://").dialect, postgresql.dialect()
    kinds = [(column.type.dialect_impl(sqlite), column.type.dialect_impl(postgres)) for column in table.c]
    assert isinstance(kinds[0][0], JSON) and repr(kinds[0][1]) == "BloomArray(as_tuple=True)"
    assert isinstance(kinds[1][0], JSON) and repr(kinds[1][1]) == "BloomArray(zero_indexes=True)"
    assert isinstance(kinds[2][0], Text) and isinstance(kinds[2][1], JSON)


def engines():
    """One for each driver, and one whose connections have the type registered."""
    socket = f"{os.environ['PGHOST']}/.s.PGSQL.{os.environ['PGPORT']}"
    pg8000 = {"unix_sock": socket, "user": os.environ["PGUSER"], "database": os.environ["PGDATABASE"]}
    yield create_engine("postgresql+psycopg://")
    registered = create_engine("postgresql+psycopg://")
    event.listen(registered, "connect", lambda connection, record: pg_bloom.psycopg.register(connection))
    yield registered
    yield create_engine("postgresql+psycopg2://")
    yield create_engine("postgresql+pg8000://", connect_args=pg8000)


def work_with(conn):
    elements_of_columns(conn)
    filters_are_values_in_expressions(conn)
    operators_of_filters(conn)
    arrays_are_values_in_expressions(conn)
    functions_return_filters(conn)
    sets_take_elements(conn)
    adding_a_list_to_a_set_is_refused(conn)


async def asynchronously():
    for driver in "asyncpg", "psycopg":
        engine = create_async_engine(f"postgresql+{driver}://")
        async with AsyncSession(engine) as session:
            session.add(Reader(id=1, name="a", seen=A, days=[A, B]))
            await session.flush()
            session.expire_all()
            reader = (await session.scalars(select(Reader).where(Reader.seen.may_contain("a")))).one()
            assert reader.seen == A and reader.days == [A, B]
            await session.rollback()
        async with engine.begin() as conn:
            for work in elements_have_the_type_of_their_kind, work_with, arrays_are_read_whoever_made_the_table:
                await conn.run_sync(work)
        async with engine.connect() as conn:
            await conn.run_sync(arguments_of_functions_are_elements)
        await engine.dispose()


def main():
    for engine in engines():
        Base.metadata.create_all(engine)
        with engine.begin() as conn:
            elements_have_the_type_of_their_kind(conn)
            work_with(conn)
            arrays_are_read_whoever_made_the_table(conn)
        # What is refused ends the transaction.
        with engine.connect() as conn:
            arguments_of_functions_are_elements(conn)
        the_orm_maps_filters(engine)
        columns_keep_their_options(engine)
        engine.dispose()
    unregistered = create_engine("postgresql+psycopg://")
    with unregistered.connect() as conn:
        an_array_of_sqlalchemy_s_own_is_refused(conn)
    unregistered.dispose()
    asyncio.run(asynchronously())
    variants_of_a_type_stay()


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
