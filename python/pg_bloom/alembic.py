"""Alembic: what autogenerate should know of filters. In env.py: `context.configure(…, **pg_bloom.alembic.options)`."""

from typing import Any

from .sqlalchemy import Bloom, BloomArray

__all__ = ["include_object", "options", "render_item"]


def include_object(object: Any, name: Any, type_: str, reflected: bool, compare_to: Any) -> bool:
    """Leaves out the tables of filter sets, which no model describes."""
    checks = object.constraints if type_ == "table" and reflected else []
    return not any("bloom_set_check(" in str(getattr(check, "sqltext", "")) for check in checks)


def render_item(type_: str, obj: Any, autogen_context: Any) -> Any:
    """Writes the type of filters, and its import, into a migration."""
    if type_ != "type" or not isinstance(obj, (Bloom, BloomArray)):
        return False
    name = type(obj).__name__
    autogen_context.imports.add(f"from pg_bloom.sqlalchemy import {name}")
    return f"{name}()"


options = {"include_object": include_object, "render_item": render_item}
