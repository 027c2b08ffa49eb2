"""What the adapters that write SQL share: the type that an element has in SQL, and arrays of filters as text."""

import enum
import json
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Iterator, List, NamedTuple, Optional
from uuid import UUID

from . import Filter
from ._core import plain

# Returns the type's identifier, that of its arrays, and its name as casts need it. Where the extension is not installed,
# there is no row.
FIND_TYPE = """
    SELECT t.oid, t.typarray, pg_catalog.quote_ident(n.nspname) || '.bloom'
    FROM pg_catalog.pg_extension AS e
    JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
    JOIN pg_catalog.pg_type AS t ON t.typnamespace = n.oid AND t.typname = 'bloom'
    WHERE e.extname = 'pg_bloom'
"""

# The type of SQL for each type of Python that an element may have. Subclasses stand before their classes.
_SQL_TYPES = (
    (bool, "boolean"),
    (int, "bigint"),
    (float, "double precision"),
    (str, "text"),
    (bytes, "bytea"),
    (Decimal, "numeric"),
    (UUID, "uuid"),
    (datetime, "timestamp"),
    (date, "date"),
    (time, "time"),
    (timedelta, "interval"),
)


class TypedElement(NamedTuple):
    """An element as a parameter of a statement: `CAST(value AS sql_type)`."""

    value: Any
    """What the driver is given: the element, or a text that PostgreSQL reads as it, or a list of either."""
    sent_as: str
    """The type of SQL that the driver sends this value as."""
    sql_type: str
    """The type of SQL that the element's kind has."""


def typed_element(element: Any, hint: str) -> Optional[TypedElement]:
    """Returns an element with its type; None for a missing value, as pandas and numpy have them. A list is an array, which is one element, as in SQL. TypeError
    for a value that is no element, and for a list whose members don't tell one type, with a hint at what to write."""
    element = plain_element(element, hint)
    if element is None:
        return None
    sql_type = _sql_type(element)
    if sql_type is not None:
        members = [element]
    else:
        members = list(_members(element))
        sql_type = _type_of_members(members, hint)
    if not any(_goes_as_text(member, sql_type) for member in members):
        value, sent_as = element, sql_type
    else:
        value, sent_as = _as_text(element), "text"
    dimensions = "[]" if isinstance(element, list) else ""
    return TypedElement(value, sent_as + dimensions, sql_type + dimensions)


def plain_element(element: Any, hint: str) -> Any:
    """Returns the value of Python's own types for an element: numpy and pandas have others, which drivers don't know.
    None for a missing value; TypeError for what is no element."""
    if isinstance(element, list):
        return [plain_element(member, hint) for member in element]
    refuse_enum(element)
    if isinstance(element, type):
        raise TypeError(f"a class, {element.__qualname__}, cannot be an element of a bloom filter; write one of its values")
    try:
        return plain(element)
    except TypeError as error:
        if isinstance(element, tuple):
            hint = f"list(value) for an array, which is one element, or {hint}"
        raise TypeError(f"{error}; write {hint}") from error


def refuse_enum(value: Any) -> None:
    """TypeError for a member of an enumeration, or a list with one, unless it is a number or a text itself: some drivers
    send its name, which would never be found."""
    if isinstance(value, (list, tuple)):
        for member in value:
            refuse_enum(member)
    elif isinstance(value, enum.Enum) and not isinstance(value, tuple(python_type for python_type, _ in _SQL_TYPES)):
        member = f"{type(value).__qualname__}.{value.name}"
        raise TypeError(
            f"a member of an enumeration, {member}, cannot be an element of a bloom filter; write its value, {member}.value"
        )


def stored_bytes(value: Any) -> bytes:
    """Returns the bytes of a Filter, or of a value that Filter reads. `bytes` alone would make 44 zeros of the number 44."""
    return bytes(value if isinstance(value, Filter) else Filter(value))


def _sql_type(element: Any) -> Optional[str]:
    """The type of an element in SQL; None for a list."""
    for python_type, name in _SQL_TYPES:
        if isinstance(element, python_type):
            has_zone = name in ("timestamp", "time") and element.tzinfo is not None
            return f"{name}tz" if has_zone else name
    return None


def _type_of_members(members: list, hint: str) -> str:
    """The one type that all members of a list have in SQL."""
    types = {_sql_type(member) for member in members}
    if len(types) != 1:
        told = " and ".join(sorted(types)) or "no type"
        raise TypeError(f"a list is one element, an array: members of {told} don't tell its type; write {hint}")
    return types.pop()


def _members(values: list) -> Iterator[Any]:
    """The members of a list, and of lists in it, that are not None."""
    for value in values:
        if isinstance(value, list):
            yield from _members(value)
        elif value is not None:
            yield value


def has_members(values: list) -> bool:
    """Whether a list, or a list in it, has a member that is not None."""
    return next(_members(values), None) is not None


def _goes_as_text(element: Any, sql_type: str) -> bool:
    """Whether a driver would send another value. psycopg2 writes the infinities of Decimal as NaN. asyncpg sends the
    first and the last date and time of Python, in whatever zone, as PostgreSQL's infinities."""
    if sql_type == "numeric":
        return not element.is_finite()
    if sql_type in ("date", "timestamp", "timestamptz"):
        return element.year in (MINYEAR, MAXYEAR)
    return False


def _as_text(element: Any) -> Any:
    """A number, date or timestamp as PostgreSQL reads it; a list of them as a list of such texts."""
    if element is None:
        return None
    if isinstance(element, list):
        return [_as_text(member) for member in element]
    if isinstance(element, Decimal):
        return "NaN" if element.is_nan() else str(element)
    return element.isoformat()


def filters_of_array(text: str) -> List[Any]:
    """The filters of an array of type bloom[] as PostgreSQL writes it: a list of Filter and None, or of such lists."""
    # Each member is quoted, since it begins with a backslash, and has only hexadecimal digits after that: with other
    # brackets, that is JSON. The bounds of an array stand before it, if they don't begin at 1: `[0:1]={…}`.
    members = text[text.index("{") :].replace("{", "[").replace("}", "]").replace("NULL", "null")
    return _filters(json.loads(members))


def _filters(members: list) -> List[Any]:
    return [
        _filters(member) if isinstance(member, list) else None if member is None else Filter(member)
        for member in members
    ]
