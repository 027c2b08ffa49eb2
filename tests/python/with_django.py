"""A Django project: migrations, the lookup, expressions, arrays of filters, forms, the admin, REST. The arguments are the
driver, psycopg or psycopg2, and where it binds parameters, client or server."""

import io
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from common import ELEMENTS, LISTS_WITHOUT_A_TYPE, MISSING, NO_ELEMENTS, Color, Letter, One, refused

from pg_bloom import Filter

A = Filter.build(["a"], 100)
B = Filter.build(["b", "a"], 100)


def text_of(filter):
    return "\\x" + bytes(filter).hex()


def set_up(folder):
    """Makes a project in a folder, with its first migration, as a user would."""
    shutil.copytree(Path(__file__).parent / "project", folder, dirs_exist_ok=True)
    os.environ["DRIVER"], os.environ["BINDING"] = sys.argv[1:3]
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    sys.path.insert(0, str(folder))
    import django
    from django.core.management import call_command

    django.setup()
    call_command("makemigrations", "shop", verbosity=0)
    migration = folder / "shop" / "migrations" / "0001_initial.py"
    text = migration.read_text()
    migration.write_text(text.replace("operations = [", "operations = [\n        pg_bloom.django.BloomExtension(),", 1))
    call_command("migrate", verbosity=0)


def nothing_is_left_to_migrate(folder):
    from django.core.management import call_command
    from django.db import connection

    call_command("check", fail_level="WARNING", stdout=io.StringIO())
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT amname, reloptions FROM pg_class AS c JOIN pg_am AS a ON a.oid = relam WHERE relname = 'url'")
        assert cursor.fetchone() == ("bloom_filter", ["fpr=0.001", "pages_per_range=16"])
    # A later migration, by programs of their own.
    models = folder / "shop" / "models.py"
    field = "    more = BloomField(default=Filter.build([7], 10))"
    models.write_text(models.read_text().replace("    class Meta", f"{field}\n\n    class Meta"))
    for arguments in ["makemigrations", "shop"], ["migrate"], ["makemigrations", "--check"], ["migrate", "shop", "0001"]:
        subprocess.run([sys.executable, "-m", "django", *arguments, "--verbosity=0"], check=True, cwd=folder)


def elements_have_the_type_of_their_kind():
    from django.db.models import Value
    from shop.models import Reader

    readers = Reader.objects
    for element in ELEMENTS:
        reader = readers.create(seen=Filter.build([element]))
        assert readers.filter(seen__may_contain=element).count() == 1, element
        assert readers.filter(seen__may_contain=Value(element)).count() == 1, element
        reader.delete()
    for element in LISTS_WITHOUT_A_TYPE:
        for given in element, Value(element):
            refused(TypeError, lambda: readers.filter(seen__may_contain=given), "array", "write")
    for element in NO_ELEMENTS:
        for given in element, Value(element):
            refused(TypeError, lambda: readers.filter(seen__may_contain=given), "cannot be an element", "write")
    refused(TypeError, lambda: readers.filter(seen__may_contain=(1,)), "list(value)")
    refused(TypeError, lambda: readers.filter(seen__may_contain=int), "a class, int, cannot be an element")
    for missing in MISSING:
        refused(ValueError, lambda: readers.filter(seen__may_contain=missing), "None")


def members_of_enumerations_are_refused():
    """Wherever they stand in an element: psycopg would send the name."""
    from django.contrib.postgres.fields import ArrayField
    from django.db.models import Case, F, Func, TextField, Value, When
    from django.db.models.functions import Cast, Lower
    from shop.models import Reader

    red, texts = Color.red, ArrayField(TextField())

    class ColorField(TextField):
        """A field of the project, which writes the value."""

        def get_prep_value(self, value):
            return value.value

    readers = Reader.objects
    for element in (
        red,
        [red],
        [[red]],
        Value(red),
        Value(red, TextField()),
        Value([red], texts),
        Cast(Value(red), TextField()),
        Cast(Value(["a", red]), texts),
        Lower(Value(red, TextField())),
        Func(F("url"), Value(red), function="concat", output_field=TextField()),
        Case(When(number=7, then=Value(red, TextField())), default=F("url")),
    ):
        refused(TypeError, lambda: readers.filter(seen__may_contain=element), "write its value, Color.red.value")
    readers.create(seen=Filter.build([red.value]))
    assert readers.filter(seen__may_contain=Value(red, ColorField())).count() == 1
    assert readers.filter(seen__may_contain=Value(Letter.a, TextField())).count() == 0
    readers.all().delete()


