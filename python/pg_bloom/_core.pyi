from typing import Any, Iterable, Optional, final

@final
class Header:
    """What a filter is, apart from its elements: what SQL's bloom_header returns."""

    layout: str
    key_kind: str
    representation: str
    capacity: Optional[int]
    target_fpr: float
    num_bits: int
    num_hashes: int
    bytes: int

@final
class Filter:
    """A Bloom filter, as the type bloom of PostgreSQL has it. It never changes.

    Elements have one key kind: bool, int, str, bytes, float, Decimal, UUID, date, time, datetime (the last two with or
    without a zone), timedelta, or a list of these. Another kind is a TypeError, as it would never be found; a number
    that PostgreSQL's type cannot hold is an OverflowError. None, and what pandas has for a missing value except NaN in
    a Series of float, is in no filter, and is not added. Times with less than microseconds are a ValueError.
    """

    def __new__(cls, bytes: Any) -> Filter:
        """Reads the stored bytes, or their text as psql shows it, \\x and hexadecimal digits; ValueError for others."""
    @staticmethod
    def build(
        elements: Iterable[Any], capacity: Optional[int] = None, fpr: Optional[float] = None, layout: Optional[str] = None
    ) -> Filter:
        """The filter of these elements, the same bytes as SQL's bloom_agg makes. Without a capacity it is sized for
        what it gets; OverfullWarning for many more elements than the capacity."""
    def __contains__(self, element: Any, /) -> bool:
        """Whether the element may be in the filter; False is certain."""
    def contains_many(self, elements: Iterable[Any]) -> Any:
        """The same for each of many elements, as a list of bool; for an array of numpy as such an array."""
    def add_all(self, elements: Iterable[Any]) -> Filter:
        """The filter with more elements."""
    def __or__(self, other: Filter, /) -> Filter:
        """The filter of all elements of both; ValueError for filters that can't be merged, TypeError for
        those of different kinds."""
    def __and__(self, other: Filter, /) -> Filter:
        """The filter of what may be in both."""
    def resize(self, capacity: Optional[int] = None) -> Filter:
        """The filter as if built for another capacity; a sparse one can be sized for what it has."""
    @property
    def header(self) -> Header: ...
    @property
    def cardinality(self) -> float:
        """Estimated distinct elements."""
    @property
    def fpr(self) -> float:
        """The false positive rate that it has now."""
    def __bytes__(self) -> bytes:
        """The stored bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

class OverfullWarning(UserWarning):
    """A filter has a higher false positive rate than promised, beyond random variation."""

def plain(element: Any, /) -> Any:
    """The value of Python's own types that is the same element as this one, for adapters: drivers don't know the scalars
    of numpy. A list is returned as it is; None stands for a missing value. Errors are those of Filter.build([element])."""
