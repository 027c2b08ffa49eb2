"""What the adapters for drivers and mappers send and read: elements of each kind, arrays of filters, expressions."""

import asyncio
import os
import uuid
import warnings
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum

import asyncpg
import numpy
import psycopg
from sqlalchemy import ARRAY, Boolean, Column, Index, Integer, MetaData, Table, Text, cast, create_engine, event, func
from sqlalchemy import insert, literal, select, text, type_coerce, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Session, aliased, mapped_column

import pg_bloom.asyncpg
import pg_bloom.psycopg
from pg_bloom import Filter
from pg_bloom.sqlalchemy import Bloom, BloomArray, bloom_agg

ELEMENTS = [
    True, 1, -(2**63), "a", "1", "{a}", b"a\0", 0.1, float("-inf"), Decimal("-1.50"), uuid.UUID(int=1), date(2020, 1, 1),
    datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=3))), time(1), time(1, tzinfo=timezone.utc),
    timedelta(1, 2, 3), [1, None], [[-1, 2**40], [2, 3]], ["a", 'b"{,'], [0.5], [True], [b"a"], [date(2020, 1, 1)],
    [uuid.UUID(int=1)], [Decimal(1)], [timedelta(1)], [datetime(2020, 1, 1, tzinfo=timezone.utc)],
]  # fmt: skip
UNTYPED = [], [None], [[]], [1, 2.5], [True, 1], [1, "a"], [(1,)], [datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=timezone.utc)]
A, B = Filter.build(["a"], 100), Filter.build(range(50), 10)


class One(IntEnum):
    one = 1


def refused(exception, work, *words):
    try:
        result = work()
    except exception as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(f"{result} where {exception} was expected")


def drivers():
    """Filters and arrays of them, in both directions."""
    for binary in False, True:
        with psycopg.connect(autocommit=True) as conn:
            pg_bloom.psycopg.register(conn)
            for sql in "SELECT %s, %s", "SELECT %b, %b", "SELECT %t, %t":
                assert conn.execute(sql, [A, [A, B, None]], binary=binary).fetchone() == (A, [A, B, None])

    async def main():
        conn = await asyncpg.connect()
        await pg_bloom.asyncpg.register(conn)
        row = await conn.fetchrow("SELECT $1::bloom, $2::bloom[]", A, [A, B, None])
        assert tuple(row) == (A, [A, B, None])
        await conn.close()
        conn = await psycopg.AsyncConnection.connect(autocommit=True)
        await pg_bloom.psycopg.register_async(conn)
        assert await (await conn.execute("SELECT %s, %s", [A, [B, None]])).fetchone() == (A, [B, None])
        await conn.close()

    asyncio.run(main())


class Base(DeclarativeBase):
    pass


class Reader(Base):
    __tablename__ = "reader"
    id = mapped_column(Integer, primary_key=True)
    name = mapped_column(Text)
    seen = mapped_column(Bloom)
    days = mapped_column(ARRAY(Bloom))


def asked(table, element):
    return select(table.c.seen.may_contain(element)).where(table.c.id == 1)


def sqlalchemy_asks(engine):
    """An element has the type of its kind; a list is an array; what has no type is refused."""
    readers = Reader.__table__
    with engine.begin() as conn:
        conn.execute(insert(readers), [{"id": 1}, {"id": 2}])
        for element in ELEMENTS:
            conn.execute(update(readers).values(seen=Filter.build([element])))
            assert conn.scalar(asked(readers, element)) is True, element
        conn.execute(update(readers).values(seen=Filter.build([1])))
        assert conn.scalar(asked(readers, One.one)) and conn.scalar(asked(readers, numpy.int16(1)))
        for element in numpy.float32(1), (1,), A, object():
            refused(TypeError, lambda: asked(readers, element), type(element).__name__)
        assert conn.scalar(asked(readers, None)) is None
        for element in UNTYPED:
            refused(TypeError, lambda: asked(readers, element), "array", "write")
        union = select(func.bloom_union_agg(readers.c.seen)).scalar_subquery()
        assert conn.scalar(select(type_coerce(union, Bloom).may_contain(1))) is True
        literals = update(readers).values(seen=A).compile(engine, compile_kwargs={"literal_binds": True})
        conn.execute(text(str(literals).replace(":", "\\:")))
        assert set(conn.scalars(select(readers.c.seen))) == {A}
        conn.execute(update(readers).values(seen=Filter.build([["a"]])))
        for typed in cast(["a"], ARRAY(Text)), postgresql.array(["a"]), func.array(select(literal("a")).scalar_subquery()):
            assert conn.scalar(asked(readers, typed))
        assert conn.scalar(asked(readers, cast([], ARRAY(Text)))) is False
        conn.execute(readers.delete())


