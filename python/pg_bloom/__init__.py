"""Bloom filters of the PostgreSQL extension pg_bloom, read, asked and built in Python."""

from typing import Any

from ._core import Filter, Header, OverfullWarning

__all__ = ["Filter", "Header", "OverfullWarning"]


def _type_in_sqlalchemy(_filter: Filter) -> Any:
    """SQLAlchemy asks a value for its type where an expression takes one, also before the adapter was imported."""
    from .sqlalchemy import Bloom

    return Bloom()


Filter.__sa_type_engine__ = property(_type_in_sqlalchemy)  # type: ignore[attr-defined]
