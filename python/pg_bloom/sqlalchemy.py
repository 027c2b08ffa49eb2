"""SQLAlchemy 2: columns of filters, `col.may_contain(x)`, `bloom_agg`, and indexes of the method bloom_filter.

Importing this module registers the type, so that tables with filters are reflected, and a Filter is a parameter of that
type wherever an expression takes a value.
"""

from typing import Any, Mapping, Optional

from sqlalchemy import ARRAY as BaseArray
from sqlalchemy import BigInteger, BindParameter, Boolean, ClauseElement, Column, Date, DateTime, Double, Index, Interval
from sqlalchemy import LargeBinary, Numeric, Text, Time, Uuid, cast, event, literal, null, type_coerce
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine, UserDefinedType
from sqlalchemy.util import immutabledict

from . import Filter
from ._types import filters_of_array, typed_element

__all__ = ["Bloom", "BloomArray", "bloom_agg", "bloom_index"]

_TYPES = {
    "boolean": Boolean(),
    "bigint": BigInteger(),
    "double precision": Double(),
    "text": Text(),
    "numeric": Numeric(),
    "uuid": Uuid(),
    "bytea": LargeBinary(),
    "timestamp": DateTime(),
    "timestamptz": DateTime(timezone=True),
    "date": Date(),
    "time": Time(),
    "timetz": Time(timezone=True),
    "interval": Interval(),
}


