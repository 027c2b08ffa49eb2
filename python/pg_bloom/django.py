"""Django: fields for filters, the lookup may_contain, indexes of the method bloom_filter, the extension's migration."""

import json
from typing import Any, Dict, List, Optional

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import PostgresIndex
from django.contrib.postgres.operations import CreateExtension
from django.core import checks
from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.postgresql.psycopg_any import is_psycopg3
from django.db.backends.signals import connection_created
from django.db.migrations.serializer import BaseSerializer
from django.db.migrations.writer import MigrationWriter

from . import Filter
from ._types import FIND_TYPE, filters_of_array, typed_element

if is_psycopg3:
    from psycopg.types import TypeInfo
else:
    import psycopg2.extensions

__all__ = ["BloomAgg", "BloomArrayField", "BloomExtension", "BloomField", "BloomFilterIndex"]


class BloomField(models.Field):
    """A filter: Filter in Python. Forms leave it out, and so does the admin."""

    description = "Bloom filter"
    # The default of a column that is NOT NULL would be an empty text.
    empty_strings_allowed = False
    _is_in_bloom_array = False

    def check(self, **kwargs: Any) -> List[Any]:
        return [*super().check(**kwargs), *self._check_array()]

    def _check_array(self) -> List[Any]:
        """An error if this is the base field of an array of Django's own, whose forms would erase the filters."""
        if self._is_in_bloom_array or self.model._meta.get_field(self.name) is self:
            return []
        return [checks.Error("Arrays of filters are a BloomArrayField.", obj=self, id="pg_bloom.E001")]

    def db_type(self, connection: Any) -> str:
        return "bloom"

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        # A parameter in an expression has no type otherwise, and an expression in UPDATE may have operators.
        return "(%s)::bloom"

    def get_prep_value(self, value: Any) -> Optional[str]:
        filter = _filter(super().get_prep_value(value))
        return None if filter is None else "\\x" + bytes(filter).hex()

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Optional[Filter]:
        if value == "{":
            # An ArrayField reads the text of an array letter by letter.
            raise TypeError(
                "the driver reads an array of filters as text, since pg_bloom was installed after this connection was "
                "made: install it by BloomExtension(), or close the connection"
            )
        return _filter(value)

    def get_lookup(self, lookup_name: str) -> Any:
        # Others would compare the text of a filter.
        return super().get_lookup(lookup_name) if lookup_name in ("exact", "in", "isnull", "may_contain") else None

    def to_python(self, value: Any) -> Optional[Filter]:
        try:
            return _filter(value)
        except (TypeError, ValueError) as error:
            raise ValidationError(str(error), code="invalid", params={"value": value}) from error

    def value_from_object(self, obj: Any) -> Any:
        # Django REST framework gives the base field of an array a filter in place of a model.
        return obj if isinstance(obj, Filter) else super().value_from_object(obj)

    def value_to_string(self, obj: Any) -> Optional[str]:
        return self.get_prep_value(self.value_from_object(obj))

    def formfield(self, **kwargs: Any) -> None:
        """Returns None: forms leave filters out."""


class BloomArrayField(ArrayField):
    """An array of filters, `bloom[]`: a list of Filter in Python. Forms leave it out, and so does the admin."""

    def __init__(self, base_field: Any = None, **options: Any) -> None:
        super().__init__(base_field or BloomField(), **options)
        self.base_field._is_in_bloom_array = True
        # ArrayField sets this attribute of each field, where a method would be hidden.
        self.from_db_value = self._filters_from_db_value

    def _filters_from_db_value(self, value: Any, expression: Any, connection: Any) -> Optional[List[Any]]:
        # The driver of a connection that was made before the extension doesn't know the type.
        if isinstance(value, str):
            return filters_of_array(value)
        return self._from_db_value(value, expression, connection)

    def to_python(self, value: Any) -> Optional[List[Any]]:
        try:
            # Serializers write a list as JSON.
            members = json.loads(value) if isinstance(value, str) else value
            return None if members is None else [self.base_field.to_python(member) for member in members]
        except (TypeError, ValueError) as error:
            message = f"not a list of bloom filters: {error}"
            raise ValidationError(message, code="invalid", params={"value": value}) from error

    def formfield(self, **kwargs: Any) -> None:
        """Returns None: forms leave filters out."""


