"""Alembic: what autogenerate should know of filters. In env.py: `context.configure(…, **pg_bloom.alembic.options)`."""

from typing import Any

from alembic.autogenerate.render import _repr_type

from .sqlalchemy import Bloom, BloomArray, CountingBloom

__all__ = ["include_object", "options", "render_item"]


def include_object(object: Any, name: Any, type_: str, reflected: bool, compare_to: Any) -> bool:
    """Leaves out the tables of filter sets, which no model describes."""
    checks = object.constraints if type_ == "table" and reflected else []
    return not any("bloom_set_check(" in str(getattr(check, "sqltext", "")) for check in checks)


def render_item(type_: str, obj: Any, autogen_context: Any) -> Any:
    """Writes the type of filters, and its import, into a migration."""
    if type_ != "type" or not isinstance(obj, (Bloom, BloomArray, CountingBloom)):
        return False
    autogen_context.imports.add(f"from pg_bloom.sqlalchemy import {type(obj).__name__}")
    rendered = repr(obj)
    for dialect, variant in obj._variant_mapping.items():
        rendered += f".with_variant({_repr_type(variant, autogen_context)}, {dialect!r})"
    return rendered


options = {"include_object": include_object, "render_item": render_item}
"""What `context.configure` gets."""