def lazy_values_are_what_they_stand_for():
    """As in lookups of Django."""
    from django.db.models import Value
    from django.utils.functional import SimpleLazyObject, lazy
    from django.utils.translation import gettext_lazy
    from shop.models import Reader

    readers = Reader.objects
    red = gettext_lazy("red"), SimpleLazyObject(lambda: "red"), lazy(lambda: "red", str)()
    readers.create(seen=Filter.build(["red"]))
    for element in *red, *map(Value, red):
        assert readers.filter(seen__may_contain=element).count() == 1, repr(element)
    readers.update(seen=Filter.build([["red"]]))
    for element in red:
        assert readers.filter(seen__may_contain=[element]).count() == 1, repr(element)
    readers.update(seen=Filter.build([5]))
    for element in SimpleLazyObject(lambda: 5), lazy(lambda: 5, int)():
        assert readers.filter(seen__may_contain=element).count() == 1, repr(element)
    refused(TypeError, lambda: readers.filter(seen__may_contain=SimpleLazyObject(lambda: Color.red)), "Color.red.value")
    refused(TypeError, lambda: readers.filter(seen__may_contain=SimpleLazyObject(object)), "cannot be an element")
    readers.all().delete()


def filters_are_generated():
    """Fields whose output_field is one of filters, which has a model and no name."""
    import django
    from django.contrib import admin
    from django.contrib.postgres.fields import ArrayField
    from django.core import checks
    from django.core.exceptions import FieldError
    from django.db import connection, models
    from django.db.models import F, Func
    from django.test.utils import isolate_apps

    from pg_bloom.django import BloomArrayField, BloomField

    if django.VERSION < (5,):
        return

    def array_of(name, output_field):
        template = "ARRAY[%(expressions)s]"
        expression = Func(F(name), template=template)
        return models.GeneratedField(expression=expression, output_field=output_field, db_persist=True)

    with isolate_apps("shop"):

        class Base(models.Model):
            tags = ArrayField(models.TextField())
            seen = BloomField(default=A)

            class Meta:
                app_label = "shop"
                abstract = True

        class Generated(Base):
            of_tags = models.GeneratedField(
                expression=Func("tags", 100, 0.01, function="bloom_from_array"), output_field=BloomField(), db_persist=True
            )
            days = array_of("seen", BloomArrayField())
            plain = array_of("seen", ArrayField(BloomField()))

            class Meta:
                app_label = "shop"

        class Wrong(Base):
            days = ArrayField(ArrayField(BloomField()))

            class Meta:
                app_label = "shop"

    assert Generated.check(databases=["default"]) == []
    assert ["BloomArrayField" in error.msg for error in Wrong.check()] == [True]
    with connection.schema_editor() as editor:
        editor.create_model(Generated)
    Generated.objects.create(tags=["x", "y"])
    one = Generated.objects.get(of_tags__may_contain="y")
    assert (one.of_tags, one.days, one.plain) == (Filter.build(["x", "y"], 100), [A], [A])
    assert Generated.objects.filter(of_tags__may_contain="z").count() == 0
    refused(FieldError, lambda: Generated.objects.filter(of_tags__icontains="y"), "may_contain")

    class Admin(admin.ModelAdmin):
        search_fields = ["of_tags", "of_tags__may_contain"]
        list_filter = ["of_tags"]
        fields = ["of_tags"]

    site = admin.AdminSite("other")
    site.register(Generated, Admin)
    errors = {error.id: error.hint for error in checks.run_checks(tags=["admin"]) if error.obj is Admin}
    assert list(errors) == ["pg_bloom.E002", "pg_bloom.E003", "pg_bloom.E004"], errors
    assert "'of_tags__may_contain'" in errors["pg_bloom.E002"] and errors["pg_bloom.E003"] == "Leave it out."
    with connection.schema_editor() as editor:
        editor.delete_model(Generated)


