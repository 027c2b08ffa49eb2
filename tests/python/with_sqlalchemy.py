"""SQLAlchemy with each of its drivers: elements of each kind, arrays of filters, expressions, the ORM."""

import asyncio
import os
import pickle
import subprocess
import sys
import warnings
from datetime import timedelta

from common import ELEMENTS, LISTS_WITHOUT_A_TYPE, MISSING, NO_ELEMENTS, Color, Letter, One, refused
from sqlalchemy import ARRAY, JSON, BigInteger, Column, Enum, Integer, MetaData, Table, Text, bindparam, case, cast, column
from sqlalchemy import create_engine, event, func, insert, literal, literal_column, null, select, text, true, type_coerce
from sqlalchemy import update
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext import serializer
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.ext.mutable import MutableList
from sqlalchemy.orm import DeclarativeBase, Session, aliased, mapped_column
from sqlalchemy.sql.functions import _registry

import pg_bloom.psycopg
import pg_bloom.sqlalchemy
from pg_bloom import Filter
from pg_bloom.sqlalchemy import Bloom, BloomArray, CountingBloom, bloom_agg

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
COUNTED = Table("counted", Base.metadata, Column("id", Integer, primary_key=True), Column("copies", CountingBloom))


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
    refused(TypeError, lambda: asked(bindparam("x")), "without a value", "bindparam", "type_")
    refused(TypeError, lambda: asked(bindparam("x", callable_=lambda: 1)), "a callable returns", "bindparam", "type_")
    refused(TypeError, lambda: asked(literal(object())), "with a value of type object", "literal")
    called = bindparam("x", callable_=lambda: 1, type_=BigInteger)
    assert conn.scalar(asked(called)) is True
    assert conn.scalar(asked(bindparam("x", type_=BigInteger)), {"x": 1}) is True
    for element in NO_ELEMENTS:
        write = "Color.red.value" if element in (Color.red, [Color.red]) else "literal(value, TYPE)"
        refused(TypeError, lambda: asked(element), "cannot be an element", write)
    refused(TypeError, lambda: asked((1,)), "list(value)")
    refused(TypeError, lambda: asked(int), "a class, int, cannot be an element")
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


def members_of_enumerations_are_refused(conn):
    """Wherever they stand in an element: psycopg would send the name. A type of enumerations converts them."""
    red = Color.red
    for one in (
        red,
        literal(red),
        literal(red, Text),
        bindparam("x", red, type_=Text),
        cast(red, Text),
        type_coerce(red, Text),
        func.lower(literal(red, Text)),
        func.nullif(literal("a"), literal(red, Text)),
        case((READERS.c.id == 1, literal(red, Text)), else_=READERS.c.name),
    ):
        for made in (
            READERS.c.seen.may_contain,
            COUNTED.c.copies.may_contain,
            func.bloom_shard,
            lambda element: func.bloom_contains(READERS.c.seen, element),
            lambda element: func.bloom_set_add("crawled", element),
            lambda element: func.counting_bloom_add(COUNTED.c.copies, element),
        ):
            refused(TypeError, lambda: made(one), "Color.red", "write its value, Color.red.value")
    for several in [red], cast([red], ARRAY(Text)), literal([red], ARRAY(Text)), postgresql.array([literal(red, Text)]):
        for made in (
            READERS.c.seen.may_contain,
            lambda elements: func.bloom_contains_any(READERS.c.seen, elements),
            lambda elements: func.bloom_set_add_all("crawled", elements),
            lambda elements: func.bloom_from_array(elements, 100),
        ):
            refused(TypeError, lambda: made(several), "write its value, Color.red.value")
    stored = Enum(Color, native_enum=False, values_callable=lambda members: [member.value for member in members])
    assert conn.scalar(select(func.bloom_contains(Filter.build(["r"]), cast(literal(red, stored), Text)))) is True
    # A condition, and a subquery, are not the element.
    readers = select(READERS.c.name).where(literal(red, Text) == "r").limit(1).scalar_subquery()
    for element in case((literal(red, stored) == red, "a"), else_="b"), readers:
        READERS.c.seen.may_contain(element)


