"""SQLAlchemy 2: columns of filters, `col.may_contain(x)`, `bloom_agg`, and indexes of the method bloom_filter.

Importing this module registers the type, so that tables with filters are reflected.
"""

from typing import Any, Mapping, Optional

from sqlalchemy import Boolean, ClauseElement, Index, LargeBinary, cast, literal, type_coerce
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import TypeDecorator, UserDefinedType

from . import Filter

__all__ = ["Bloom", "bloom_agg", "bloom_index"]


class _Stored(TypeDecorator):
    """A Filter, or its stored bytes, as bytea."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Optional[bytes]:
        return None if value is None else bytes(value)

    def process_result_value(self, value: Any, dialect: Any) -> Optional[Filter]:
        return None if value is None else Filter(value)


class Bloom(UserDefinedType):
    """A column of filters: Filter in Python."""

    cache_ok = True

    class comparator_factory(UserDefinedType.Comparator):
        def may_contain(self, element: Any) -> Any:
            """Whether the filter may have an element: a column, or a value of the type that SQLAlchemy has for it."""
            element = element if isinstance(element, ClauseElement) else literal(element)
            return self.op("@>", return_type=Boolean())(element)

    def get_col_spec(self, **kwargs: Any) -> str:
        return "bloom"

    def bind_expression(self, bindvalue: Any) -> Any:
        return cast(type_coerce(bindvalue, _Stored()), Bloom)

    def column_expression(self, column: Any) -> Any:
        return type_coerce(cast(column, LargeBinary), _Stored())

    @property
    def python_type(self) -> type:
        return Filter


class bloom_agg(GenericFunction):
    """`func.bloom_agg(element)`, and with a capacity, a rate and a layout."""

    type = Bloom()
    inherit_cache = True


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