def other_lookups_are_refused():
    from django.core.exceptions import FieldError
    from shop.models import Reader

    for lookup in "contains", "icontains", "startswith", "gt":
        refused(FieldError, lambda: Reader.objects.filter(**{f"seen__{lookup}": 1}), lookup, "seen__may_contain")
    refused(FieldError, lambda: Reader.objects.filter(seen__other=1), "other")
    # The text of an array of filters says as little.
    for lookup in "icontains", "startswith", "iregex":
        refused(FieldError, lambda: Reader.objects.filter(**{f"days__{lookup}": "a"}), lookup, "text of filters")
    refused(FieldError, lambda: Reader.objects.filter(days__may_contain="a"), "days__0__may_contain")


def the_lookup_takes_expressions():
    from django.contrib.postgres.fields import ArrayField
    from django.db.models import Exists, F, OuterRef, Q, Subquery, TextField, Value
    from django.db.models.functions import Cast
    from shop.models import Reader

    readers = Reader.objects
    readers.create(url="a", seen=B)
    readers.create(url="b", seen=Filter.build(["b"], 100))
    readers.create(url="c")

    def urls(*conditions, **named):
        return sorted(readers.filter(*conditions, **named).values_list("url", flat=True))

    assert urls(Q(seen__may_contain="a") | Q(url="c")) == ["a", "c"]
    assert urls(~Q(seen__may_contain="a")) == ["b", "c"]
    assert sorted(readers.exclude(seen__may_contain="a").values_list("url", flat=True)) == ["b", "c"]
    assert urls(seen__may_contain=F("url")) == ["a", "b"]
    assert urls(Q(seen__may_contain="b"), ~Q(url="a")) == ["b"]
    assert urls(seen__may_contain=Value("a")) == ["a"]
    assert urls(seen__may_contain=Letter.a) == ["a"]
    assert urls(seen__may_contain=One.one, url="z") == []
    others = readers.filter(seen__may_contain=OuterRef("url")).exclude(pk=OuterRef("pk"))
    assert urls(Exists(others)) == ["b"]
    assert urls(seen__may_contain=Subquery(readers.filter(url="a").values("url")[:1])) == ["a"]
    readers.filter(url="b").update(seen=Filter.build([["x"], ["y"]]))
    assert urls(url="b", seen__may_contain=["x"]) == ["b"]
    assert urls(url="b", seen__may_contain=Cast(Value([]), ArrayField(TextField()))) == []
    readers.all().delete()


def filters_are_values_in_expressions():
    """A parameter in an expression has the type of its field."""
    from django.db import connection
    from django.db.models import Case, F, Func, Q, Value, When
    from django.db.models.functions import Coalesce
    from pg_bloom.django import BloomAgg, BloomField
    from shop.models import Reader

    readers = Reader.objects
    one = readers.create(url="a", seen=A)
    two = readers.create(url="b")
    field = BloomField()
    either = Case(When(url="a", then=Value(B, field)), default=Value(A, field))
    readers.update(seen=either)
    assert list(readers.order_by("url").values_list("seen", flat=True)) == [B, A]
    # The driver takes a filter without a field, and a list of filters, as well.
    readers.filter(url="b").update(seen=Value(B), days=Value([A, None]))
    readers.filter(url="a").update(seen=Case(When(url="a", then=Value(A)), default=F("seen")))
    readers.filter(seen=A).update(fixed=Func(F("seen"), Value(B), function="bloom_union"))
    assert list(readers.order_by("url").values_list("seen", "days")) == [(A, []), (B, [A, None])]
    assert readers.get(url="a").fixed == A | B
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s = seen, days = %s FROM shop_reader WHERE url = 'b'", [B, [A, None]])
        assert cursor.fetchone() == (True, True)
    readers.update(seen=either, days=[])
    readers.filter(url="a").update(seen=Case(When(url="z", then=Value(B, field)), default=F("made")))
    readers.filter(url="b").update(seen=None)
    assert list(readers.order_by("url").values_list(Coalesce("seen", Value(A, field)), flat=True)) == [one.made, A]
    assert readers.annotate(given=Value(A, field)).filter(given__may_contain="a").count() == 2
    assert readers.annotate(given=either).filter(given__may_contain="b").get() == one
    # The operator binds more than a cast of its last operand would.
    with_url = Func(Value(A, field), F("url"), template="%(expressions)s", arg_joiner=" || ", output_field=field)
    readers.update(seen=with_url)
    assert [url in filter for url, filter in readers.values_list("url", "seen")] == [True, True]
    readers.filter(url="b").update(seen=Func(F("made"), Value("z"), function="bloom_add"))
    two.refresh_from_db()
    assert two.seen.contains_many(["z", "b"]) == [True, False]

    two.seen = B
    readers.bulk_update([two], ["seen"])
    conflict = {"update_conflicts": True, "unique_fields": ["id"], "update_fields": ["seen"]}
    readers.bulk_create([Reader(pk=one.pk, seen=A)], **conflict)
    assert readers.get(seen=A) == one and readers.get(seen__in=[B, A], url="b") == two
    assert readers.values("seen").distinct().count() == 2

    urls = readers.aggregate(f=BloomAgg("url", 100, 0.01, "classic", filter=Q(number=7)))["f"]
    assert urls.header.layout == "classic" and urls.contains_many(["a", "b"]) == [True] * 2
    groups = readers.values("number").annotate(f=BloomAgg("url")).order_by("number")
    assert [("a" in group["f"]) for group in groups] == [True]
    refused(TypeError, lambda: BloomAgg("url", capacity=1000), "capacity")
    # Django knows of the first and of the second that there are no rows, the server of the third.
    for nothing in readers.none(), readers.filter(pk__in=[]), readers.filter(pk=-1):
        assert nothing.aggregate(f=BloomAgg("url"))["f"] == Filter.build([])
    refused(TypeError, lambda: BloomAgg("url", default=A), "default")
    assert readers.only("url").get(pk=one.pk).seen == A
    readers.all().delete()