def what_is_no_filter_is_said(conn):
    """Where SQLAlchemy's own operators would take an element for a filter, or for a text."""
    seen, copies = READERS.c.seen, COUNTED.c.copies
    for column in seen, copies, Reader.seen:
        for name in "contains", "icontains", "startswith", "endswith", "like", "ilike", "notlike", "regexp_match":
            refused(TypeError, lambda: getattr(column, name)("a"), "for texts", "column.may_contain(value)")
    for condition in seen.op("@>")("a"), seen == "a", seen.in_(["a"]):
        with conn.begin_nested() as savepoint:
            refused(Exception, lambda: conn.execute(select(condition)), "bytes", "column.may_contain(value)")
            savepoint.rollback()


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
    # Python asks a filter on the left before a column on the right, so there it is a literal.
    refused(TypeError, lambda: b | seen, "Filter")
    assert conn.scalar(select(literal(b) | seen)) == A | b and conn.scalar(select(literal(b) & seen)) == A & b
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
    refused(TypeError, lambda: func.bloom_add(A, [B]), "literal(filter, Bloom)", "literal(filters, BloomArray)")
    for wrong in A, [A]:
        refused(TypeError, lambda: READERS.c.seen.may_contain(wrong), "literal(filter, Bloom)")
    refused(Exception, lambda: conn.execute(select(func.bloom_contains(A, ["a"]))), "array of text")


def lists_without_members(conn):
    """Answers that don't depend on the type of the members, which such a list doesn't tell; else what to write."""
    conn.execute(insert(READERS), [{"id": 1, "seen": A}, {"id": 2, "seen": B}, {"id": 3, "seen": None}])
    answers = [
        (func.bloom_contains_any, False),
        (func.bloom_contains_all, True),
        (func.bloom_present, []),
        (func.bloom_absent, []),
    ]
    seen = READERS.c.seen
    for nothing in [], [None], [[]]:
        for function, answer in answers:
            assert conn.scalars(select(function(seen, nothing)).order_by(READERS.c.id)).all() == [answer, answer, None]
            for filter in B, Reader.seen, text("seen"), func.bloom_union(seen, B), select(seen).limit(1).scalar_subquery():
                asked = select(function(filter, nothing)).select_from(READERS).where(READERS.c.id == 2)
                assert conn.scalar(asked) == answer, filter
            assert conn.scalar(select(function(None, nothing))) is None
            assert conn.scalar(select(function(func.bloom_union_agg(seen), nothing)).where(READERS.c.id == 2)) == answer
        no_readers = ~func.bloom_contains_any(seen, nothing)
        assert conn.scalars(select(READERS.c.id).where(no_readers).order_by(READERS.c.id)).all() == [1, 2]
        assert conn.scalar(select(func.bloom_from_array(nothing, 100))) == Filter.build([], 100)
        copies = func.counting_bloom_empty(100)
        for function, *filter in (
            (func.bloom_add_all, seen),
            (func.bloom_set_add_all, "crawled"),
            (func.bloom_set_absent, "crawled"),
            (func.bloom_set_present, "crawled"),
            (func.bloom_set_remove_all, "crawled"),
            (func.counting_bloom_add_all, copies),
            (func.counting_bloom_remove_all, copies),
        ):
            refused(ValueError, lambda: function(*filter, nothing), "write cast([], ARRAY(Text))")
    assert conn.scalar(select(func.bloom_add_all(B, cast([], ARRAY(BigInteger))))) == B
    # NULL has no type, either.
    for missing in None, null():
        for function, _ in answers:
            assert conn.scalars(select(function(seen, missing)).order_by(READERS.c.id)).all() == [None] * 3
        assert conn.scalar(select(func.bloom_from_array(missing, 100))) is None
        found = func.bloom_find_all(literal_column("NULL::reader"), "name", missing).table_valued(*READERS.c)
        assert conn.scalars(select(found.c.id)).all() == []
        for function, filter in (
            (func.bloom_add_all, seen),
            (func.bloom_set_add_all, "crawled"),
            (func.counting_bloom_remove_all, copies),
        ):
            refused(ValueError, lambda: function(filter, missing), "None has no type", "write cast(None, ARRAY(Text))")
    assert conn.scalar(select(func.bloom_add_all(B, cast(None, ARRAY(BigInteger))))) == B
    conn.execute(READERS.delete())


