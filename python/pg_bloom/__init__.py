"""Bloom filters of the PostgreSQL extension pg_bloom, read, asked and built in Python."""

from ._core import Filter, Header, OverfullWarning

__all__ = ["Filter", "Header", "OverfullWarning"]