def arrays_are_lists_however_they_are_read():
    from django.contrib.postgres.aggregates import ArrayAgg
    from django.db import connection
    from shop.models import Reader

    readers = Reader.objects
    one = readers.create(url="a", days=[A, None, B])
    readers.create(url="b", seen=A)

    def days_are_read():
        days = [[A, None, B], []]
        assert [reader.days for reader in readers.order_by("url")] == days
        assert [reader.days for reader in readers.raw("SELECT * FROM shop_reader ORDER BY url")] == days
        assert readers.get(days__contains=[B]) == readers.get(days=[A, None, B]) == readers.get(days__0=A) == one
        assert list(readers.filter(url="a").values_list("days__2", "days__0_1", "days__len")) == [(B, [A], 3)]
        assert readers.filter(days__0__may_contain="a").get() == one

    days_are_read()
    assert readers.filter(url="b").aggregate(all=ArrayAgg("seen"))["all"] == [A]
    # The driver doesn't know the type, where the extension is newer than the connection.
    with connection.cursor() as cursor:
        cursor.execute("DROP EXTENSION pg_bloom CASCADE")
        cursor.execute("CREATE EXTENSION pg_bloom")
        for column in "seen", "fixed", "made":
            cursor.execute(f"ALTER TABLE shop_reader ADD {column} bloom DEFAULT bloom_empty(100)")
        cursor.execute("ALTER TABLE shop_reader ADD days bloom[]")
    readers.filter(url="a").update(days=[A, None, B])
    readers.filter(url="b").update(days=[])
    days_are_read()
    refused(TypeError, lambda: readers.aggregate(all=ArrayAgg("seen")), "BloomExtension()")
    connection.close()
    assert len(readers.aggregate(all=ArrayAgg("seen"))["all"]) == 2
    readers.all().delete()


def the_database_fills_in_defaults():
    """Django reads them by RETURNING, from version 5 on."""
    import django
    from django.db import connection, models
    from django.test.utils import isolate_apps

    from pg_bloom.django import BloomArrayField, BloomField

    if django.VERSION < (5,):
        return

    with isolate_apps("shop"):

        class Filled(models.Model):
            seen = BloomField(db_default=A)
            days = BloomArrayField(db_default=[A, B])

            class Meta:
                app_label = "shop"

    with connection.schema_editor() as editor:
        editor.create_model(Filled)
    one = Filled.objects.create()
    assert (one.seen, one.days) == (A, [A, B])
    first, second = Filled.objects.bulk_create([Filled(), Filled(days=[B])])
    assert (first.seen, first.days, second.days) == (A, [A, B], [B])
    with connection.schema_editor() as editor:
        editor.delete_model(Filled)


