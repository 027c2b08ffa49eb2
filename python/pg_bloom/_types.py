"""The types of SQL that the package's kinds of elements have, for adapters that write SQL."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Iterator, Optional
from uuid import UUID

# Subclasses before their classes.
_TYPES = (
    (bool, "boolean"), (int, "bigint"), (float, "double precision"), (str, "text"), (Decimal, "numeric"), (UUID, "uuid"),
    ((bytes, bytearray, memoryview), "bytea"), (datetime, "timestamp"), (date, "date"), (time, "time"), (timedelta, "interval"),
)  # fmt: skip


def _members(values: list) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _members(value)
        elif value is not None:
            yield value


def sql_type(element: Any, hint: str) -> Optional[str]:
    """The type of an element, `None` if it's up to the driver. A list is an array, which is one element, as in SQL.
    TypeError for a list whose members don't tell one type, with a hint at what to write."""
    if isinstance(element, list):
        types = {sql_type(member, hint) or type(member).__name__ for member in _members(element)}
        name = types.pop() if len(types) == 1 else None
        if name not in ARRAYS:
            told = " and ".join(sorted({*types, name} - {None})) or "no type"
            raise TypeError(f"a list is one element, an array: members of {told} don't tell its type; write {hint}")
        return f"{name}[]"
    for python, name in _TYPES:
        if isinstance(element, python):
            has_zone = name in ("timestamp", "time") and element.tzinfo is not None
            return f"{name}tz" if has_zone else name
    return "bigint" if hasattr(type(element), "__index__") else None


ARRAYS = {"timestamptz", "timetz", *(name for _, name in _TYPES)}