class _Stored(TypeDecorator):
    """A Filter, or its stored bytes, as bytea."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Optional[bytes]:
        return _stored(value)

    def literal_processor(self, dialect: Any) -> Any:
        return _literal

    def process_result_value(self, value: Any, dialect: Any) -> Optional[Filter]:
        return _read(value)


def _stored(value: Any) -> Optional[bytes]:
    """Returns the stored bytes of a Filter, or of a value that Filter reads."""
    return None if value is None else bytes(value if isinstance(value, Filter) else Filter(value))


def _text(value: Any) -> Optional[str]:
    """Returns the text of a filter as the server writes it."""
    stored = _stored(value)
    return None if stored is None else "\\x" + stored.hex()


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{_text(value)}'"


def _read(value: Any) -> Optional[Filter]:
    """A filter as bytes, or as a driver has it."""
    if value is None or isinstance(value, Filter):
        return value
    if value == "{":
        # An ARRAY of SQLAlchemy's own reads the text of an array letter by letter.
        raise TypeError("the driver reads an array of filters as text: write type_=BloomArray, or type_coerce(…, BloomArray)")
    return Filter(value)


class Bloom(UserDefinedType):
    """A column of filters: Filter in Python."""

    cache_ok = True

    class comparator_factory(UserDefinedType.Comparator):
        def may_contain(self, element: Any) -> Any:
            """Whether the filter may have an element: a column, or a value, which gets the type that its kind has in SQL.
            A list is an array, which is one element."""
            if isinstance(element, BindParameter) and isinstance(element.type, NullType):
                # It would get the type of the column, and be read as a filter.
                raise TypeError("a parameter without a value has no type: write bindparam(name, type_=Text) with the right type")
            return self.bool_op("@>")(_typed(element))

        def __or__(self, other: Any) -> Any:
            """The union, as in SQL, not the OR of conditions."""
            return self.op("|", return_type=Bloom())(other)

        def __and__(self, other: Any) -> Any:
            """The intersection."""
            return self.op("&", return_type=Bloom())(other)

    def get_col_spec(self, **kwargs: Any) -> str:
        return "bloom"

    def bind_expression(self, bindvalue: Any) -> Any:
        if bindvalue.expanding:
            # SQLAlchemy writes an empty list as `NULL) AND (1 != 1`, to which no cast can be added: texts need none.
            return bindvalue
        return cast(type_coerce(bindvalue, _Stored()), Bloom)

    def bind_processor(self, dialect: Any) -> Any:
        # Where no expression casts bytes: in lists, and in arrays that are not of a column.
        return _text

    def literal_processor(self, dialect: Any) -> Any:
        return _literal

    def column_expression(self, column: Any) -> Any:
        return type_coerce(cast(column, LargeBinary), _Stored())

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _read

    @property
    def python_type(self) -> type:
        return Filter


class BloomArray(ARRAY):
    """An array of filters, `bloom[]`: a list of Filter in Python. A column of type ARRAY(Bloom) gets this type."""

    def __init__(self, as_tuple: bool = False, dimensions: Optional[int] = None, zero_indexes: bool = False) -> None:
        super().__init__(Bloom(), as_tuple=as_tuple, dimensions=dimensions, zero_indexes=zero_indexes)

    def adapt(self, cls: Any, **kwargs: Any) -> Any:
        # Not the driver's own type of arrays, which would not cast.
        adapted = BloomArray(**self._options())
        adapted._variant_mapping = self._variant_mapping
        return adapted

    def bind_expression(self, bindvalue: Any) -> Any:
        return cast(type_coerce(bindvalue, ARRAY(_Stored, **self._options())), ARRAY(Bloom))

    def column_expression(self, column: Any) -> Any:
        return type_coerce(cast(column, ARRAY(LargeBinary)), ARRAY(_Stored, **self._options()))

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        read_list = super().result_processor(dialect, coltype)

        def read(value: Any) -> Any:
            # Where no expression of this type casts it, as in text(), drivers have the text of an array.
            return read_list(filters_of_array(value) if isinstance(value, str) else value)

        return read

    def _options(self) -> Any:
        return {"as_tuple": self.as_tuple, "dimensions": self.dimensions, "zero_indexes": self.zero_indexes}


@event.listens_for(Column, "before_parent_attach")
def _use_bloom_arrays(column: Any, parent: Any) -> None:
    column.type = _with_bloom_arrays(column.type)


def _with_bloom_arrays(type_: TypeEngine) -> TypeEngine:
    """The type with BloomArray in place of ARRAY(Bloom), also in its variants for other dialects."""
    variants = {dialect: _with_bloom_arrays(variant) for dialect, variant in type_._variant_mapping.items()}
    if isinstance(type_, BaseArray) and isinstance(type_.item_type, Bloom) and not isinstance(type_, BloomArray):
        changed = BloomArray(type_.as_tuple, type_.dimensions, type_.zero_indexes)
    elif any(variant is not type_._variant_mapping[dialect] for dialect, variant in variants.items()):
        changed = type_.copy()
    else:
        return type_
    changed._variant_mapping = immutabledict(variants)
    return changed


def _typed(element: Any) -> Any:
    """An expression as it is; an element of Python as a parameter with the type that its kind has in SQL."""
    if isinstance(element, ClauseElement) or hasattr(element, "__clause_element__"):
        return element
    hint = "literal(value, TYPE); for a list cast(…, ARRAY(Text)) with the right type, or func.bloom_contains_any(filter, …)"
    typed = typed_element(element, hint)
    if typed is None:
        return null()
    # Some drivers send no types: psycopg2 writes numbers, which would be of type numeric.
    return cast(literal(typed.value, _type_named(typed.sent_as)), _type_named(typed.sql_type))


def _type_named(sql_type: str) -> TypeEngine:
    if sql_type.endswith("[]"):
        return ARRAY(_TYPES[sql_type[:-2]])
    return _TYPES[sql_type]


class _Function(GenericFunction):
    """A function of the extension. Its arguments that are values of Python get the type that their kind has in SQL:
    a list of texts has none otherwise, and PostgreSQL would take it for one text."""

    _register = False
    inherit_cache = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*(arg if isinstance(arg, Filter) else _typed(arg) for arg in args), **kwargs)


class _FunctionOfArrays(_Function):
    """A function that returns some members of its second argument."""

    _register = False
    inherit_cache = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if len(self.clauses) == 2 and "type_" not in kwargs:
            self.type = list(self.clauses)[1].type


class bloom_agg(_Function):
    """`func.bloom_agg(element)`, and with a capacity, a rate and a layout."""

    type = Bloom()
    inherit_cache = True


def _declare(names: str, base: type, **attributes: Any) -> None:
    """Makes the functions of these names known to SQLAlchemy's `func`."""
    for name in names.split():
        type(name, (base,), {"inherit_cache": True, **attributes})


_declare(
    "bloom_add bloom_add_all bloom_empty bloom_fold bloom_from_array bloom_intersection bloom_intersection_agg bloom_resize "
    "bloom_union bloom_union_agg",
    _Function,
    type=Bloom(),
)
_declare(
    "bloom_contains bloom_contains_all bloom_contains_any bloom_set_add bloom_set_contains bloom_set_remove",
    _Function,
    type=Boolean(),
)
_declare(
    "bloom_absent bloom_present bloom_set_absent bloom_set_add_all bloom_set_present bloom_set_remove_all",
    _FunctionOfArrays,
)


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
# SQLAlchemy asks a value for this where an expression takes one.
Filter.__sa_type_engine__ = Bloom()
