from django.contrib.postgres.fields import ArrayField
from django.db import models

from pg_bloom import Filter
from pg_bloom.django import BloomArrayField, BloomField, BloomFilterIndex


def nothing():
    return Filter.build([], 100)


class Reader(models.Model):
    url = models.TextField(null=True)
    tags = ArrayField(models.TextField(), null=True, blank=True)
    number = models.IntegerField(default=7)
    seen = BloomField(null=True, blank=True)
    fixed = BloomField(default=Filter.build(["'", "a"], 10))
    made = BloomField(default=nothing)
    days = BloomArrayField(default=list, blank=True)

    class Meta:
        indexes = [
            BloomFilterIndex(fields=["url"], name="url", with_={"fpr": 0.001, "pages_per_range": 16}),
            BloomFilterIndex(fields=["url"], name="parts", opclasses=["text_ngram_ops"]),
            BloomFilterIndex(fields=["tags"], name="tags", opclasses=["array_ops"]),
            BloomFilterIndex(fields=["seen"], name="seen"),
        ]


class Required(models.Model):
    """Its filters have no default."""

    name = models.TextField()
    seen = BloomField()
    days = BloomArrayField()


class Visit(models.Model):
    reader = models.ForeignKey(Reader, models.CASCADE)
    note = models.TextField()
    seen = BloomField(null=True, blank=True)
