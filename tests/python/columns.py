"""Arrays of numpy, Series of pandas and polars, arrays of pyarrow: the answers of lists, and no nanoseconds."""

import math
from datetime import date, datetime, time, timedelta, timezone

import numpy
import pandas
import polars
import pyarrow
from common import refused

from pg_bloom import Filter

# Nanoseconds since 1970-01-01, and since midnight: a whole number of microseconds, and not.
EXACT = 1_577_836_800_000_001_000
TOO_FINE = EXACT + 1
EXACT_TIME = 3_600_000_001_000
TOO_FINE_TIME = EXACT_TIME + 1
MOMENT = datetime(2020, 1, 1, microsecond=1)


def many_elements_have_the_answers_of_lists():
    numbers = list(range(0, 60000, 3))
    texts = [f"é€😀{i}" for i in numbers]
    for held in numbers, texts:
        filter = Filter.build(held[::2], 10000)
        expected = filter.contains_many(held)
        strided = numpy.array(held * 2)[: len(held)]
        for values in numpy.array(held), numpy.array(held, dtype=object), strided:
            answers = filter.contains_many(values)
            assert answers.dtype == bool and answers.tolist() == expected and answers.flags.writeable
            assert Filter.build(values[::2], 10000) == filter
        for column in polars.Series(held), pandas.Series(held), pyarrow.array(held), pyarrow.chunked_array([held, []]):
            assert filter.contains_many(column) == expected
        frame = polars.DataFrame({"x": held})
        found = frame.filter(filter.contains_many(frame["x"]))["x"].to_list()
        assert found == [x for x, answer in zip(held, expected) if answer]


def arrays_of_numpy():
    numbers = list(range(0, 240, 3))
    filter = Filter.build(numbers[:50])
    for kind in "uint8", "int16", "uint32", "uint64", ">i8", ">u2":
        assert filter.contains_many(numpy.array(numbers, dtype=kind)).tolist() == filter.contains_many(numbers)
    refused(OverflowError, lambda: filter.contains_many(numpy.array([2**63], dtype="uint64")))
    refused(ValueError, lambda: filter.contains_many(numpy.array([[1], [2]])), "dimension")
    refused(TypeError, lambda: filter.contains_many(numpy.array(["a"])), "text", "integer")
    refused(ValueError, lambda: Filter.build(["a"]).contains_many(numpy.array(["\ud800"])))
    assert Filter.build([""]).contains_many(numpy.array(["", "a"])).tolist() == [True, False]

    floats = numpy.array([0.5, 0.1, -0.0, math.nan], dtype="float32")
    held = Filter.build([0.5, 0.0, math.nan])
    assert held.contains_many(floats).tolist() == [True, False, True, True] == held.contains_many(list(floats))
    assert Filter.build(floats) == Filter.build(floats.tolist()) == Filter.build(list(floats))
    flags = numpy.array([True, False, True])
    assert Filter.build([True]).contains_many(flags).tolist() == [True, False, True]
    integers = Filter.build([1])
    refused(TypeError, lambda: integers.contains_many(flags), "integer", "boolean")
    refused(TypeError, lambda: integers.contains_many(floats), "integer", "float")
    refused(TypeError, lambda: integers.contains_many(numpy.array(["2020-01-01"], "M8[D]")), "integer", "date")
    refused(TypeError, lambda: Filter.build(numpy.array([1], dtype="longdouble")), "longdouble")


def times_of_numpy():
    """Times of any unit and byte order are what Python has for them, or refused, and never numbers."""
    day = Filter.build([date(2020, 1, 1)])
    midnight = Filter.build([datetime(2020, 1, 1)])
    second = Filter.build([timedelta(seconds=1)])
    for kind in "<M8[D]", ">M8[D]", "M8[M]", "M8[Y]", "M8[2D]":
        days = numpy.array(["2020-01-01", "NaT"], dtype=kind)
        assert Filter.build(days).header.key_kind == "date"
        assert day.contains_many(days).tolist() == [True, False]
    for unit in "h", "ms", "ns":
        moments = numpy.array(["2020-01-01", "NaT"], dtype=f"M8[{unit}]")
        assert midnight.contains_many(moments).tolist() == [True, False]
    for kind, ones in ("m8[s]", 1), ("m8[ns]", 10**9), (">m8[ms]", 1000):
        assert second.contains_many(numpy.array([ones, 2 * ones], dtype=kind)).tolist() == [True, False]
        assert Filter.build(numpy.array([ones], dtype=kind)) == second

    late = int(numpy.datetime64("2020-01-01", "s").astype("i8")) + 2**58
    for values in (
        numpy.array([late], "M8[s]"),
        numpy.array([2**62], "M8[s]"),
        numpy.array(["20000-01-01"], "M8[us]"),
        numpy.array(["20000-01-01"], "M8[D]"),
        numpy.array([TOO_FINE], "M8[ns]"),
        numpy.array([1], "m8[ns]"),
        numpy.array([2**62], "m8[s]"),
    ):
        refused(ValueError, lambda: Filter.build(values), "out of range")
        refused(ValueError, lambda: day.contains_many(values), "out of range")
    refused(TypeError, lambda: Filter.build(numpy.array([1], "m8[M]")), "no fixed length")


