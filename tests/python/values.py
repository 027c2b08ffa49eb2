"""What is refused, what warns, and what bytes and values from outside can do: an exception, never more. The arguments
are archives of hostile bytes."""

import copy
import itertools
import math
import pickle
import resource
import signal
import sys
import tarfile
import threading
import time as clock
import uuid
import warnings
import zoneinfo
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum

import numpy
import pandas
import polars

from pg_bloom import Filter, Header, OverfullWarning

ONE_OF_EACH = [
    True, 1, "a", b"a", 1.5, Decimal("1.5"), uuid.UUID(int=1), date(2020, 1, 1), datetime(2020, 1, 1),
    datetime(2020, 1, 1, tzinfo=timezone.utc), time(1), time(1, tzinfo=timezone.utc), timedelta(1), [1], ["a"],
]  # fmt: skip


def refused(exception, work, *words):
    try:
        result = work()
    except exception as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(f"{result} where {exception} was expected")


def kinds():
    """A value of another kind is refused, with both kinds; None is in no filter."""
    filters = [Filter.build([value]) for value in ONE_OF_EACH]
    for filter, held in zip(filters, ONE_OF_EACH):
        assert held in filter and filter.contains_many([held, None]) == [True, False] and None not in filter
        assert Filter.build([None, held]) == filter
        for other, element in zip(filters, ONE_OF_EACH):
            if element is held:
                continue
            both = filter.header.key_kind, other.header.key_kind
            refused(TypeError, lambda: element in filter, *both)
            refused(TypeError, lambda: filter.contains_many([element]), *both)
            refused(TypeError, lambda: filter.add_all([element]), *both)
            refused(TypeError, lambda: Filter.build([held, element]), *both)
            refused(TypeError, lambda: filter | other, *both)
    assert 1 not in Filter.build([]) and "a" not in Filter.build([])


def equal_values():
    """What is equal in SQL is one element."""
    for first, second in [
        (0.0, -0.0), (math.nan, -math.nan), (Decimal("1.0"), Decimal("1")), (Decimal("1e2"), Decimal(100)),
        (Decimal("nan"), Decimal("snan")), (Decimal("-nan123"), Decimal("nan")), (1, IntEnum("One", "one").one),
        (b"a", bytearray(b"a")), (b"a", memoryview(b"a")), (7, numpy.int16(7)), (7.5, numpy.float64(7.5)),
        (time(tzinfo=timezone.utc), time(tzinfo=timezone(timedelta(0)))), ("a", numpy.str_("a")),
        (0.5, numpy.float32(0.5)), (0.5, numpy.float16(0.5)), (True, numpy.bool_(True)), (7, numpy.uint64(7)),
        (date(2020, 1, 1), numpy.datetime64("2020-01-01")), (timedelta(seconds=1), numpy.timedelta64(10**9, "ns")),
        (datetime(2020, 1, 1), numpy.datetime64("2020-01-01", "ns")), (timedelta(1), pandas.Timedelta(1, "D")),
        (datetime(2020, 1, 1, tzinfo=timezone.utc), pandas.Timestamp("2020-01-01 01:00+01")),
    ]:  # fmt: skip
        same = Filter.build([first])
        assert second in same and same == Filter.build([second]), (first, second)
        assert same.contains_many([second, first]) == [True, True] and same.add_all([second]) == same
    integers = Filter.build([[1, 2]])
    assert [] not in integers and [None] not in integers and [[]] not in integers and [[1, 2]] not in integers
    assert integers.add_all([[]]).contains_many([[], [[]]]) == [True, True]
    unknown = [[], [None], [[None, None]]]
    for capacity in None, 100, 2:
        expected = Filter.build([[1], *unknown], capacity, 0.1)
        assert Filter.build([*unknown, [1]], capacity, 0.1) == expected
        assert Filter.build([*unknown, [1], []], capacity, 0.1) == expected == Filter.build([[1]], capacity, 0.1).add_all(unknown)
    many = [[None] * i for i in range(30)] * 9000 + [["a"]]
    assert Filter.build(many, 2000) == Filter.build(many[::-1], 2000) and Filter.build(many) == Filter.build(many[::-1])


