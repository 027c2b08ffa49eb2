"""What the programs of this folder share: elements of each kind, and a check that something is refused."""

import enum
import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy
import pandas

from pg_bloom import Filter

UTC = timezone.utc
EAST = timezone(timedelta(hours=3))
WEST = timezone(timedelta(hours=-12))

# Values of Python of each kind, with the ends of the types' ranges: drivers treat some of these apart.
SCALARS = [
    True,
    1,
    -(2**63),
    2**63 - 1,
    "a",
    "1",
    "{a}",
    b"a\0",
    0.1,
    1.5,
    1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
    Decimal("-1.50"),
    Decimal(1),
    Decimal("1e300"),
    Decimal("Infinity"),
    Decimal("-Infinity"),
    Decimal("NaN"),
    Decimal("sNaN"),
    uuid.UUID(int=1),
    date(2020, 1, 1),
    date.min,
    date.max,
    datetime(2020, 1, 1),
    datetime.min,
    datetime.max,
    datetime(2020, 1, 1, tzinfo=EAST),
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    datetime.min.replace(tzinfo=WEST),
    time(1),
    time.max,
    time(1, tzinfo=UTC),
    time(1, tzinfo=EAST),
    timedelta(1, 2, 3),
    timedelta(-1),
]

ONE_OF_EACH_KIND = [
    True,
    1,
    "a",
    b"a",
    1.5,
    Decimal("1.5"),
    uuid.UUID(int=1),
    date(2020, 1, 1),
    datetime(2020, 1, 1),
    datetime(2020, 1, 1, tzinfo=UTC),
    time(1),
    time(1, tzinfo=UTC),
    timedelta(1),
    [1],
    ["a"],
]

ARRAYS = [
    [1, None],
    [[-1, 2**40], [2, 3]],
    ["a", 'b"{,'],
    [0.5, 1e300],
    [True],
    [b"a"],
    [date(2020, 1, 1)],
    [date.min, None],
    [uuid.UUID(int=1)],
    [Decimal(1)],
    [[Decimal("Infinity")], [None]],
    [timedelta(1)],
    [time(1, tzinfo=UTC)],
    [datetime(2020, 1, 1, tzinfo=UTC)],
    [datetime.max, datetime(2020, 1, 1)],
]

OF_NUMPY = [
    numpy.bool_(True),
    numpy.int16(1),
    numpy.uint64(2**63 - 1),
    numpy.float16(0.5),
    numpy.float32(0.1),
    numpy.float64(0.1),
    numpy.str_("a"),
    numpy.bytes_(b"a"),
    numpy.datetime64("2020-01-01"),
    numpy.datetime64("2020-01-01T00:00:00.000001000"),
    numpy.timedelta64(1000, "ns"),
    [numpy.int16(1), None],
    [numpy.float32(0.5), numpy.float32(0.25)],
]

ELEMENTS = SCALARS + ARRAYS + OF_NUMPY

# What libraries have for NULL.
MISSING = [None, numpy.datetime64("NaT"), numpy.timedelta64("NaT"), pandas.NaT, pandas.NA]

# Lists whose members don't tell one type of SQL.
LISTS_WITHOUT_A_TYPE = [
    [],
    [None],
    [[]],
    [1, 2.5],
    [True, 1],
    [1, "a"],
    [datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)],
]


class One(enum.IntEnum):
    """Its member is an integer, and an element."""

    one = 1


class Letter(str, enum.Enum):
    """Its member is a text, and an element."""

    a = "a"


class Color(enum.Enum):
    """Its member is no value of a type that has elements."""

    red = "r"


NO_ELEMENTS = [(1,), {1}, object(), Color.red, [Color.red], [(1,)], numpy.longdouble(1), Filter.build(["a"])]


def refused(exception, work, *words):
    """Checks that `work` raises this exception, with these words in its message."""
    try:
        result = work()
    except exception as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"{error} without {missing}"
        return
    raise AssertionError(f"{result} where {exception} was expected")
