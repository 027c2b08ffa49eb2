"""The same elements of each key kind, made here and by the server: both build the same filters of half of them, and give
the same answers for all. Then smaller filters, in every layout and size, and what is made of them.

The arguments are the number of elements, and which kinds to take: the first of them and the step to the next."""

import hashlib
import itertools
import sys
import uuid
import warnings
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import psycopg
from common import UTC

import pg_bloom.psycopg
from pg_bloom import Filter

STEP = timedelta(microseconds=3671000123)
# From an element's number to the next: not a multiple of 2, 3 or 4, so that what depends on the remainder by these, as
# zones and exponents below do, still changes from one element to the next.
NUMBERS_APART = 5
ZONES = [timezone(timedelta(hours=hours)) for hours in (-7, 0, 2)]
EAST = timezone(timedelta(hours=2))
LAYOUTS = "blocked", "classic", "parquet"


def md5(i):
    return hashlib.md5(str(i).encode()).digest()


def decimal(i):
    return Decimal(i - 500000).scaleb((-23, -3, 0, 17)[i % 4])


def moment(i):
    return datetime(1990, 1, 1) + i * STEP


def moment_with_zone(i):
    return moment(i).replace(tzinfo=UTC).astimezone(ZONES[i % 3])


def time_of_day(i):
    return (datetime(1, 1, 1) + timedelta(microseconds=i * 86399)).time()


# For each kind an expression of the integer i in SQL, and the same in Python.
KINDS = {
    "integer": ("i * 1000000007::bigint - 499999999999999", lambda i: i * 1000000007 - 499999999999999),
    "text": ("'https://example.com/é€😀/' || i", lambda i: f"https://example.com/é€😀/{i}"),
    "bytea": ("decode(md5(i::text), 'hex')", md5),
    "float": ("(i - 500000) / 7::float8", lambda i: (i - 500000) / 7),
    "numeric": ("(i - 500000) * (ARRAY[1e-23, 1e-3, 1, 1e17])[1 + i % 4]", decimal),
    "uuid": ("md5(i::text)::uuid", lambda i: uuid.UUID(bytes=md5(i))),
    "date": ("date '0001-01-01' + i", lambda i: date.fromordinal(1 + i)),
    "timestamp": ("timestamp '1990-01-01' + i * interval '3671000123 microseconds'", moment),
    "timestamptz": (
        "timestamptz '1990-01-01 00:00+00' + i * interval '3671000123 microseconds'",
        moment_with_zone,
    ),
    "boolean": ("i % 2 = 0", lambda i: i % 2 == 0),
    "time": ("time '00:00' + i * interval '86399 microseconds'", time_of_day),
    "timetz": (
        "timetz '00:00+02' + i * interval '86399 microseconds'",
        lambda i: time_of_day(i).replace(tzinfo=EAST),
    ),
    "interval": ("i * interval '3671000123 microseconds'", lambda i: i * STEP),
    "array of integer": ("ARRAY[i, NULL, -i]", lambda i: [i, None, -i]),
}
OTHER_KINDS = {
    "array of text": ("ARRAY[['é' || i, 'a'], [NULL, 'b']]", lambda i: [[f"é{i}", "a"], [None, "b"]]),
    "array of date": ("ARRAY[date '2000-01-01' + i]", lambda i: [date.fromordinal(730120 + i)]),
}


def fetch(conn, sql, *parameters):
    return conn.execute(sql, parameters or None).fetchone()