def wrong_values_are_validation_errors():
    from django.contrib.postgres.fields import ArrayField
    from django.core.exceptions import ValidationError
    from django.db import models
    from django.test.utils import isolate_apps
    from shop.models import Reader, Required

    from pg_bloom.django import BloomField

    def errors(**values):
        try:
            Reader(url="x", **values).full_clean()
        except ValidationError as error:
            return error.message_dict
        raise AssertionError(values)

    for value in "text", "\\x00", b"bytes", 5, ["list"]:
        assert list(errors(fixed=value)) == ["fixed"], value
        assert list(errors(days=[value])) == ["days"], value
    for value in "text", '{"a": 1}', "7", 5, [[A]]:
        assert list(errors(days=value)) == ["days"], value
    assert "bytes" in errors(fixed=5)["fixed"][0]
    Reader(url="x", fixed=bytes(A), days=[text_of(A), B]).full_clean()
    try:
        Required(name="x", seen=None, days=[A]).full_clean()
    except ValidationError as error:
        assert list(error.message_dict) == ["seen"]
    assert Required().seen is None

    # Saved without a check, what is no filter is an error as Django's own fields have it.
    refused(TypeError, Reader(fixed=5).save)
    refused(ValueError, lambda: Reader.objects.filter(seen="\\x00"))

    # Forms of Django's own arrays would erase the filters.
    with isolate_apps("shop"):

        class Plain(models.Model):
            days = ArrayField(BloomField())

            class Meta:
                app_label = "shop"

    assert ["BloomArrayField" in error.msg for error in Plain.check()] == [True]


def serializers_keep_filters():
    from django.core import serializers
    from shop.models import Reader

    Reader.objects.create(url="a", seen=A, days=[A, None])
    Reader.objects.create(url="b", days=[])
    for form in "json", "jsonl", "xml", "python":
        copies = list(serializers.deserialize(form, serializers.serialize(form, Reader.objects.order_by("url"))))
        assert [(copy.object.seen, copy.object.days) for copy in copies] == [(A, [A, None]), (None, [])], form
    broken = serializers.serialize("json", Reader.objects.all()).replace("\\\\x", "\\\\z")
    refused(serializers.base.DeserializationError, lambda: list(serializers.deserialize("json", broken)), "hexadecimal")
    Reader.objects.all().delete()


def forms_leave_filters_alone():
    from django.forms import modelform_factory
    from shop.models import Reader

    reader = Reader.objects.create(url="a", seen=A, days=[A, None])
    form_class = modelform_factory(Reader, fields="__all__")
    assert list(form_class.base_fields) == ["url", "tags", "number"]
    assert "url" in form_class(instance=reader).as_p()
    form = form_class({"url": "b", "number": "8"}, instance=reader)
    assert form.is_valid(), form.errors
    form.save()
    saved = Reader.objects.get()
    assert (saved.url, saved.seen, saved.fixed, saved.days) == ("b", A, reader.fixed, [A, None])
    new = form_class({"url": "c", "number": "9"}).save()
    assert (new.seen, new.days, new.made) == (None, [], Filter.build([], 100))
    Reader.objects.all().delete()


def the_admin_leaves_filters_alone():
    from django.contrib.auth.models import User
    from django.test import Client
    from shop.models import Reader, Required

    reader = Reader.objects.create(url="a", seen=A, days=[A, None])
    required = Required.objects.create(name="a", seen=A, days=[B])
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    assert b"Filter of text" in client.get("/admin/shop/reader/").content
    page = f"/admin/shop/reader/{reader.pk}/change/"
    assert client.get(page).status_code == 200
    no_visits = {"visit_set-TOTAL_FORMS": 0, "visit_set-INITIAL_FORMS": 0}
    assert client.post(page, {"url": "b", "number": "8", **no_visits}).status_code == 302
    reader.refresh_from_db()
    assert (reader.url, reader.seen, reader.days) == ("b", A, [A, None])
    assert client.post("/admin/shop/reader/add/", {"url": "c", "number": "9", **no_visits}).status_code == 302
    assert Reader.objects.get(url="c").made == Filter.build([], 100)

    page = f"/admin/shop/required/{required.pk}/change/"
    assert client.get(page).content.count(b"Filter of text") == 2
    assert client.post(page, {"name": "b"}).status_code == 302
    required.refresh_from_db()
    assert (required.name, required.seen, required.days) == ("b", A, [B])
    for model in Reader, Required, User:
        model.objects.all().delete()