def copies_are_counted(conn):
    """Functions and columns of counting_bloom."""
    empty = func.counting_bloom_empty(100)
    conn.execute(insert(COUNTED).values(id=1, copies=func.counting_bloom_add_all(empty, ["a", "b", "b"])))
    copies = COUNTED.c.copies
    assert [conn.scalar(select(func.counting_bloom_count(copies, x))) for x in ("a", "b", "c")] == [1, 2, 0]
    assert conn.scalar(select(COUNTED.c.id).where(copies.may_contain("a"))) == 1
    assert conn.scalar(select(func.counting_bloom_contains(copies, "c"))) is False
    conn.execute(update(COUNTED).values(copies=func.counting_bloom_remove_all(copies, ["a", "b"])))
    conn.execute(update(COUNTED).values(copies=func.counting_bloom_remove(func.counting_bloom_add(copies, "c"), "a")))
    assert [conn.scalar(select(func.counting_bloom_count(copies, x))) for x in ("a", "b", "c")] == [0, 1, 1]
    assert conn.scalar(select(func.counting_bloom_to_bloom(copies))).contains_many(["a", "b", "c"]) == [False, True, True]
    # A list is one element, an array.
    listed = func.counting_bloom_add(empty, ["a", "b"])
    assert conn.scalar(select(func.counting_bloom_count(listed, ["a", "b"]))) == 1
    refused(TypeError, lambda: func.counting_bloom_add(empty, (1,)), "cannot be an element")

    stored = conn.scalar(select(copies))
    assert isinstance(stored, str) and stored.startswith("\\x")
    conn.execute(insert(COUNTED).values(id=2, copies=stored))
    assert conn.scalars(select(COUNTED.c.id).where(copies == stored).order_by(COUNTED.c.id)).all() == [1, 2]
    assert len(conn.scalars(select(COUNTED.c.id).where(copies.in_([stored]))).all()) == 2
    both = func.counting_bloom_union_agg(copies)
    assert conn.scalar(select(func.counting_bloom_count(both, "b"))) == 2
    urls = func.counting_bloom_agg(COUNTED.c.id, 100)
    assert conn.scalar(select(func.counting_bloom_count(urls, 2))) == 1
    reflected = Table("counted", MetaData(), autoload_with=conn)
    assert isinstance(reflected.c.copies.type, CountingBloom)
    conn.execute(COUNTED.delete())


def functions_return_rows(conn):
    conn.execute(insert(READERS), {"id": 1, "name": "a", "seen": A, "days": [A, B]})
    conn.execute(insert(READERS), {"id": 2, "name": "b"})
    base = literal_column("NULL::reader")
    found = func.bloom_find(base, "name", "a").table_valued(*READERS.c)
    assert conn.execute(select(found.c.id, found.c.seen, found.c.days)).all() == [(1, A, [A, B])]
    for names, ids in (["b", "z"], [2]), (["a", "b"], [1, 2]), ([], []):
        found = func.bloom_find_all(base, "name", names).table_valued(*READERS.c)
        assert conn.scalars(select(found.c.id).order_by(found.c.id)).all() == ids
    found = func.bloom_find_all(base, "id", [2]).table_valued(*READERS.c)
    assert conn.scalars(select(found.c.name)).all() == ["b"]
    answer = func.bloom_query(READERS.c.seen, "a").table_valued(column("contains"), column("confidence")).lateral()
    asked = select(READERS.c.id, answer.c.contains).join_from(READERS, answer, true()).order_by(READERS.c.id)
    assert conn.execute(asked).all() == [(1, True), (2, None)]
    header = func.bloom_header(READERS.c.seen).table_valued("layout", "capacity").lateral()
    asked = select(header.c.layout, header.c.capacity).join_from(READERS, header, true()).where(READERS.c.id == 1)
    assert conn.execute(asked).all() == [("blocked", 100)]
    conn.execute(select(func.bloom_set_create("crawled", "text", 1000)))
    sets = func.bloom_set_info("crawled").table_valued("elements", "capacity")
    assert conn.execute(select(sets.c.elements, sets.c.capacity)).all() == [(0, 1000)]
    conn.execute(text("DROP TABLE crawled"))
    shards = {conn.scalar(select(func.bloom_shard(element, 4))) for element in ("a", "b", "c", "d", "e", ["a"], 1.5)}
    assert shards <= set(range(4)) and len(shards) > 1
    conn.execute(READERS.delete())