def missing_values_of_pandas():
    """Missing values are in no filter, whatever pandas has for them; NaN is an element of float."""
    text = Filter.build(["a"])
    for kind in None, "object", "string", "category":
        for missing in None, float("nan"), pandas.NA:
            series = pandas.Series(["a", missing, "b"], dtype=kind)
            assert text.contains_many(series) == [True, False, False]
            assert Filter.build(series) == Filter.build(["a", "b"])
    for values in pandas.Categorical(["a", None]), pandas.Index(["a", None]), pandas.array(["a", None]):
        assert text.contains_many(values) == [True, False] and Filter.build(values) == text
    midnights = pandas.Series(pandas.to_datetime(["2020-01-01", None]))
    for held, series in (
        (1, pandas.Series([1, None], dtype="Int64")),
        (True, pandas.Series([True, None], dtype="boolean")),
        (1.5, pandas.Series([1.5, None], dtype="Float64")),
        (datetime(2020, 1, 1), midnights),
        (1, pandas.Series([1, None], dtype=pandas.ArrowDtype(pyarrow.int64()))),
    ):
        assert Filter.build([held]).contains_many(series) == [True, False]
    assert Filter.build([float("nan")]).contains_many(pandas.Series([1.5, None])) == [False, True]
    refused(ValueError, lambda: text.contains_many(pandas.DataFrame({"a": ["a", "z"]})), "dimension")
    refused(ValueError, lambda: Filter.build(pandas.DataFrame({"a": [1]})), "dimension")


def columns_in_nanoseconds(moments, times):
    """Columns of these numbers of nanoseconds, and the elements that each has if they are whole microseconds."""
    in_utc = MOMENT.replace(tzinfo=timezone.utc)
    clock = time(1, 0, 0, 1)
    span = timedelta(hours=1, microseconds=1)
    series = polars.Series
    kinds = [
        (polars.Datetime("ns"), moments, MOMENT),
        (polars.Datetime("ns", "UTC"), moments, in_utc),
        (polars.Duration("ns"), times, span),
        (polars.Time, times, clock),
    ]
    for dtype, numbers, element in kinds:
        yield series(numbers).cast(dtype), [element]
        yield series([numbers, [], None]).cast(polars.List(dtype)), [[element], []]
        yield series([[numbers]]).cast(polars.List(polars.List(dtype))), [[[element]]]
        yield series([numbers]).cast(polars.Array(dtype, 1)), [[element]]
        yield series([[numbers]]).cast(polars.Array(polars.List(dtype), 1)), [[[element]]]

    kinds = [
        (pyarrow.timestamp("ns"), moments, MOMENT),
        (pyarrow.timestamp("ns", "UTC"), moments, in_utc),
        (pyarrow.duration("ns"), times, span),
        (pyarrow.time64("ns"), times, clock),
    ]
    for dtype, numbers, element in kinds:
        flat = pyarrow.array(numbers, pyarrow.int64()).cast(dtype)
        lists = pyarrow.ListArray.from_arrays([0, 1, 1], flat)
        fixed = pyarrow.FixedSizeListArray.from_arrays(flat, 1)
        large = pyarrow.LargeListArray.from_arrays([0, 1], flat)
        nested = pyarrow.ListArray.from_arrays([0, 1], fixed)
        for array, elements in (
            (flat, [element]),
            (flat.dictionary_encode(), [element]),
            (lists, [[element], []]),
            (fixed, [[element]]),
            (large, [[element]]),
            (nested, [[[element]]]),
        ):
            yield array, elements
            yield pyarrow.chunked_array([array, array]), elements
            yield pandas.Series(pandas.arrays.ArrowExtensionArray(array)), elements
        yield pyarrow.compute.run_end_encode(flat), [element]
    yield pandas.Series(pandas.to_datetime(moments)), [MOMENT]
    yield pandas.Series(pandas.to_timedelta(times)), [span]
    yield pandas.array(pandas.to_datetime(moments, utc=True)), [in_utc]


def nanoseconds_are_refused():
    """The server rounds them, and the conversions of most libraries cut them off."""
    columns = 0
    for column, elements in columns_in_nanoseconds([EXACT], [EXACT_TIME]):
        filter = Filter.build(elements)
        assert Filter.build(column) == filter, (column, elements)
        assert filter.contains_many(column)[0]
        columns += 1
    for column, elements in columns_in_nanoseconds([TOO_FINE], [TOO_FINE_TIME]):
        filter = Filter.build(elements)
        for work in Filter.build, filter.contains_many, filter.add_all:
            refused(ValueError, lambda: work(column), "microseconds", "nanoseconds")
    assert columns > 90


if __name__ == "__main__":
    many_elements_have_the_answers_of_lists()
    arrays_of_numpy()
    times_of_numpy()
    missing_values_of_pandas()
    nanoseconds_are_refused()