def invalid_values():
    integers, texts = Filter.build([1]), Filter.build(["a"])
    for value in 2**63, -(2**63) - 1:
        refused(OverflowError, lambda: value in integers, "integer")
    for value in "1e131072", "1e-16384", "1e999999":
        refused(OverflowError, lambda: Filter.build([Decimal(value)]), "numeric")
    refused(UnicodeEncodeError, lambda: "\ud800" in texts)
    for value in {}, (), object(), 1j, len:
        refused(TypeError, lambda: value in integers, type(value).__name__)
    for value in [[1], [1, 2]], [1, [2]], [[1], 2], [[[[[[[1]]]]]]]:
        refused(ValueError, lambda: Filter.build([value]))
    refused(TypeError, lambda: Filter.build([[1, "a"]]), "integer", "text")
    for values in [[]], [[None]], [[]] * 600_000:
        refused(ValueError, lambda: Filter.build(values), "without members")
        refused(ValueError, lambda: Filter.build(values, 100), "without members")
    refused(TypeError, lambda: Filter.build([[], 1]), "array", "integer")
    refused(TypeError, lambda: Filter.build([[], [1], ["a"]]), "array of integer", "array of text")
    # Zones with an offset that depends on the date, or that PostgreSQL doesn't have.
    refused(ValueError, lambda: Filter.build([time(1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))]), "date", "offset")
    refused(ValueError, lambda: time(1, tzinfo=timezone(timedelta(microseconds=1))) in integers, "offset", "second")
    for value in pandas.Timestamp("2020-01-01T00:00:00.000000001"), pandas.Timedelta(1, "ns"):
        refused(ValueError, lambda: Filter.build([value]), "microseconds")
    assert Filter.build([True]).contains_many([numpy.datetime64("NaT", "s"), numpy.array(["NaT"], "m8[s]")[0], pandas.NaT]) == [False] * 3
    for value, kind in (numpy.datetime64("2020-01-01T00"), "timestamp"), (numpy.timedelta64(1, "s"), "interval"), (numpy.bool_(1), "boolean"):
        refused(TypeError, lambda: value in integers, "integer", kind)
        refused(TypeError, lambda: integers.add_all([value]), "integer", kind)
    refused(ValueError, lambda: Filter.build([numpy.datetime64("2020-01-01T00:00:00.000000001")]), "microseconds")
    for values in [numpy.timedelta64(1, "M")], numpy.array([1], "m8[Y]"):
        refused(TypeError, lambda: Filter.build(values), "no fixed length")
    for value in numpy.longdouble(1), numpy.complex64(1), numpy.array([1]), numpy.array(1):
        refused(TypeError, lambda: value in integers, "element")
    recursive = []
    recursive.append(recursive)
    refused(ValueError, lambda: recursive in integers)
    for values in "text", b"bytes", 5:
        refused(TypeError, lambda: texts.contains_many(values))
    refused(ValueError, lambda: Filter.build([], capacity=0), "capacity")
    refused(ValueError, lambda: Filter.build([], fpr=0.7), "0.7")
    refused(ValueError, lambda: Filter.build([], layout="other"), "other")
    refused(ValueError, lambda: Filter.build([], capacity=2**62), "too large")
    refused(ValueError, lambda: Filter.build([], capacity=2**32), "limit")
    refused(ValueError, lambda: Filter.build([], 10) & Filter.build([], 10, 0.001) | texts, "parameters")
    refused(TypeError, lambda: texts | b"bytes")

    def failing():
        yield 1
        raise ArithmeticError("of the iterator")

    refused(ArithmeticError, lambda: Filter.build(failing()), "of the iterator")


def arrays():
    """Arrays of numpy and Series: the answers of lists."""
    numbers, texts = list(range(0, 60000, 3)), [f"é€😀{i}" for i in range(0, 60000, 3)]
    for held in numbers, texts:
        filter = Filter.build(held[::2], 10000)
        expected = filter.contains_many(held)
        for values in numpy.array(held), numpy.array(held, dtype=object), numpy.array(held * 2)[: len(held)]:
            answers = filter.contains_many(values)
            assert answers.dtype == bool and answers.tolist() == expected and answers.flags.writeable
            assert Filter.build(values[::2], 10000) == filter
        frame = polars.DataFrame({"x": held})
        assert frame.filter(filter.contains_many(frame["x"]))["x"].to_list() == [
            x for x, answer in zip(held, expected) if answer
        ]
    filter = Filter.build(numbers[:50])
    for kind in "uint8", "int16", "uint32", "uint64", ">i8", ">u2":
        assert filter.contains_many(numpy.array(numbers[:80], dtype=kind)).tolist() == filter.contains_many(numbers[:80])
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
    refused(TypeError, lambda: Filter.build([1]).contains_many(flags), "integer", "boolean")
    refused(TypeError, lambda: Filter.build([1]).contains_many(floats), "integer", "float")
    refused(TypeError, lambda: Filter.build([1]).contains_many(numpy.array(["2020-01-01"], "M8[D]")), "integer", "date")
    refused(TypeError, lambda: Filter.build(numpy.array([1], dtype="longdouble")), "longdouble")
    days = numpy.array(["2020-01-01", "NaT"], dtype="datetime64[D]")
    assert Filter.build([date(2020, 1, 1)]).contains_many(days).tolist() == [True, False]
    for unit in "h", "ms", "ns":
        moments = days.astype(f"datetime64[{unit}]")
        assert Filter.build([datetime(2020, 1, 1)]).contains_many(moments).tolist() == [True, False]