def sets_take_elements(conn):
    assert conn.scalar(select(func.bloom_set_create("crawled", "text"))) == "crawled"
    assert conn.scalar(select(func.bloom_set_add("crawled", "a"))) is True
    assert conn.scalar(select(func.bloom_set_add_all("crawled", ["a", "b"]))) == ["b"]
    assert conn.scalar(select(func.bloom_set_contains("crawled", "b"))) is True
    assert conn.scalar(select(func.bloom_set_present("crawled", ["b", "c"]))) == ["b"]
    assert conn.scalar(select(func.bloom_set_absent("crawled", ["b", "c"]))) == ["c"]
    assert conn.scalar(select(func.bloom_set_remove("crawled", "b"))) is True
    conn.execute(text("DROP TABLE crawled"))

    for keep in timedelta(days=7), "7 days", literal("7 days"):
        for capacity, fpr in (None, None), (1000, 0.001), (literal(1000), literal(0.001)):
            made = func.bloom_set_create("crawled", literal_column("'bigint'"), capacity, fpr, keep, True, False)
            assert conn.scalar(select(made)) == "crawled"
            again = func.bloom_set_create("crawled", "bigint", capacity, fpr, keep, True, True)
            assert conn.scalar(select(again)) == "crawled"
            assert conn.scalar(select(func.bloom_set_add("crawled", 7))) is True
            conn.execute(text("DROP TABLE crawled"))
    refused(TypeError, lambda: func.bloom_set_create("crawled", "text", None, None, None, False, False, 1), "7 arguments")
    # Without the adapter's function, a text with a type names no type.
    conn.execute(text("SELECT bloom_set_create(:name, CAST(:element AS regtype))"), {"name": "crawled", "element": "text"})
    conn.execute(text("DROP TABLE crawled"))

    parquet = conn.scalar(select(func.bloom_to_parquet(Filter.build(["a"], 100, layout="parquet"))))
    assert "a" in conn.scalar(select(func.bloom_from_parquet(parquet, "text")))


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


def arrays_that_the_query_makes(conn):
    """What the message below names."""
    conn.execute(insert(READERS), [{"id": 1, "seen": A, "days": [A]}, {"id": 2, "seen": None, "days": [B, None]}])
    days, in_order = READERS.c.days, READERS.c.id
    array = postgresql.array
    for made, expected in (
        (type_coerce(array([A, B]), BloomArray), [A, B]),
        (type_coerce(array([READERS.c.seen, null(), B]), BloomArray), [A, None, B]),
        (type_coerce(array([A, B], type_=Bloom), BloomArray), [A, B]),
        (type_coerce(array([array([A, B]), array([B, A])]), BloomArray), [[A, B], [B, A]]),
        (cast(array([A, B]), BloomArray), [A, B]),
        (cast(array([], type_=Bloom), BloomArray), []),
        (type_coerce(array([A]) + array([B]), BloomArray), [A, B]),
        (func.array_append(days, B, type_=BloomArray), [A, B]),
        (func.array_cat(days, literal([B], BloomArray), type_=BloomArray), [A, B]),
        (func.array_prepend(B, days, type_=BloomArray), [B, A]),
        (func.coalesce(days, literal([B], BloomArray)), [A]),
        (func.coalesce(null(), literal([A, B], BloomArray), type_=BloomArray), [A, B]),
        (array([A, B])[2], B),
        (days + [B], [A, B]),
        (days + array([B]), [A, B]),
        (days[1:1], [A]),
    ):
        assert conn.scalar(select(made).where(READERS.c.id == 1)) == expected, str(made)
    in_array = READERS.c.seen == func.any(array([A, B]))
    assert conn.scalars(select(READERS.c.id).where(in_array)).all() == [1]
    all_seen = type_coerce(func.array_agg(postgresql.aggregate_order_by(READERS.c.seen, in_order)), BloomArray)
    assert conn.scalar(select(all_seen)) == [A, None]
    conn.execute(READERS.delete())


def an_array_of_sqlalchemy_s_own_is_refused(conn):
    """The driver has the text of the array, of which SQLAlchemy reads each letter."""
    conn.execute(insert(READERS).values(id=1, seen=A))
    for made in (
        func.array_agg(READERS.c.seen),
        postgresql.array([A, B]),
        postgresql.array([A, B], type_=Bloom),
    ):
        refused(TypeError, lambda: conn.scalar(select(made)), "type_coerce(array, BloomArray)", "type_=BloomArray for")
    conn.execute(READERS.delete())


def arrays_of_sqlalchemy_s_own_are_read(conn):
    """Where the driver knows arrays of filters."""
    array = postgresql.array
    for made in array([A, B]), array([A, B], type_=Bloom), type_coerce(array([A, B]), BloomArray):
        assert conn.scalar(select(made)) == [A, B], str(made)


