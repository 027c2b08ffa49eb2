"""Django: fields for filters, the lookup may_contain, indexes of the method bloom_filter, the extension's migration."""

import json
from typing import Any, Dict, Iterator, List, Optional, Tuple

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import PostgresIndex
from django.contrib.postgres.operations import CreateExtension
from django.core import checks
from django.core.exceptions import FieldDoesNotExist, FieldError, ValidationError
from django.db import models
from django.db.backends.postgresql.psycopg_any import is_psycopg3
from django.db.backends.signals import connection_created
from django.db.migrations.serializer import BaseSerializer
from django.db.migrations.writer import MigrationWriter
from django.utils.functional import LazyObject, Promise, empty

from . import Filter
from ._types import FIND_TYPE, filters_of_array, refuse_enum, typed_element

if is_psycopg3:
    from psycopg.types import TypeInfo

    from .psycopg import dumpers_of
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
        # A field without a name is the output_field of another, such as a GeneratedField, which no form has.
        if self._is_in_bloom_array or self.name is None:
            return []
        try:
            field = self.model._meta.get_field(self.name)
        except FieldDoesNotExist:
            return []
        if not isinstance(field, ArrayField):
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
        if lookup_name in models.Field.class_lookups and lookup_name not in ("exact", "in", "isnull"):
            raise FieldError(
                f"Unsupported lookup '{lookup_name}' for {type(self).__name__}: filters have exact, in, isnull and "
                f"may_contain. To search in filters of texts, write '{self.name or 'field'}__may_contain' in search_fields."
            )
        return super().get_lookup(lookup_name)

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


# Lookups that Django has for every field, since it compares the text of its value.
_LOOKUPS_OF_TEXTS = frozenset(
    "iexact icontains startswith istartswith endswith iendswith regex iregex may_contain".split()
)


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

    def get_lookup(self, lookup_name: str) -> Any:
        if lookup_name in _LOOKUPS_OF_TEXTS:
            raise FieldError(
                f"Unsupported lookup '{lookup_name}' for {type(self).__name__}: it would compare the text of filters. "
                f"A member is probed by '{self.name or 'field'}__0__may_contain'."
            )
        return super().get_lookup(lookup_name)

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
        self.rhs = _evaluated(self.rhs)
        if hasattr(self.rhs, "resolve_expression") or self.rhs is None:
            _refuse_enums(self.rhs)
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


def _evaluated(value: Any) -> Any:
    """The value that a lazy one stands for, such as `gettext_lazy("red")`; a list with such values of it."""
    if isinstance(value, list):
        return [_evaluated(member) for member in value]
    # isinstance() would ask the object that a LazyObject stands for.
    if issubclass(type(value), LazyObject):
        if value._wrapped is empty:
            value._setup()
        return value._wrapped
    # As fields of Django do.
    return value._proxy____cast() if isinstance(value, Promise) else value


def _refuse_enums(expression: Any) -> None:
    """TypeError for a member of an enumeration in a Value of an expression, unless the project's own field converts it."""
    if not hasattr(expression, "flatten"):
        return
    for part in expression.flatten():
        if not isinstance(part, models.Value):
            continue
        field = vars(part).get("output_field")
        while isinstance(field, ArrayField):
            field = field.base_field
        if field is None or type(field).__module__.startswith("django."):
            refuse_enum(part.value)


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
        _register_type(schema_editor.connection)


def _register_type(connection: Any, **_signal: Any) -> None:
    """Lets the driver of a connection read arrays of filters as lists, and take a filter as a parameter that has no field,
    where the extension is installed."""
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
        for dumper in dumpers_of(oid):
            connection.connection.adapters.register_dumper(Filter, dumper)
    else:
        psycopg2.extensions.register_type(
            psycopg2.extensions.new_array_type((array_oid,), "bloom[]", psycopg2.STRING), connection.connection
        )


connection_created.connect(_register_type)
if not is_psycopg3:
    psycopg2.extensions.register_adapter(
        Filter, lambda filter: psycopg2.extensions.AsIs(f"'\\x{bytes(filter).hex()}'::bloom")
    )


