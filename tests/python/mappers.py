"""Migrations, as projects run them: after an upgrade by Alembic or Django there is nothing left to migrate."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config

ENV = """
from alembic import context
from sqlalchemy import NullPool, create_engine
import pg_bloom.alembic
import models

with create_engine("postgresql+psycopg://", poolclass=NullPool).connect() as connection:
    context.configure(
        connection=connection, target_metadata=models.metadata, include_schemas=True, **pg_bloom.alembic.options
    )
    with context.begin_transaction():
        context.run_migrations()
"""

MODELS = """
from sqlalchemy import BigInteger, Column, Identity, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY
from pg_bloom.sqlalchemy import Bloom, bloom_index

metadata = MetaData()
Table(
    "readers",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("url", Text),
    Column("tags", ARRAY(Text)),
    Column("seen", Bloom, nullable=False),
    Column("days", ARRAY(Bloom)),
    bloom_index("readers_url", "url", fpr=0.001, pages_per_range=16),
    bloom_index("readers_parts", "url", ops={"url": "text_ngram_ops"}),
    bloom_index("readers_tags", "tags", ops={"tags": "array_ops"}),
    bloom_index("readers_seen", "seen"),
)
Table("writers", metadata, Column("id", BigInteger, primary_key=True), Column("seen", Bloom), schema="app")
"""

DJANGO = """
from django.contrib.postgres.fields import ArrayField
from django.db import models
from pg_bloom import Filter
from pg_bloom.django import BloomArrayField, BloomField, BloomFilterIndex

def nothing():
    return Filter.build([])

class Reader(models.Model):
    url = models.TextField()
    tags = ArrayField(models.TextField())
    seen = BloomField(null=True)
    fixed = BloomField(default=Filter.build(["'", "a"], 10))
    made = BloomField(default=nothing)
    days = BloomArrayField(default=list)

    class Meta:
        indexes = [
            BloomFilterIndex(fields=["url"], name="url", with_={"fpr": 0.001, "pages_per_range": 16}),
            BloomFilterIndex(fields=["url"], name="parts", opclasses=["text_ngram_ops"]),
            BloomFilterIndex(fields=["tags"], name="tags", opclasses=["array_ops"]),
            BloomFilterIndex(fields=["seen"], name="seen"),
        ]
"""


SETTINGS = """
import os
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}}
INSTALLED_APPS = ["shop"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""


def alembic(folder):
    (folder / "env.py").write_text(ENV)
    (folder / "models.py").write_text(MODELS)
    (folder / "versions").mkdir()
    (folder / "script.py.mako").write_text(
        "from alembic import op\nimport sqlalchemy as sa\n${imports or ''}\nrevision = ${repr(up_revision)}\n"
        "down_revision = ${repr(down_revision)}\n\ndef upgrade():\n    ${upgrades}\n\ndef downgrade():\n    ${downgrades}\n"
    )
    with psycopg.connect(autocommit=True) as conn:
        conn.execute("CREATE SCHEMA app; SELECT bloom_set_create('app.crawled', 'text', 1000)")
    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "os")
    with contextlib.redirect_stdout(io.StringIO()):
        command.revision(config, "first", autogenerate=True)
        command.upgrade(config, "head")
        command.check(config)
        command.downgrade(config, "base")
        command.upgrade(config, "head")
        command.check(config)


def django(folder):
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "models.py").write_text(DJANGO)

    (folder / "settings.py").write_text(SETTINGS)
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    import django
    from django.core import serializers
    from django.core.management import call_command
    from django.db import connection
    from django.forms import modelform_factory

    django.setup()
    call_command("makemigrations", "shop", verbosity=0)
    migration = folder / "shop" / "migrations" / "0001_initial.py"
    text = migration.read_text()
    migration.write_text(
        text.replace("operations = [", "operations = [\n        pg_bloom.django.BloomExtension(),", 1)
    )
    call_command("migrate", verbosity=0)
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    if django.VERSION >= (5,):
        defaults_of_the_database(folder)

    from pg_bloom import Filter
    from shop.models import Reader

    seen = Filter.build(["a"], 100)
    Reader.objects.create(url="a", tags=["x"], seen=seen)
    Reader.objects.create(url="b", tags=[], seen=None)
    Reader.objects.filter(url="a").update(days=[seen, None])
    assert [reader.days for reader in Reader.objects.order_by("url")] == [[seen, None], []]
    assert Reader.objects.get(days__contains=[seen]).days == [seen, None] == Reader.objects.get(days__0=seen).days
    assert [reader.seen for reader in Reader.objects.order_by("url")] == [seen, None]
    reader = Reader.objects.get(url="b")
    reader.full_clean(exclude=["tags", "seen", "days"])
    assert "'" in reader.fixed and reader.made == Filter.build([])
    assert "seen" not in modelform_factory(Reader, fields="__all__").base_fields
    for work in lambda: Reader(seen=5).save(), lambda: Reader.objects.filter(seen="\\x00"):
        try:
            work()
        except (TypeError, ValueError):
            continue
        raise AssertionError("what is no filter is taken")
    assert Reader.objects.get(seen=seen).url == "a"
    from django.db.models import F

    assert Reader.objects.get(seen__may_contain=F("url")).url == "a"
    from pg_bloom.django import BloomAgg

    urls = Reader.objects.aggregate(urls=BloomAgg("url", 1000, 0.001))["urls"]
    assert urls.header.capacity == 1000 and "a" in urls
    try:
        BloomAgg("url", capacity=1000)
    except TypeError as error:
        assert "capacity" in str(error)
    else:
        raise AssertionError("a capacity that would be ignored is taken")
    copies = list(serializers.deserialize("json", serializers.serialize("json", Reader.objects.all())))
    assert {copy.object.seen for copy in copies} == {seen, None}
    with connection.cursor() as cursor:
        cursor.execute("SELECT amname, reloptions FROM pg_class AS c JOIN pg_am AS a ON a.oid = relam WHERE relname = 'url'")
        assert cursor.fetchone() == ("bloom_filter", ["fpr=0.001", "pages_per_range=16"])
    connection.close()


def defaults_of_the_database(folder):
    """A later migration, by programs of their own."""
    models = folder / "shop" / "models.py"
    field = "    more = BloomField(db_default=Filter.build([7], 10))"
    models.write_text(models.read_text().replace("    class Meta", f"{field}\n\n    class Meta"))
    for arguments in ["makemigrations", "shop"], ["migrate"], ["makemigrations", "--check"]:
        subprocess.run([sys.executable, "-m", "django", *arguments, "--verbosity=0"], check=True, cwd=folder)


for work in alembic, django:
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        work(Path(folder))
        sys.path.remove(folder)
