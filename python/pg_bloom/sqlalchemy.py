"""SQLAlchemy 2: columns of filters, `col.may_contain(x)`, the functions of the extension, and indexes of the method
bloom_filter.

Importing this module registers the type, so that tables with filters are reflected, and a Filter is a parameter of that
type wherever an expression takes a value.
"""

from typing import Any, Iterator, List, Mapping, Optional, Tuple

from sqlalchemy import ARRAY as BaseArray
from sqlalchemy import BigInteger, BindParameter, Boolean, ClauseElement, Column, Date, DateTime, Double, Index, Integer
from sqlalchemy import Interval, LargeBinary, Numeric, Text, Time, Uuid, case, cast, event, func, literal, null
from sqlalchemy import type_coerce
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BinaryExpression, Null
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.sql.selectable import SelectBase
from sqlalchemy.types import Enum, NullType, TypeDecorator, TypeEngine, UserDefinedType
from sqlalchemy.util import immutabledict

from . import Filter
from ._types import filters_of_array, has_members, refuse_enum, stored_bytes, typed_element

__all__ = ["Bloom", "BloomArray", "CountingBloom", "bloom_agg", "bloom_index"]

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
    if value is None:
        return None
    try:
        return stored_bytes(value)
    except (TypeError, ValueError) as error:
        # What `column.op("@>")(value)` sends has the type of the column.
        hint = "A filter is read from its bytes or their text; to ask for an element write column.may_contain(value)."
        raise type(error)(f"{error} {hint}") from error


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
        raise TypeError(
            "the driver reads an array of filters as text: write type_coerce(array, BloomArray), for an array([…]) as well, "
            "or type_=BloomArray for a function"
        )
    return Filter(value)


_OF_TEXTS = frozenset(
    getattr(operators, f"{prefix}{name}_op")
    for name in "contains startswith endswith icontains istartswith iendswith like ilike match regexp_match".split()
    for prefix in ("", "not_")
    if hasattr(operators, f"{prefix}{name}_op")
)


class _Comparator(UserDefinedType.Comparator):
    """What columns of filters can be asked."""

    def operate(self, op: Any, *other: Any, **kwargs: Any) -> Any:
        if op in _OF_TEXTS:
            name = op.__name__.replace("_op", "")
            hint = "to ask for an element write column.may_contain(value)"
            raise TypeError(f"a filter has no {name}, which is for texts: {hint}")
        return super().operate(op, *other, **kwargs)

    def may_contain(self, element: Any) -> Any:
        """Whether the filter may have an element: a column, or a value, which gets the type that its kind has in SQL.
        A list is an array, which is one element."""
        if isinstance(element, BindParameter) and isinstance(element.type, NullType):
            # It would get the type of the column, and be read as a filter.
            refuse_enum(element.value)
            if element.callable is not None:
                why = "a parameter whose value a callable returns"
            elif element.value is not None:
                why = f"a parameter with a value of type {type(element.value).__name__}"
            else:
                why = "a parameter without a value"
            raise TypeError(
                f"{why} has no type: write bindparam(name, …, type_=Text), or literal(value, Text), with the right type"
            )
        return self.bool_op("@>")(_typed(element))


class Bloom(UserDefinedType):
    """A column of filters: Filter in Python."""

    cache_ok = True

    class comparator_factory(_Comparator):
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


class CountingBloom(UserDefinedType):
    """A column of counting filters, which are their text in Python. `func.counting_bloom_to_bloom(column)` is a Filter."""

    cache_ok = True
    comparator_factory = _Comparator

    def get_col_spec(self, **kwargs: Any) -> str:
        return "counting_bloom"

    def bind_expression(self, bindvalue: Any) -> Any:
        # The server reads a text as a counting filter only by a cast of a text.
        return bindvalue if bindvalue.expanding else cast(type_coerce(bindvalue, Text), CountingBloom)

    @property
    def python_type(self) -> type:
        return str


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