def the_admin_finds_and_shows_filters():
    from django.contrib.auth.models import User
    from django.test import Client
    from shop.models import Reader, Required, Visit

    one = Reader.objects.create(url="one", seen=A)
    two = Reader.objects.create(url="two")
    of_one = Visit.objects.create(reader=one, note="of one", seen=B)
    of_two = Visit.objects.create(reader=two, note="of two")
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))

    def found(address):
        response = client.get(address)
        assert response.status_code == 200, address
        content = response.content.decode()
        rows = [one, two] if "reader" in address else [of_one, of_two]
        return {row for row in rows if f"/{row.pk}/change/" in content}

    assert found("/admin/shop/reader/?q=a") == {one}
    assert found("/admin/shop/reader/?q=tw") == {two}
    assert found("/admin/shop/reader/?q=z") == set()
    assert found("/admin/shop/reader/?seen__isempty=1") == {two}
    assert found("/admin/shop/visit/?q=a") == {of_one}
    # A lookup of a URL has a text. What isn't a filter is a wrong lookup as Django has it.
    assert found("/admin/shop/reader/?seen__may_contain=a") == {one}
    assert client.get("/admin/shop/reader/?seen=a").status_code == 302
    # The inline shows the filter of a visit, and saving leaves it alone.
    page = f"/admin/shop/reader/{one.pk}/change/"
    shown = client.get(page).content.decode()
    assert str(B) in shown.replace("&lt;", "<").replace("&gt;", ">"), shown
    visit = one.visit_set.get()
    form = {"visit_set-TOTAL_FORMS": 1, "visit_set-INITIAL_FORMS": 1, "visit_set-0-id": visit.pk}
    form.update({"visit_set-0-reader": one.pk, "visit_set-0-note": "changed", "url": "one", "number": 7})
    assert client.post(page, form).status_code == 302
    visit.refresh_from_db()
    assert (visit.note, visit.seen) == ("changed", B)
    for model in Visit, Reader, Required, User:
        model.objects.all().delete()


def the_admin_is_checked():
    """What the admin would fail at when it shows a page is an error of `manage.py check`."""
    from django import forms
    from django.contrib import admin
    from django.core import checks
    from shop.models import Reader, Visit

    class Inline(admin.StackedInline):
        model = Visit
        fieldsets = [(None, {"fields": ["note", ("seen",)]})]

    class Wrong(admin.ModelAdmin):
        search_fields = ["url", "seen", "^seen", "seen__icontains", "days", "days__0__may_contain", "seen__may_contain"]
        list_filter = ["number", "seen", "fixed", "days", ("seen", admin.EmptyFieldListFilter)]
        list_display = ["url", "seen"]
        list_editable = ["seen"]
        fields = ["url", ("number", "seen"), "days"]
        readonly_fields = ["days"]
        prepopulated_fields = {"url": ["seen"]}
        inlines = [Inline]

    class WrongVisit(admin.ModelAdmin):
        search_fields = ["=reader__seen", "reader__url"]
        list_filter = ["reader__seen", "reader"]

    def errors_of(admins):
        site = admin.AdminSite("other")
        for model, admin_class in admins.items():
            site.register(model, admin_class)
        found = checks.run_checks(tags=["admin"])
        for model in admins:
            site.unregister(model)
        return [(error.obj.__name__, error.id[-4:], error.msg.split("'")[1], error.hint) for error in found]

    search = "Write '{}__may_contain', which searches in filters of texts, or leave it out."
    shown = "Name 'seen' in 'readonly_fields' as well, so that the page shows what it is, or leave it out."
    out = "Leave it out."
    expected = [
        ("Wrong", "E002", "search_fields[1]", search.format("seen")),
        ("Wrong", "E002", "search_fields[2]", search.format("seen")),
        ("Wrong", "E002", "search_fields[3]", search.format("seen")),
        ("Wrong", "E002", "search_fields[4]", out),
        ("Wrong", "E002", "search_fields[5]", out),
        ("Wrong", "E003", "list_filter[1]", "Write ('seen', admin.EmptyFieldListFilter), or leave it out."),
        ("Wrong", "E003", "list_filter[2]", out),
        ("Wrong", "E003", "list_filter[3]", out),
        ("Wrong", "E004", "fields", shown),
        ("Wrong", "E004", "prepopulated_fields", out),
        ("Wrong", "E004", "list_editable", out),
        ("Inline", "E004", "fieldsets", shown),
    ]
    assert errors_of({Reader: Wrong}) == expected
    assert errors_of({Visit: WrongVisit}) == [
        ("WrongVisit", "E002", "search_fields[0]", search.format("reader__seen")),
        ("WrongVisit", "E003", "list_filter[0]", "Write ('reader__seen', admin.EmptyFieldListFilter), or leave it out."),
    ]

    # A form of the project may have a field of its own.
    class Form(forms.ModelForm):
        seen = forms.CharField()

    class Right(admin.ModelAdmin):
        form = Form
        fields = ["url", "seen"]

    assert errors_of({Reader: Right}) == []
    assert checks.run_checks(app_configs=[], tags=["admin"]) == []


