from typing import Any, Iterable, Optional, final

@final
class Header:
    """What a filter is, apart from its elements: what SQL's bloom_header returns."""

    layout: str
    """`blocked`, `classic` or `parquet`."""
    key_kind: str
    """The kind of the elements, such as `text`; `none` for a filter that never had an element."""
    representation: str
    """`sparse` for a list of hashes, `dense` for bits."""
    capacity: Optional[int]
    """The number of elements up to which the filter keeps its rate; None if none was given."""
    target_fpr: float
    """The false positive rate that was asked for."""
    num_bits: int
    num_hashes: int
    """The number of bits that an element sets."""
    bytes: int
    """The size of the stored filter."""

@final
class Filter:
    """A Bloom filter, as the type bloom of PostgreSQL has it. It never changes.

    Elements have one key kind: bool, int, str, bytes, float, Decimal, UUID, date, time, datetime (the last two with or
    without a zone), timedelta, or a list of these. Another kind is a TypeError, as it would never be found; a number
    that PostgreSQL's type cannot hold is an OverflowError; a time with nanoseconds is a ValueError. None, and what pandas
    has for a missing value except NaN in a Series of float, is in no filter, and is not added.

    Many elements are given as a list or another iterable, an array of numpy, a Series of pandas or polars, or an array of
    pyarrow. One str or bytes is a TypeError.
    """

    def __new__(cls, bytes: Any) -> Filter:
        """Reads the stored bytes, or their text as psql shows it, \\x and hexadecimal digits. ValueError for others."""
    @staticmethod
    def build(
        elements: Iterable[Any], capacity: Optional[int] = None, fpr: Optional[float] = None, layout: Optional[str] = None
    ) -> Filter:
        """Returns the filter of these elements, the same bytes as SQL's bloom_agg makes. Without a capacity it is sized
        for what it gets. OverfullWarning for many more elements than the capacity."""
    def __contains__(self, element: Any, /) -> bool:
        """Whether the element may be in the filter; False is certain."""
    def contains_many(self, elements: Iterable[Any]) -> Any:
        """Returns for each element whether it may be in the filter, as a list of bool; for an array of numpy as an array
        of numpy."""
    def add_all(self, elements: Iterable[Any]) -> Filter:
        """Returns the filter with more elements."""
    def __or__(self, other: Filter, /) -> Filter:
        """Returns the filter of all elements of both. ValueError for filters that can't be merged, TypeError for those of
        different kinds."""
    def __and__(self, other: Filter, /) -> Filter:
        """Returns the filter of what may be in both. Errors are those of `|`."""
    def resize(self, capacity: Optional[int] = None) -> Filter:
        """Returns the filter as if built for another capacity. A sparse one can be sized for what it has, by None."""
    @property
    def header(self) -> Header:
        """What the filter is, apart from its elements."""
    @property
    def cardinality(self) -> float:
        """The estimated number of distinct elements."""
    @property
    def fpr(self) -> float:
        """The false positive rate that the filter has now."""
    def __bytes__(self) -> bytes:
        """Returns the stored bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

class OverfullWarning(UserWarning):
    """A filter has a higher false positive rate than promised, beyond random variation."""

def plain(element: Any, /) -> Any:
    """Returns the value of Python's own types that is the same element as this one, for adapters: drivers don't know the
    scalars of numpy. A list is returned as it is; None stands for a missing value. Errors are those of
    `Filter.build([element])`."""