_HINT = (
    "literal(value, TYPE); for a list cast(…, ARRAY(Text)) with the right type, or func.bloom_contains_any(filter, …); "
    "for a filter literal(filter, Bloom), for a list of filters literal(filters, BloomArray)"
)


def _typed(element: Any) -> Any:
    """An expression as it is; an element of Python as a parameter with the type that its kind has in SQL."""
    if isinstance(element, ClauseElement) or hasattr(element, "__clause_element__"):
        for parameter in _parameters(element):
            kind = parameter.type.item_type if isinstance(parameter.type, BaseArray) else parameter.type
            # Enum, and types of the project's own, convert a member of an enumeration.
            if not isinstance(kind, Enum) and type(kind).__module__.startswith("sqlalchemy."):
                refuse_enum(parameter.value)
        return element
    typed = typed_element(element, _HINT)
    if typed is None:
        return null()
    # Some drivers send no types: psycopg2 writes numbers, which would be of type numeric.
    return cast(literal(typed.value, _type_named(typed.sent_as)), _type_named(typed.sql_type))


def _parameters(expression: Any) -> Iterator[BindParameter[Any]]:
    """The parameters that an element consists of: not those of conditions and of subqueries."""
    if isinstance(expression, BindParameter):
        yield expression
    elif isinstance(expression, BinaryExpression) and operators.is_comparison(expression.operator):
        return
    elif isinstance(expression, ClauseElement) and not isinstance(expression, SelectBase):
        for child in expression.get_children():
            yield from _parameters(child)


def _type_named(sql_type: str) -> TypeEngine:
    if sql_type.endswith("[]"):
        return ARRAY(_TYPES[sql_type[:-2]])
    return _TYPES[sql_type]


def _argument(value: Any) -> Any:
    """An argument of a function: a filter, which SQLAlchemy knows, or an element with its type."""
    return value if isinstance(value, Filter) else _typed(value)


class _Function(GenericFunction):
    """A function of the extension. Its arguments that are values of Python get the type that their kind has in SQL:
    a list of texts has none otherwise, and PostgreSQL would take it for one text."""

    _register = False
    inherit_cache = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*self._arguments(args), **kwargs)

    def _arguments(self, args: Tuple[Any, ...]) -> List[Any]:
        """The arguments as expressions."""
        return [_argument(arg) for arg in args]


class _FunctionOfArray(_Function):
    """A function of which one argument is an array. None, and a list without members, have no type."""

    _register = False
    inherit_cache = True
    place_of_array = 1
    returns_members = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.returns_members and len(self.clauses) == 2 and "type_" not in kwargs:
            self.type = list(self.clauses)[1].type

    def _arguments(self, args: Tuple[Any, ...]) -> List[Any]:
        given = list(args)
        if len(given) > self.place_of_array:
            elements = given[self.place_of_array]
            if elements is None or isinstance(elements, Null):
                given[self.place_of_array] = self._array_of_no_type("None", None)
            elif isinstance(elements, list) and not has_members(elements):
                given[self.place_of_array] = self._array_of_no_type("a list without members", [])
        return super()._arguments(tuple(given))

    def _array_of_no_type(self, named: str, value: Any) -> Any:
        raise ValueError(
            f"{named} has no type: write cast({value}, ARRAY(Text)) with the type of the elements in place of Text"
        )


class _FunctionOfAnyArray(_FunctionOfArray):
    """A function whose answer is the same for an empty array of each type, and for a NULL."""

    _register = False
    inherit_cache = True

    def _array_of_no_type(self, named: str, value: Any) -> Any:
        return cast(value, ARRAY(Text))