def times_of_numpy():
    """Of any unit and byte order they are what Python has for them, or refused, and never numbers."""
    day, second = Filter.build([date(2020, 1, 1)]), Filter.build([timedelta(seconds=1)])
    for kind in "<M8[D]", ">M8[D]", "M8[M]", "M8[Y]", "M8[2D]":
        assert Filter.build(numpy.array(["2020-01-01"], dtype=kind)).header.key_kind == "date"
        assert day.contains_many(numpy.array(["2020-01-01", "NaT"], dtype=kind)).tolist() == [True, False]
    for kind, ones in ("m8[s]", 1), ("m8[ns]", 10**9), (">m8[ms]", 1000):
        assert second.contains_many(numpy.array([ones, 2 * ones], dtype=kind)).tolist() == [True, False]
        assert Filter.build(numpy.array([ones], dtype=kind)) == second
    late = int(numpy.datetime64("2020-01-01", "s").astype("i8")) + 2**58
    for values in (
        numpy.array([late], "M8[s]"), numpy.array([2**62], "M8[s]"), numpy.array(["20000-01-01"], "M8[us]"),
        numpy.array(["20000-01-01"], "M8[D]"), numpy.array(["2020-01-01T00:00:00.000001999"], "M8[ns]"),
        numpy.array([1], "m8[ns]"), numpy.array([2**62], "m8[s]"),
    ):  # fmt: skip
        refused(ValueError, lambda: Filter.build(values), "out of range")
        refused(ValueError, lambda: day.contains_many(values), "out of range")
    refused(TypeError, lambda: Filter.build(numpy.array([1], "m8[M]")), "no fixed length")


def series_of_pandas():
    """Missing values are in no filter, whatever pandas has for them; NaN is an element of float."""
    text, number, moment = Filter.build(["a"]), Filter.build([1]), Filter.build([datetime(2020, 1, 1)])
    for kind in None, "object", "string", "category":
        for missing in None, float("nan"), pandas.NA:
            series = pandas.Series(["a", missing, "b"], dtype=kind)
            assert text.contains_many(series) == [True, False, False] and Filter.build(series) == Filter.build(["a", "b"])
    for values in pandas.Categorical(["a", None]), pandas.Index(["a", None]), pandas.array(["a", None]):
        assert text.contains_many(values) == [True, False] and Filter.build(values) == text
    late = 1577836800_000_000_001
    for values in pandas.Series(pandas.to_datetime([late])), polars.Series([late, None]).cast(polars.Datetime("ns")):
        refused(ValueError, lambda: moment.contains_many(values), "nanoseconds")
    exact = polars.Series([late - 1, None])
    assert moment.contains_many(exact.cast(polars.Datetime("ns"))) == [True, False]
    refused(ValueError, lambda: Filter.build(polars.Series([1]).cast(polars.Duration("ns"))), "nanoseconds")
    assert number.contains_many(pandas.Series([1, None], dtype="Int64")) == [True, False]
    assert Filter.build([True]).contains_many(pandas.Series([True, None], dtype="boolean")) == [True, False]
    assert moment.contains_many(pandas.Series(pandas.to_datetime(["2020-01-01", None]))) == [True, False]
    assert Filter.build([1.5]).contains_many(pandas.Series([1.5, None], dtype="Float64")) == [True, False]
    assert Filter.build([float("nan")]).contains_many(pandas.Series([1.5, None])) == [False, True]
    refused(ValueError, lambda: text.contains_many(pandas.DataFrame({"a": ["a", "z"]})), "dimension")
    refused(ValueError, lambda: Filter.build(pandas.DataFrame({"a": [1]})), "dimension")


def endless():
    """A signal ends what an endless iterator feeds."""

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    refused(KeyboardInterrupt, lambda: Filter.build([1]).contains_many(itertools.count()))


def interruptible():
    """A signal ends what a long list feeds."""
    values = [1] * 1000

    class Stopping(int):
        def __index__(self):
            raise KeyboardInterrupt

    refused(KeyboardInterrupt, lambda: Filter.build(values + [Stopping(1)]))

    def stop(*_):
        raise InterruptedError("by a signal")

    signal.signal(signal.SIGALRM, stop)
    values = list(range(3_000_000)) * 10
    for work in Filter.build, Filter.build([1]).contains_many:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        refused(InterruptedError, lambda: work(values), "by a signal")