def sqlalchemy_reads(engine):
    """Arrays of filters, whoever made the table; functions that give filters."""
    readers = Reader.__table__
    with engine.begin() as conn:
        conn.execute(insert(readers), [{"id": 1, "name": "a", "seen": A, "days": [A, None, B]}, {"id": 2, "name": "b", "seen": None, "days": []}])
        conn.execute(insert(readers).values(id=3, name="c", seen=bytes(B), days=None))
        reflected = Table("reader", MetaData(), autoload_with=conn)
        assert isinstance(reflected.c.days.type, BloomArray) and isinstance(reflected.c.seen.type, Bloom)
        for table in readers, reflected:
            rows = conn.execute(select(table.c.seen, table.c.days).order_by(table.c.id)).all()
            assert rows == [(A, [A, None, B]), (None, []), (B, None)]
            assert conn.scalar(select(table.c.id).where(table.c.days == [A, None, B])) == 1
            assert conn.scalar(select(table.c.days[1]).where(table.c.id == 1)) == A
            assert conn.scalar(select(table.c.id).where(table.c.days[1].may_contain("a"))) == 1
            assert conn.scalars(select(func.unnest(table.c.days, type_=Bloom)).where(table.c.id == 1)).all() == [A, None, B]
            assert conn.scalars(select(table.c.id).where(table.c.days.contains([B]))).all() == [1]
            assert conn.scalar(select(table.c.days + [A]).where(table.c.id == 2)) == [A]
            where = update(table).where(table.c.id == 2)
            assert conn.execute(where.values(days=[B]).returning(table.c.days)).scalar() == [B]
            conn.execute(where.values(days=[]))
        assert conn.scalar(select(func.bloom_union_agg(readers.c.seen)).where(readers.c.id == 1)) == A
        assert conn.scalar(select(func.bloom_from_array(cast(["a"], ARRAY(Text)), 100))) == A
        built = conn.scalar(select(bloom_agg(readers.c.name, 100, 0.01, "classic")))
        assert built.header.layout == "classic" and built.contains_many(["a", "b", "c"]) == [True] * 3
        arrays = func.array_agg(postgresql.aggregate_order_by(readers.c.seen, readers.c.id))
        assert conn.scalar(select(func.array_agg(readers.c.seen, type_=BloomArray)).where(readers.c.id != 2)) in ([A, B], [B, A])
        if engine.driver == "psycopg":
            refused(TypeError, lambda: conn.scalar(select(arrays)), "BloomArray")
        assert conn.execute(text("SELECT seen FROM reader WHERE id = 1").columns(seen=Bloom)).scalar() == A
        conn.execute(readers.delete())


def sqlalchemy_maps(engine):
    """The ORM, with aliases and other columns as elements."""
    with Session(engine) as session:
        session.add_all([Reader(id=1, name="a", seen=A, days=[A]), Reader(id=2, name="b", seen=Filter.build(["b", "a"]))])
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


async def sqlalchemy_asynchronous():
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
            await conn.run_sync(lambda sync: sqlalchemy_types(sync))
        await engine.dispose()


def sqlalchemy_types(conn):
    for element in ELEMENTS:
        assert conn.scalar(select(literal(Filter.build([element]), Bloom).may_contain(element))) is True, element


def sqlalchemy():
    engine = create_engine("postgresql+psycopg://")
    Base.metadata.create_all(engine)
    registered = create_engine("postgresql+psycopg://")
    event.listen(registered, "connect", lambda connection, record: pg_bloom.psycopg.register(connection))
    for each in engine, registered:
        sqlalchemy_asks(each)
        if each is engine:
            sqlalchemy_reads(each)
        sqlalchemy_maps(each)
        each.dispose()
    asyncio.run(sqlalchemy_asynchronous())