class _Probe(_FunctionOfAnyArray):
    """A function that probes a filter, its first argument, for the members of an array."""

    _register = False
    inherit_cache = True

    def _arguments(self, args: Tuple[Any, ...]) -> List[Any]:
        if len(args) == 2 and isinstance(args[1], list) and not has_members(args[1]):
            # The server refuses an array of another type than the filter's elements, which isn't known here. A filter that
            # never had an element takes every array, and has the same answer.
            is_there = type_coerce(args[0], Bloom).is_not(None)
            args = (case((is_there, func.bloom_empty()), else_=null()), args[1])
        return super()._arguments(args)


class _FunctionOfTypes(_Function):
    """A function that PostgreSQL finds only if its arguments have these types, or types that are changed to them by
    themselves: a driver that sends a name as varchar can't name a type."""

    _register = False
    inherit_cache = True
    argument_types: Tuple[TypeEngine, ...] = ()

    def _arguments(self, args: Tuple[Any, ...]) -> List[Any]:
        if len(args) > len(self.argument_types):
            raise TypeError(f"{self.name} has {len(self.argument_types)} arguments, not {len(args)}")
        return [cast(_argument(arg), type_) for arg, type_ in zip(args, self.argument_types)]


class _TypeName(UserDefinedType):
    """A name of a type, regtype."""

    cache_ok = True

    def get_col_spec(self, **kwargs: Any) -> str:
        return "regtype"


class bloom_agg(_Function):
    """`func.bloom_agg(element)`, and with a capacity, a rate and a layout."""

    type = Bloom()
    inherit_cache = True


class bloom_shard(_Function):
    """`func.bloom_shard(element, shards)`."""

    type = Integer()
    inherit_cache = True

    def _arguments(self, args: Tuple[Any, ...]) -> List[Any]:
        # The number of shards is an integer, not an element.
        return [*(_argument(arg) for arg in args[:1]), *(cast(arg, Integer) for arg in args[1:])]


def _declare(names: str, base: type, **attributes: Any) -> None:
    """Makes the functions of these names known to SQLAlchemy's `func`, and to pickle, which looks for them here."""
    for name in names.split():
        globals()[name] = type(name, (base,), {"__module__": __name__, "inherit_cache": True, **attributes})


_declare(
    "bloom_add bloom_empty bloom_fold bloom_intersection bloom_intersection_agg bloom_resize bloom_union bloom_union_agg "
    "counting_bloom_to_bloom",
    _Function,
    type=Bloom(),
)
_declare("bloom_add_all", _FunctionOfArray, type=Bloom())
_declare("bloom_from_array", _FunctionOfAnyArray, type=Bloom(), place_of_array=0)
_declare(
    "bloom_contains bloom_set_add bloom_set_contains bloom_set_remove counting_bloom_contains",
    _Function,
    type=Boolean(),
)
_declare("bloom_contains_all bloom_contains_any", _Probe, type=Boolean())
_declare("bloom_absent bloom_present", _Probe, returns_members=True)
_declare(
    "bloom_set_absent bloom_set_add_all bloom_set_present bloom_set_remove_all", _FunctionOfArray, returns_members=True
)
_declare(
    "bloom_set_create",
    _FunctionOfTypes,
    type=Text(),
    argument_types=(Text(), _TypeName(), BigInteger(), Double(), Interval(), Boolean(), Boolean()),
)
_declare(
    "bloom_from_parquet", _FunctionOfTypes, type=Bloom(), argument_types=(LargeBinary(), _TypeName(), Boolean())
)
_declare("counting_bloom_count", _Function, type=Integer())
# The types of the columns that these return are named by the query: table_valued(…).
_declare("bloom_find bloom_query", _Function)
_declare("bloom_find_all", _FunctionOfAnyArray, place_of_array=2)
_declare(
    "counting_bloom_add counting_bloom_agg counting_bloom_empty counting_bloom_remove counting_bloom_union "
    "counting_bloom_union_agg",
    _Function,
    type=CountingBloom(),
)
_declare("counting_bloom_add_all counting_bloom_remove_all", _FunctionOfArray, type=CountingBloom())


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
ischema_names["counting_bloom"] = CountingBloom
