"""SQLAlchemy 2: columns of filters, `col.may_contain(x)`, `bloom_agg`, and indexes of the method bloom_filter.

Importing this module registers the type, so that tables with filters are reflected.
"""

from typing import Any, Mapping, Optional

from sqlalchemy import ARRAY as BaseArray
from sqlalchemy import BigInteger, Boolean, ClauseElement, Column, Date, DateTime, Double, Index, Interval, LargeBinary
from sqlalchemy import Numeric, Text, Time, Uuid, cast, event, literal, type_coerce
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import NullType, TypeDecorator, UserDefinedType

from . import Filter
from ._types import sql_type

__all__ = ["Bloom", "BloomArray", "bloom_agg", "bloom_index"]

_TYPES = {
    "boolean": Boolean(), "bigint": BigInteger(), "double precision": Double(), "text": Text(), "numeric": Numeric(),
    "uuid": Uuid(), "bytea": LargeBinary(), "timestamp": DateTime(), "timestamptz": DateTime(timezone=True), "date": Date(),
    "time": Time(), "timetz": Time(timezone=True), "interval": Interval(),
}  # fmt: skip


class _Stored(TypeDecorator):
    """A Filter, or its stored bytes, as bytea."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Optional[bytes]:
        return None if value is None else bytes(value if isinstance(value, Filter) else Filter(value))

    def literal_processor(self, dialect: Any) -> Any:
        return lambda value: f"'\\x{bytes(value).hex()}'"

    def process_result_value(self, value: Any, dialect: Any) -> Optional[Filter]:
        return _read(value)


def _read(value: Any) -> Optional[Filter]:
    """A filter as bytes, or as a driver has it."""
    if value is None or isinstance(value, Filter):
        return value
    if value == "{":
        raise TypeError("the driver reads an array of filters as text: write type_=BloomArray, or type_coerce(…, BloomArray)")
    return Filter(value)


class Bloom(UserDefinedType):
    """A column of filters: Filter in Python."""

    cache_ok = True

    class comparator_factory(UserDefinedType.Comparator):
        def may_contain(self, element: Any) -> Any:
            """Whether the filter may have an element: a column, or a value, which gets the type that its kind has in SQL.
            A list is an array, which is one element."""
            if not isinstance(element, ClauseElement) and not hasattr(element, "__clause_element__"):
                name = sql_type(element, "cast(…, ARRAY(Text)) with the right type, or func.bloom_contains_any(filter, …)")
                type_ = _TYPES[name.removesuffix("[]")] if name else literal(element).type
                if isinstance(type_, NullType) and element is not None:
                    raise TypeError(f"a value of type {type(element).__name__} has no type in SQL: write literal(value, TYPE)")
                element = literal(element, ARRAY(type_) if isinstance(element, list) else type_)
            return self.bool_op("@>")(element)

    def get_col_spec(self, **kwargs: Any) -> str:
        return "bloom"

    def bind_expression(self, bindvalue: Any) -> Any:
        return cast(type_coerce(bindvalue, _Stored()), Bloom)

    def column_expression(self, column: Any) -> Any:
        return type_coerce(cast(column, LargeBinary), _Stored())

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _read

    @property
    def python_type(self) -> type:
        return Filter


class BloomArray(ARRAY):
    """An array of filters, `bloom[]`: a list of Filter in Python. A column of type ARRAY(Bloom) gets this type."""

    def __init__(self) -> None:
        super().__init__(Bloom())

    def adapt(self, cls: Any, **kwargs: Any) -> Any:
        return BloomArray()

    def bind_expression(self, bindvalue: Any) -> Any:
        return cast(type_coerce(bindvalue, ARRAY(_Stored)), ARRAY(Bloom))

    def column_expression(self, column: Any) -> Any:
        return type_coerce(cast(column, ARRAY(LargeBinary)), ARRAY(_Stored))


@event.listens_for(Column, "before_parent_attach")
def _array(column: Any, parent: Any) -> None:
    if isinstance(column.type, BaseArray) and isinstance(column.type.item_type, Bloom):
        column.type = BloomArray()


class bloom_agg(GenericFunction):
    """`func.bloom_agg(element)`, and with a capacity, a rate and a layout."""

    type = Bloom()
    inherit_cache = True


for _name in (
    "bloom_add", "bloom_add_all", "bloom_empty", "bloom_fold", "bloom_from_array", "bloom_intersection",
    "bloom_intersection_agg", "bloom_resize", "bloom_union", "bloom_union_agg",
):  # fmt: skip
    type(_name, (GenericFunction,), {"type": Bloom(), "inherit_cache": True})


def bloom_index(name: str, *columns: Any, ops: Optional[Mapping[str, str]] = None, **options: Any) -> Index:
    """An index USING bloom_filter. `ops` has operator classes by column: of a column of filters none is needed, parts of
    a value need one such as `{"tags": "array_ops"}`. The options are those of WITH: `fpr=0.001`."""
    return Index(
        name,
        *columns,
        postgresql_using="bloom_filter",
        postgresql_with={option: str(value) for option, value in options.items()},
        postgresql_ops=dict(ops or {}),
    )


ischema_names["bloom"] = Bloom