def django():
    from django.conf import settings

    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    import django
    from django.contrib.postgres.fields import ArrayField
    from django.core.exceptions import FieldError
    from django.db import connection, models, transaction
    from django.db.models import Case, Exists, F, Func, OuterRef, Q, Subquery, Value, When
    from django.db.models.functions import Cast

    django.setup()
    from pg_bloom.django import BloomAgg, BloomField

    class Visit(models.Model):
        name = models.TextField(null=True)
        tags = ArrayField(models.TextField(), null=True)
        number = models.IntegerField(default=7)
        seen = BloomField(null=True)

        class Meta:
            app_label = "shop"

    visits = Visit.objects
    for server_side in False, True:
        connection.close()
        connection.settings_dict["OPTIONS"] = {"server_side_binding": server_side}
        with connection.schema_editor() as editor:
            editor.create_model(Visit)
        for element in ELEMENTS:
            visit = visits.create(seen=Filter.build([element]))
            assert visits.filter(seen__may_contain=element).count() == 1, element
            visit.delete()
        visit = visits.create(seen=Filter.build([1]))
        assert visits.filter(seen__may_contain=numpy.int16(1)).exists()
        visit.delete()
        for element in UNTYPED:
            refused(TypeError, visits.filter(seen__may_contain=element).count, "array", "write")
        for element in numpy.float32(1), (1,), {1}, A, object():
            refused(TypeError, visits.filter(seen__may_contain=element).count, type(element).__name__)
        for lookup in "contains", "icontains", "startswith", "gt":
            refused(FieldError, lambda: visits.filter(**{f"seen__{lookup}": 1}), lookup)
        django_asks(locals())
        with connection.schema_editor() as editor:
            editor.delete_model(Visit)
    connection.close()


def django_asks(names):
    """Expressions of Django around the lookup and the field."""
    visits, transaction, connection = (names[name] for name in ("visits", "transaction", "connection"))
    Q, F, Value, Func, Cast, ArrayField, Exists, OuterRef, Case, When, Subquery, BloomAgg, BloomField, models = (
        names[name] for name in "Q F Value Func Cast ArrayField Exists OuterRef Case When Subquery BloomAgg BloomField models".split()
    )
    one = visits.create(name="a", tags=["x"], seen=Filter.build(["a", "b"], 100))
    two = visits.create(name="b", seen=Filter.build(["b"], 100))
    none = visits.create(name="c")
    asked = lambda *conditions, **named: sorted(visits.filter(*conditions, **named).values_list("name", flat=True))  # noqa: E731
    assert asked(Q(seen__may_contain="a") | Q(name="c")) == ["a", "c"] and asked(~Q(seen__may_contain="a")) == ["b", "c"]
    assert asked(seen__may_contain=F("name")) == ["a", "b"] and asked(Q(seen__may_contain="b"), ~Q(name="a")) == ["b"]
    assert sorted(visits.exclude(seen__may_contain="a").values_list("name", flat=True)) == ["b", "c"]
    assert asked(seen__may_contain=Value("a")) == ["a"] and asked(seen__may_contain=One.one, name="z") == []
    assert asked(Exists(visits.filter(seen__may_contain=OuterRef("name")).exclude(pk=OuterRef("pk")))) == ["b"]
    assert asked(seen__may_contain=Subquery(visits.filter(name="a").values("name")[:1])) == ["a"]
    marked = visits.annotate(hit=Case(When(seen__may_contain="a", then=Value("yes")), default=Value("no")))
    assert sorted(marked.values_list("name", "hit")) == [("a", "yes"), ("b", "no"), ("c", "no")]
    visits.filter(name="a").update(seen=Func(F("seen"), F("name"), function="bloom_add"))
    visits.filter(name="b").update(seen=Filter.build([["x"], ["y"]]))
    empty = Cast(Value([]), ArrayField(models.TextField()))
    assert visits.filter(pk=two.pk, seen__may_contain=["x"]).exists()
    assert not visits.filter(pk=two.pk, seen__may_contain=empty).exists()
    refused(ValueError, lambda: visits.filter(seen__may_contain=None), "None")
    try:
        with transaction.atomic():
            two.seen = Filter.build([1])
            two.save()
            assert visits.filter(pk=two.pk, seen__may_contain=1).exists()
            raise ArithmeticError
    except ArithmeticError:
        pass
    two.refresh_from_db()
    none.refresh_from_db()
    assert ["x"] in two.seen and none.seen is None
    none.seen = Filter.build(["c"])
    visits.bulk_update([none], ["seen"])
    assert asked(name="c", seen__may_contain="c") == ["c"]
    names_of = visits.aggregate(f=BloomAgg("name", 100, 0.01, "classic", filter=Q(number=7)))["f"]
    assert names_of.header.layout == "classic" and names_of.contains_many(["a", "b", "c"]) == [True] * 3
    groups = visits.values("number").annotate(f=BloomAgg("name")).order_by("number")
    assert [("a" in group["f"]) for group in groups] == [True]
    assert visits.only("name").get(pk=one.pk).seen.contains_many(["a", "b"]) == [True, True]
    visits.all().delete()


warnings.simplefilter("error")
with psycopg.connect(autocommit=True) as conn:
    conn.execute("CREATE EXTENSION IF NOT EXISTS pg_bloom")
for check in drivers, sqlalchemy, django:
    check()