def parameters_of_texts(conn):
    """A parameter of text() has the type of its value, if it is given before it is executed."""
    conn.execute(text("INSERT INTO reader (id, seen) VALUES (1, :seen)").bindparams(seen=A))
    insertion = text("INSERT INTO reader (id, seen) VALUES (2, :seen)").bindparams(bindparam("seen", type_=Bloom))
    conn.execute(insertion, {"seen": B})
    insertion = text("INSERT INTO reader (id, days) VALUES (3, :days)").bindparams(bindparam("days", type_=BloomArray))
    conn.execute(insertion, {"days": [A, None]})
    assert conn.scalars(select(READERS.c.seen).order_by(READERS.c.id)).all() == [A, B, None]
    assert conn.scalar(select(READERS.c.days).where(READERS.c.id == 3)) == [A, None]
    conn.execute(READERS.delete())


def filters_are_values_before_the_adapter_is_imported():
    program = """
from pg_bloom import Filter
from sqlalchemy import create_engine, literal, select
filter = Filter.build(["a"], 100)
engine = create_engine("postgresql+psycopg://")
with engine.connect() as conn:
    assert conn.scalar(select(literal(filter))) == filter
    assert conn.scalar(select(literal(filter).may_contain("a"))) is True
engine.dispose()
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


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


def expressions_can_be_pickled():
    """With each function of the extension."""
    names = [name for name, made in _registry["_default"].items() if issubclass(made, pg_bloom.sqlalchemy._Function)]
    assert len(names) == 40, names
    table = Table("pickled", MetaData(), Column("id", Integer), Column("seen", Bloom))
    arguments = {
        **dict.fromkeys(("bloom_contains_any", "bloom_add_all", "counting_bloom_add_all"), [table.c.seen, ["a"]]),
        **dict.fromkeys(("bloom_set_add_all", "bloom_present"), ["crawled", ["a", "b"]]),
        "bloom_set_create": ["crawled", "text", None, 0.01, timedelta(days=7)],
        "bloom_from_parquet": [b"a", "text"],
    }
    dialect = postgresql.dialect()
    for name in names:
        statement = select(getattr(func, name)(*arguments.get(name, [table.c.id]))).where(table.c.seen.may_contain(5))
        for copy in (
            pickle.loads(pickle.dumps(statement)),
            serializer.loads(serializer.dumps(statement), table.metadata),
        ):
            sql, sql_of_copy = (made.compile(dialect=dialect) for made in (statement, copy))
            assert (str(sql), sql.params) == (str(sql_of_copy), sql_of_copy.params), name
            assert type(list(copy.selected_columns)[0].type) is type(list(statement.selected_columns)[0].type), name


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


def engines_without_the_type():
    """One for each driver."""
    socket = f"{os.environ['PGHOST']}/.s.PGSQL.{os.environ['PGPORT']}"
    pg8000 = {"unix_sock": socket, "user": os.environ["PGUSER"], "database": os.environ["PGDATABASE"]}
    yield create_engine("postgresql+psycopg://")
    yield create_engine("postgresql+psycopg2://")
    yield create_engine("postgresql+pg8000://", connect_args=pg8000)


def registered_engine():
    """Its connections have the type registered."""
    engine = create_engine("postgresql+psycopg://")
    event.listen(engine, "connect", lambda connection, record: pg_bloom.psycopg.register(connection))
    return engine


def engines():
    yield from engines_without_the_type()
    yield registered_engine()


def work_with(conn):
    elements_of_columns(conn)
    members_of_enumerations_are_refused(conn)
    what_is_no_filter_is_said(conn)
    filters_are_values_in_expressions(conn)
    operators_of_filters(conn)
    arrays_are_values_in_expressions(conn)
    functions_return_filters(conn)
    sets_take_elements(conn)
    adding_a_list_to_a_set_is_refused(conn)
    arrays_that_the_query_makes(conn)
    lists_without_members(conn)
    copies_are_counted(conn)
    functions_return_rows(conn)
    parameters_of_texts(conn)


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
            if driver == "asyncpg":
                await conn.run_sync(arrays_of_sqlalchemy_s_own_are_read)
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
    registered = registered_engine()
    with registered.connect() as conn:
        arrays_of_sqlalchemy_s_own_are_read(conn)
    registered.dispose()
    for engine in engines_without_the_type():
        with engine.connect() as conn:
            an_array_of_sqlalchemy_s_own_is_refused(conn)
        engine.dispose()
    filters_are_values_before_the_adapter_is_imported()
    asyncio.run(asynchronously())
    variants_of_a_type_stay()
    expressions_can_be_pickled()


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