def compare_answers(conn, kind, count):
    """Both build a filter of every second of so many elements, and ask it for each."""
    expression, value = KINDS[kind]
    last = NUMBERS_APART * (count - 1)
    built, answers = fetch(
        conn,
        f"""WITH elements AS MATERIALIZED (
                SELECT i, {expression} AS x FROM generate_series(0, {last}, {NUMBERS_APART}) AS i
            ), built AS MATERIALIZED (
                SELECT bloom_agg(x, {count // 2}) AS f FROM elements WHERE i % 2 = 0
            )
            SELECT (SELECT f FROM built),
                string_agg(CASE WHEN (SELECT f FROM built) @> x THEN '1' ELSE '0' END, '' ORDER BY i)
            FROM elements""",
    )
    elements = [value(i) for i in range(0, last + 1, NUMBERS_APART)]
    assert Filter.build(elements[::2], count // 2) == built, kind
    assert built.header.key_kind == kind
    own_answers = built.contains_many(elements)
    assert "".join("01"[answer] for answer in own_answers) == answers, kind
    assert all(own_answers[::2])
    assert all(element in built for element in elements[:1000:2])
    # Both booleans are in the filter.
    assert kind == "boolean" or sum(own_answers[1::2]) < 0.02 * count


def compare_filters(conn, kind, expression, value):
    """Both build filters of every layout and size, merge and resize them, and say the same of them."""
    elements = [value(i) for i in range(2000)]
    expression = expression.replace("%", "%%")
    filters = [
        compare_building(conn, expression, elements, layout, capacity, count)
        for layout, capacity, count in itertools.product(LAYOUTS, (None, 100, 2000), (10, 2000))
    ]
    for a, b in itertools.product(filters, repeat=2):
        # Those of two layouts are refused, whatever is in them.
        if a.header.layout == b.header.layout or kind == "integer":
            compare_results(conn, "SELECT %s | %s", (a, b), lambda: a | b)
            compare_results(conn, "SELECT %s & %s", (a, b), lambda: a & b)
    for filter, capacity in itertools.product(filters, (None, 50, 4000)):
        compare_results(conn, "SELECT bloom_resize(%s, %s)", (filter, capacity), lambda: filter.resize(capacity))


def compare_building(conn, expression, elements, layout, capacity, count):
    """Both build a filter of the first `count` elements, which is returned."""
    empty = fetch(conn, "SELECT bloom_empty(%s, 0.02, %s)", capacity, layout)[0]
    assert Filter.build([], capacity, 0.02, layout) == empty == Filter.build([None], capacity, 0.02, layout)
    sql = f"SELECT bloom_agg({expression}, %s, 0.02, %s) FROM generate_series(0, {count - 1}) AS i"
    built = fetch(conn, sql, capacity, layout)[0]
    assert Filter.build(iter(elements[:count]), capacity, 0.02, layout) == built, (expression, layout, capacity, count)
    grown = Filter.build(elements[: count // 3], capacity, 0.02, layout).add_all(elements[count // 3 : count])
    # Without a capacity, a filter has the size of its first elements.
    assert capacity is None or grown == built

    answers = f"SELECT array_agg(%s @> ({expression}) ORDER BY i) FROM generate_series(0, 1999) AS i"
    assert fetch(conn, answers, built)[0] == built.contains_many(elements)
    header = built.header
    columns = "key_kind, representation, coalesce(capacity, 0), num_bits, num_hashes, bytes"
    assert fetch(conn, f"SELECT {columns} FROM bloom_header(%s)", built) == (
        header.key_kind,
        header.representation,
        header.capacity or 0,
        header.num_bits,
        header.num_hashes,
        header.bytes,
    )
    estimates = fetch(conn, "SELECT bloom_cardinality(%s), bloom_fpr(%s)", built, built)
    assert estimates == (built.cardinality, built.fpr)
    return built


def compare_results(conn, sql, parameters, work):
    """The server's result is that of `work`, or both refuse."""
    try:
        expected = conn.execute(sql, parameters).fetchone()[0]
    except psycopg.errors.InvalidParameterValue:
        expected = ValueError
    except psycopg.errors.DatatypeMismatch:
        expected = TypeError
    try:
        result = work()
    except (TypeError, ValueError) as error:
        result = type(error)
    assert result == expected, (sql, parameters, result, expected)


def parquets_narrow_kinds(conn):
    """Parquet's INT32 and FLOAT, which Python doesn't build: what they don't have is not in them, or refused."""
    int32, float32 = fetch(
        conn,
        """SELECT bloom_agg(i, 100, 0.01, 'parquet'), bloom_agg((i / 4.0)::real, 100, 0.01, 'parquet')
           FROM generate_series(1, 90) AS i""",
    )
    assert all(int32.contains_many(range(1, 91))) and all(i / 4 in float32 for i in range(1, 91))
    assert 2**31 not in int32 and 0.1 not in float32 and 1e300 not in float32
    for filter, value in (int32, 2**31), (float32, 0.1):
        try:
            filter.add_all([value])
        except ValueError as error:
            assert "out of range" in str(error)
        else:
            raise AssertionError(value)


def main(count, first, step):
    warnings.simplefilter("ignore", pg_bloom.OverfullWarning)
    with psycopg.connect(autocommit=True) as conn:
        pg_bloom.psycopg.register(conn)
        conn.execute("SET timezone = 'UTC'; SET intervalstyle = 'postgres'")
        conn.execute("SET pg_bloom.overfill = ignore; SET log_min_messages = fatal")
        for kind in list(KINDS)[first::step]:
            compare_answers(conn, kind, count)
        kinds = {**KINDS, **OTHER_KINDS}
        for kind in list(kinds)[first::step]:
            compare_filters(conn, kind, *kinds[kind])
        parquets_narrow_kinds(conn)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