def _check_admin(app_configs: Any, **_options: Any) -> List[Any]:
    """Errors for what a class of the admin says of filters, where the admin would fail when it shows a page: filters have
    no text to search, no values to list, and no field in a form."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.sites import all_sites

    errors: List[Any] = []
    for site in all_sites:
        for admin in site._registry.values():
            if app_configs is not None and admin.model._meta.app_config not in app_configs:
                continue
            errors += [*_check_search(admin), *_check_list_filter(admin), *_check_form(admin, type(admin))]
            for inline in admin.inlines:
                errors += _check_form(inline, inline)
    return errors


checks.register(_check_admin, checks.Tags.admin)


def _check_search(admin: Any) -> Iterator[Any]:
    for place, name in enumerate(admin.search_fields):
        path = name.lstrip("^=@")
        field, lookups = _filter_at(admin.model, path)
        # The signs in front stand for lookups of texts.
        if field is None or (path == name and _has_lookup(field, lookups)):
            continue
        hint = "Leave it out."
        if isinstance(field, BloomField):
            path_of_field = "__".join(path.split("__")[: -len(lookups) or None])
            hint = f"Write '{path_of_field}__may_contain', which searches in filters of texts, or leave it out."
        message = f"The value of 'search_fields[{place}]' refers to '{path}', which has no text to search: it is a filter."
        yield checks.Error(message, hint=hint, obj=type(admin), id="pg_bloom.E002")


def _has_lookup(field: models.Field, lookups: List[str]) -> bool:
    """Whether the admin searches a field by this lookup, and doesn't add one of its own."""
    try:
        return len(lookups) == 1 and field.get_lookup(lookups[0]) is not None
    except FieldError:
        return False


def _check_list_filter(admin: Any) -> Iterator[Any]:
    for place, name in enumerate(admin.list_filter):
        # Django looks for a class only if the project names none.
        field = _filter_at(admin.model, name)[0] if isinstance(name, str) else None
        if field is None:
            continue
        hint = f"Write ('{name}', admin.EmptyFieldListFilter), or leave it out." if field.null else "Leave it out."
        message = f"The value of 'list_filter[{place}]' refers to '{name}', whose values can't be listed: it is a filter."
        yield checks.Error(message, hint=hint, obj=type(admin), id="pg_bloom.E003")


def _check_form(options: Any, admin_class: Any) -> Iterator[Any]:
    """Checks a ModelAdmin, or the class of an inline."""
    from django.contrib.admin.utils import flatten

    named = [("fields", name) for name in flatten(options.fields or ())]
    for _, fieldset in options.fieldsets or ():
        named += [("fieldsets", name) for name in flatten(fieldset.get("fields", ()))]
    for name, sources in dict(options.prepopulated_fields).items():
        named += [("prepopulated_fields", name) for name in (name, *sources)]
    named += [("list_editable", name) for name in getattr(options, "list_editable", ())]
    own_fields = getattr(options.form, "declared_fields", ())
    for option, name in named:
        field = _filter_at(options.model, name)[0] if isinstance(name, str) and name not in own_fields else None
        if field is None or field.formfield() is not None:
            continue
        hint = "Leave it out."
        if option in ("fields", "fieldsets"):
            if name in options.readonly_fields:
                continue
            hint = f"Name '{name}' in 'readonly_fields' as well, so that the page shows what it is, or leave it out."
        message = f"The value of '{option}' refers to '{name}', which forms leave out: it is a filter."
        yield checks.Error(message, hint=hint, obj=admin_class, id="pg_bloom.E004")


def _filter_at(model: Any, name: str) -> Tuple[Optional[models.Field], List[str]]:
    """The field of filters that a name such as `reader__items` leads to, if it does, and what follows it in the name."""
    parts = name.split("__")
    while parts:
        try:
            field = model._meta.get_field(parts.pop(0))
        except FieldDoesNotExist:
            break
        if getattr(field, "generated", False):
            field = field.output_field
        if isinstance(field, (BloomField, BloomArrayField)):
            return field, parts
        if not field.is_relation or field.related_model is None:
            break
        model = field.related_model
    return None, []
