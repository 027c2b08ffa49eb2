"""Django: a field for filters, the lookup may_contain, indexes of the method bloom_filter, the extension's migration."""

from typing import Any, Dict, Optional

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import PostgresIndex
from django.contrib.postgres.operations import CreateExtension
from django.db import models
from django.db.migrations.serializer import BaseSerializer
from django.db.migrations.writer import MigrationWriter

from . import Filter
from ._types import sql_type

__all__ = ["BloomAgg", "BloomArrayField", "BloomExtension", "BloomField", "BloomFilterIndex"]


class BloomField(models.Field):
    """A filter: Filter in Python."""

    description = "Bloom filter"

    def db_type(self, connection: Any) -> str:
        return "bloom"

    def get_prep_value(self, value: Any) -> Optional[str]:
        value = self.to_python(super().get_prep_value(value))
        return None if value is None else "\\x" + bytes(value).hex()

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Optional[Filter]:
        if value == "{":
            raise TypeError("the driver reads an array of filters as text: write BloomArrayField() for this field")
        return self.to_python(value)

    def get_lookup(self, lookup_name: str) -> Any:
        # Others would compare the text of a filter.
        return super().get_lookup(lookup_name) if lookup_name in ("exact", "in", "isnull", "may_contain") else None

    def to_python(self, value: Any) -> Optional[Filter]:
        if value is None or isinstance(value, Filter):
            return value
        return Filter(value)

    def value_to_string(self, obj: Any) -> Any:
        return self.get_prep_value(self.value_from_object(obj))

    def formfield(self, **kwargs: Any) -> None:
        """Forms leave filters out."""


class BloomArrayField(ArrayField):
    """An array of filters, `bloom[]`: a list of Filter in Python."""

    def __init__(self, base_field: Any = None, **options: Any) -> None:
        super().__init__(base_field or BloomField(), **options)

    def select_format(self, compiler: Any, sql: Any, params: Any) -> Any:
        return f"{sql}::bytea[]", params


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
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        filter, filter_params = self.process_lhs(compiler, connection)
        element, element_params = self.process_rhs(compiler, connection)
        if self.rhs_is_direct_value():
            hint = "Cast(Value(…), ArrayField(TextField())) with the right field, or Func(…, function='bloom_contains_any')"
            name = sql_type(self.rhs, hint)
            if name is None:
                raise TypeError(f"a value of type {type(self.rhs).__name__} has no type in SQL: write {hint}")
            element = f"({element})::{name}"
        return f"{filter} @> {element}", [*filter_params, *element_params]


class BloomAgg(models.Aggregate):
    """`BloomAgg("url")`, and with a capacity, a rate and a layout: the filter of a group's values. They have no names, and
    what Django takes as an option of the template is refused."""

    function = "bloom_agg"
    output_field = BloomField()

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