def _filter(value: Any) -> Optional[Filter]:
    """A filter, or its bytes, or its text as the server writes it, as Filter."""
    return value if value is None or isinstance(value, Filter) else Filter(value)


class _FilterSerializer(BaseSerializer):
    """Writes a filter, a field's default, into a migration."""

    def serialize(self) -> Any:
        return f"pg_bloom.Filter({bytes(self.value)!r})", {"import pg_bloom"}


MigrationWriter.register_serializer(Filter, _FilterSerializer)


@BloomField.register_lookup
class MayContain(models.Lookup):
    """`Model.objects.filter(seen__may_contain=x)`: rows whose filter may have the element, an expression or a value, which
    gets the type that its kind has in SQL. A list is an array, which is one element."""

    lookup_name = "may_contain"

    def get_prep_lookup(self) -> Any:
        if isinstance(self.rhs, models.Value) and "output_field" not in vars(self.rhs) and self.rhs.value is not None:
            # Without a field the driver would guess its type, and take a list of strings for one text.
            self.rhs = self.rhs.value
        if hasattr(self.rhs, "resolve_expression") or self.rhs is None:
            return self.rhs
        hint = (
            "Cast(Value(…), FIELD); for a list Cast(Value(…), ArrayField(TextField())) with the right field, "
            "or Func(…, function='bloom_contains_any')"
        )
        element = typed_element(self.rhs, hint)
        if element is None:
            # Django refuses it as it refuses None.
            return None
        self._sql_type = element.sql_type
        return element.value

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        filter, filter_params = self.process_lhs(compiler, connection)
        element, element_params = self.process_rhs(compiler, connection)
        if self.rhs_is_direct_value():
            element = f"({element})::{self._sql_type}"
        return f"{filter} @> {element}", [*filter_params, *element_params]


class BloomAgg(models.Aggregate):
    """`BloomAgg("url")`, and with a capacity, a rate and a layout: the filter of a group's values. They have no names, and
    what Django takes as an option of the template is refused."""

    function = "bloom_agg"
    output_field = BloomField()
    # Of no rows the server makes an empty filter: it is asked even where Django knows that there are none, and a default
    # is never needed.
    empty_result_set_value = NotImplemented

    def __init__(self, *expressions: Any, **options: Any) -> None:
        for name in ("capacity", "fpr", "layout"):
            if name in options:
                raise TypeError(f"{name} of bloom_agg is given by its place: BloomAgg(column, capacity, fpr, layout)")
        literals = [models.Value(value) if isinstance(value, str) else value for value in expressions[1:]]
        super().__init__(*expressions[:1], *literals, **options)


class BloomFilterIndex(PostgresIndex):
    """An index USING bloom_filter, with its options: `BloomFilterIndex(fields=["url"], name="…", with_={"fpr": 0.001})`.
    Operator classes are given by Django's `opclasses`."""

    suffix = "bloom_filter"

    def __init__(self, *expressions: Any, with_: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        self.with_ = dict(with_ or {})
        super().__init__(*expressions, **kwargs)

    def deconstruct(self) -> Any:
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, "with_": self.with_} if self.with_ else kwargs

    def get_with_params(self) -> Any:
        return [f"{option} = {value}" for option, value in self.with_.items()]


class BloomExtension(CreateExtension):
    """The operation of a migration that installs pg_bloom."""

    def __init__(self) -> None:
        super().__init__("pg_bloom")

    def database_forwards(self, app_label: Any, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        super().database_forwards(app_label, schema_editor, from_state, to_state)
        _register_arrays(schema_editor.connection)


def _register_arrays(connection: Any, **_signal: Any) -> None:
    """Lets the driver of a connection read arrays of filters as lists, where the extension is installed."""
    if connection.vendor != "postgresql":
        return
    # Not a cursor of Django, which would count this among the queries of the application.
    with connection.connection.cursor() as cursor:
        cursor.execute(FIND_TYPE)
        row = cursor.fetchone()
    if row is None:
        return
    oid, array_oid, _ = row
    if is_psycopg3:
        TypeInfo("bloom", oid, array_oid).register(connection.connection)
    else:
        psycopg2.extensions.register_type(
            psycopg2.extensions.new_array_type((array_oid,), "bloom[]", psycopg2.STRING), connection.connection
        )


connection_created.connect(_register_arrays)
