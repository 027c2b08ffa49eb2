"""Which values of Python are which elements, and what is refused."""

import math
import warnings
import zoneinfo
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum

import numpy
import pandas
from common import NO_ELEMENTS, ONE_OF_EACH_KIND, UTC, refused

from pg_bloom import Filter, OverfullWarning


def another_kind_is_refused():
    """A value of another kind is refused, with both kinds; None is in no filter."""
    filters = [Filter.build([value]) for value in ONE_OF_EACH_KIND]
    for filter, held in zip(filters, ONE_OF_EACH_KIND):
        assert held in filter and None not in filter
        assert filter.contains_many([held, None]) == [True, False]
        assert Filter.build([None, held]) == filter
        for other, element in zip(filters, ONE_OF_EACH_KIND):
            if element is held:
                continue
            both = filter.header.key_kind, other.header.key_kind
            refused(TypeError, lambda: element in filter, *both)
            refused(TypeError, lambda: filter.contains_many([element]), *both)
            refused(TypeError, lambda: filter.add_all([element]), *both)
            refused(TypeError, lambda: Filter.build([held, element]), *both)
            refused(TypeError, lambda: filter | other, *both)
    assert 1 not in Filter.build([]) and "a" not in Filter.build([])


EQUAL_IN_SQL = [
    (0.0, -0.0),
    (math.nan, -math.nan),
    (Decimal("1.0"), Decimal("1")),
    (Decimal("1e2"), Decimal(100)),
    (Decimal("nan"), Decimal("snan")),
    (Decimal("-nan123"), Decimal("nan")),
    (1, IntEnum("One", "one").one),
    (b"a", bytearray(b"a")),
    (b"a", memoryview(b"a")),
    (time(tzinfo=UTC), time(tzinfo=timezone(timedelta(0)))),
    ("a", numpy.str_("a")),
    (True, numpy.bool_(True)),
    (7, numpy.int16(7)),
    (7, numpy.uint64(7)),
    (0.5, numpy.float16(0.5)),
    (0.5, numpy.float32(0.5)),
    (7.5, numpy.float64(7.5)),
    (date(2020, 1, 1), numpy.datetime64("2020-01-01")),
    (datetime(2020, 1, 1), numpy.datetime64("2020-01-01", "ns")),
    (timedelta(seconds=1), numpy.timedelta64(10**9, "ns")),
    (timedelta(1), pandas.Timedelta(1, "D")),
    (datetime(2020, 1, 1, tzinfo=UTC), pandas.Timestamp("2020-01-01 01:00+01")),
]


def equal_values_are_one_element():
    for first, second in EQUAL_IN_SQL:
        same = Filter.build([first])
        assert second in same and same == Filter.build([second]), (first, second)
        assert same.contains_many([second, first]) == [True, True]
        assert same.add_all([second]) == same


def lists_without_members_are_of_any_kind_of_array():
    integers = Filter.build([[1, 2]])
    assert [[1, 2]] not in integers
    for without_members in [], [None], [[]]:
        assert without_members not in integers
    assert integers.add_all([[]]).contains_many([[], [[]]]) == [True, True]

    unknown = [[], [None], [[None, None]]]
    for capacity in None, 100, 2:
        expected = Filter.build([[1], *unknown], capacity, 0.1)
        assert Filter.build([*unknown, [1]], capacity, 0.1) == expected
        assert Filter.build([*unknown, [1], []], capacity, 0.1) == expected
        assert Filter.build([[1]], capacity, 0.1).add_all(unknown) == expected
    many = [[None] * i for i in range(30)] * 9000 + [["a"]]
    assert Filter.build(many, 2000) == Filter.build(many[::-1], 2000)
    assert Filter.build(many) == Filter.build(many[::-1])

    for values in [[]], [[None]], [[]] * 600_000:
        refused(ValueError, lambda: Filter.build(values), "without members")
        refused(ValueError, lambda: Filter.build(values, 100), "without members")
    refused(TypeError, lambda: Filter.build([[], 1]), "array", "integer")
    refused(TypeError, lambda: Filter.build([[], [1], ["a"]]), "array of integer", "array of text")


def values_out_of_range_are_refused():
    integers, texts = Filter.build([1]), Filter.build(["a"])
    for value in 2**63, -(2**63) - 1:
        refused(OverflowError, lambda: value in integers, "integer")
    for value in "1e131072", "1e-16384", "1e999999":
        refused(OverflowError, lambda: Filter.build([Decimal(value)]), "numeric")
    refused(UnicodeEncodeError, lambda: "\ud800" in texts)