def threads():
    """Other threads go on while one works, even where Python itself would let none."""
    filter = Filter.build(range(1_000_000), 1_000_000)
    stored, zeros, passed, ended = bytes(filter), [0] * 500_000, [0], threading.Event()

    class Passed:
        """The element that tells how far the other thread is, without running code of Python."""

        __index__ = staticmethod(passed.__len__)

    def count():
        while not ended.wait(0.001):
            passed.append(0)

    def until(condition):
        deadline = clock.monotonic() + 60
        while not condition():
            assert clock.monotonic() < deadline

    other = threading.Thread(target=count, daemon=True)
    other.start()
    until(lambda: Filter.build([Passed(), *zeros, Passed()]).cardinality == 3)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    for work in (
        lambda: Filter(stored), lambda: filter | filter, lambda: filter & filter, lambda: filter.resize(2_000_000),
        lambda: filter.fpr, lambda: filter.cardinality,
    ):  # fmt: skip
        before = len(passed)
        until(lambda: work() is not None and len(passed) > before)
    sys.setswitchinterval(interval)
    ended.set()
    other.join()
    grown = [None] * 8

    def grow(i):
        grown[i] = Filter.build(range(i * 1000, (i + 9) * 1000), 100_000) | Filter.build(range(5), 100_000)

    workers = [threading.Thread(target=grow, args=(i,)) for i in range(8)]
    for work in [threading.Thread.start, threading.Thread.join]:
        for worker in workers:
            work(worker)
    assert all(all(built.contains_many(range(i * 1000, (i + 9) * 1000))) for i, built in enumerate(grown))


def objects():
    filter = Filter.build(range(50), 100)
    for other in pickle.loads(pickle.dumps(filter)), copy.deepcopy(filter), Filter(bytes(filter)), Filter(bytearray(bytes(filter))):
        assert other == filter and hash(other) == hash(filter) and bytes(other) == bytes(filter)
    assert Filter("\\x" + bytes(filter).hex()) == filter == Filter("\\x" + bytes(filter).hex().upper())
    for text in "", "\\x", "\\x00", "\\xé", "x" + bytes(filter).hex(), "{" + bytes(filter).hex() + "}":
        refused(ValueError, lambda: Filter(text), "invalid bloom filter")
    refused(TypeError, lambda: Filter(7), "int")
    assert Filter.build.__doc__ and Filter.contains_many.__doc__ and Filter.__doc__
    assert filter != Filter.build(range(51), 100) and filter != bytes(filter)
    assert isinstance(filter.header, Header) and filter.header == filter.header and "integer" in repr(filter)
    assert filter.header.bytes == len(bytes(filter)) and "integer" in repr(filter.header)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Filter.build(range(100), 100)
        assert not caught
        Filter.build(range(1000), 100)
        assert [warning.category for warning in caught] == [OverfullWarning] and "100" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(OverfullWarning, lambda: filter.add_all(range(1000)))


def hostile(archives):
    """Bytes are refused, or are a filter that every method works with, or refuses."""
    warnings.simplefilter("ignore", OverfullWarning)
    seeds = [bytes(Filter.build([value] * 3 + [None], capacity)) for value in ONE_OF_EACH for capacity in (None, 9)]
    seeds += [bytes(Filter.build(range(100), 60, 0.1, layout)) for layout in ("blocked", "classic", "parquet")]
    damaged = [
        seed[:place] + bytes([seed[place] ^ bit]) + seed[place + 1 :] for seed in seeds for place in range(60) for bit in (1, 128)
        if place < len(seed)
    ]  # fmt: skip
    inputs = []
    for file in archives:
        with tarfile.open(file) as archive:
            inputs += [archive.extractfile(member).read() for member in archive if member.isfile()]
    accepted = 0
    for data in seeds + damaged + inputs:
        try:
            filter = Filter(data)
        except ValueError:
            continue
        accepted += 1
        assert bytes(filter) == data and filter.header.bytes == len(data) and filter.cardinality >= 0 and 0 <= filter.fpr <= 1
        works = [lambda value=value: filter.add_all([value]) for value in ONE_OF_EACH]
        works += [lambda value=value: filter.contains_many([value, None]) for value in ONE_OF_EACH]
        works += [lambda: filter | filter, lambda: filter & filter, lambda: filter.resize(), lambda: filter.resize(1000)]
        for work in works:
            try:
                work()
            except (TypeError, ValueError):
                pass
    assert len(inputs) > 100 and accepted > 500, (len(inputs), accepted)


def without_memory():
    """A filter for which there is no memory is a MemoryError."""
    a, b = Filter.build([], 200_000_000), Filter.build([], 400_000_000)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), resource.RLIM_INFINITY))
    refused(MemoryError, lambda: a | b, "bytes")
    refused(MemoryError, lambda: Filter.build(iter(range(100_000_000))))
    assert 1 in Filter.build([1])


for check in kinds, equal_values, invalid_values, arrays, times_of_numpy, series_of_pandas, endless, interruptible, threads, objects:
    check()
hostile(sys.argv[1:])
without_memory()