def rest_reads_and_writes_filters():
    from django.test import Client
    from shop.models import Reader

    reader = Reader.objects.create(url="a", seen=A, days=[A, B])
    client = Client()
    page = f"/api/readers/{reader.pk}/"

    def ask(method, **values):
        response = getattr(client, method)(page, values, content_type="application/json")
        return response.status_code, response.json()

    shown = client.get("/api/readers/").json()
    assert (shown[0]["seen"], shown[0]["days"]) == (text_of(A), [text_of(A), text_of(B)])
    assert ask("patch", url="b")[0] == 200
    assert ask("put", url="c")[0] == 200
    reader.refresh_from_db()
    assert (reader.url, reader.seen, reader.days) == ("c", A, [A, B])
    assert ask("patch", seen=text_of(B), days=[text_of(B)])[0] == 200
    reader.refresh_from_db()
    assert (reader.seen, reader.days) == (B, [B])
    for value in "text", 5, ["list"], {"a": 1}, True:
        assert ask("patch", seen=value)[0] == 400, value
        assert ask("patch", days=value)[0] == 400, value
        assert ask("patch", days=[value])[0] == 400, value
    status, errors = ask("patch", fixed=None, seen="\\x00")
    assert (status, sorted(errors)) == (400, ["fixed", "seen"])
    created = client.post("/api/readers/", {"url": "d", "seen": text_of(A)}, content_type="application/json")
    assert created.status_code == 201 and Reader.objects.get(url="d").seen == A
    for word, urls in ("a", ["c", "d"]), ("b", ["c"]), ("z", []):
        found = client.get("/api/readers/", {"search": word}).json()
        assert [reader["url"] for reader in found] == urls, word

    # The form of the API's pages, which shows the text of filters.
    page_of_form = client.get(page, HTTP_ACCEPT="text/html")
    assert page_of_form.status_code == 200 and text_of(B) in page_of_form.content.decode()
    form = {"url": "e", "number": "7", "seen": text_of(B), "fixed": text_of(A), "made": text_of(A)}
    assert client.post("/api/readers/", form).status_code == 201
    Reader.objects.all().delete()


def transactions_undo_filters():
    from django.db import transaction
    from shop.models import Reader

    reader = Reader.objects.create(url="a", seen=A)
    try:
        with transaction.atomic():
            reader.seen = B
            reader.save()
            raise ArithmeticError
    except ArithmeticError:
        reader.refresh_from_db()
    assert reader.seen == A
    reader.delete()


def main(folder):
    set_up(folder)
    nothing_is_left_to_migrate(folder)
    elements_have_the_type_of_their_kind()
    members_of_enumerations_are_refused()
    lazy_values_are_what_they_stand_for()
    filters_are_generated()
    other_lookups_are_refused()
    the_lookup_takes_expressions()
    filters_are_values_in_expressions()
    the_database_fills_in_defaults()
    wrong_values_are_validation_errors()
    serializers_keep_filters()
    forms_leave_filters_alone()
    the_admin_leaves_filters_alone()
    the_admin_finds_and_shows_filters()
    the_admin_is_checked()
    rest_reads_and_writes_filters()
    transactions_undo_filters()
    arrays_are_lists_however_they_are_read()


if __name__ == "__main__":
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