def what_has_no_kind_is_refused():
    integers = Filter.build([1])
    for value in *NO_ELEMENTS[:4], {}, 1j, len, numpy.longdouble(1), numpy.complex64(1), numpy.array([1]), numpy.array(1):
        refused(TypeError, lambda: value in integers, type(value).__name__, "element")
        refused(TypeError, lambda: Filter.build([[value]]), "element")


def lists_that_are_no_arrays_are_refused():
    for value in [[1], [1, 2]], [1, [2]], [[1], 2], [[[[[[[1]]]]]]]:
        refused(ValueError, lambda: Filter.build([value]))
    refused(TypeError, lambda: Filter.build([[1, "a"]]), "integer", "text")
    recursive = []
    recursive.append(recursive)
    refused(ValueError, lambda: recursive in Filter.build([1]))


def times_have_microseconds_and_fixed_zones():
    integers = Filter.build([1])
    # Zones with an offset that depends on the date, or that PostgreSQL doesn't have.
    in_berlin = time(1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    refused(ValueError, lambda: Filter.build([in_berlin]), "date", "offset")
    odd = time(1, tzinfo=timezone(timedelta(microseconds=1)))
    refused(ValueError, lambda: odd in integers, "offset", "second")
    for hours in 16, -16, 23:
        far = time(1, tzinfo=timezone(timedelta(hours=hours)))
        refused(ValueError, lambda: Filter.build([far]), "16 hours")
    assert Filter.build([time(1, tzinfo=timezone(timedelta(hours=15, minutes=59, seconds=59)))]).cardinality == 1
    late = "2020-01-01T00:00:00.000000001"
    for value in pandas.Timestamp(late), pandas.Timedelta(1, "ns"), numpy.datetime64(late):
        refused(ValueError, lambda: Filter.build([value]), "microseconds")
        refused(ValueError, lambda: Filter.build([[value]]), "microseconds")
    missing = [numpy.datetime64("NaT", "s"), numpy.array(["NaT"], "m8[s]")[0], pandas.NaT]
    assert Filter.build([True]).contains_many(missing) == [False] * 3
    for value, kind in (numpy.datetime64("2020-01-01T00"), "timestamp"), (numpy.timedelta64(1, "s"), "interval"):
        refused(TypeError, lambda: value in integers, "integer", kind)
        refused(TypeError, lambda: integers.add_all([value]), "integer", kind)
    refused(TypeError, lambda: Filter.build([numpy.timedelta64(1, "M")]), "no fixed length")


def one_value_is_not_many():
    """A str, bytes and what is like them are one element, not one for each letter or number."""
    texts, numbers = Filter.build(["a"]), Filter.build([97])
    ones = ["text", b"bytes", bytearray(b"abc"), memoryview(b"abc"), numpy.str_("text"), numpy.bytes_(b"abc")]
    for values in ones:
        for work in Filter.build, texts.contains_many, texts.add_all, numbers.contains_many, numbers.add_all:
            refused(TypeError, lambda: work(values), "list", type(values).__name__)
    refused(TypeError, lambda: texts.contains_many(5))


def parameters_are_checked():
    texts = Filter.build(["a"])
    refused(ValueError, lambda: Filter.build([], capacity=0), "capacity")
    refused(ValueError, lambda: Filter.build([], fpr=0.7), "0.7")
    refused(ValueError, lambda: Filter.build([], layout="other"), "other")
    refused(ValueError, lambda: Filter.build([], capacity=2**62), "too large")
    refused(ValueError, lambda: Filter.build([], capacity=2**32), "limit")
    refused(ValueError, lambda: Filter.build([], 10) & Filter.build([], 10, 0.001) | texts, "parameters")
    refused(TypeError, lambda: texts | b"bytes")


def overfull_filters_warn():
    filter = Filter.build(range(50), 100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Filter.build(range(100), 100)
        assert not caught
        Filter.build(range(1000), 100)
        assert [warning.category for warning in caught] == [OverfullWarning] and "100" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(OverfullWarning, lambda: filter.add_all(range(1000)))


if __name__ == "__main__":
    another_kind_is_refused()
    equal_values_are_one_element()
    lists_without_members_are_of_any_kind_of_array()
    values_out_of_range_are_refused()
    what_has_no_kind_is_refused()
    lists_that_are_no_arrays_are_refused()
    times_have_microseconds_and_fixed_zones()
    one_value_is_not_many()
    parameters_are_checked()
    overfull_filters_warn()
