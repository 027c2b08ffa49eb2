"""Elements of every kind, those included that are made of others: section 3 of docs/format.md in plain Python.

A kind is written as in kinds.py. An element of a kind that is made of others is, in JSON,

    an array              nested lists of its elements; {"array": […]} where it is itself within an array, and
                          {"array": […], "lower": [0, 1]} with lower bounds that are not 1
    a row                 {"row": […]}, its columns
    a range               {"range": "empty"} or {"range": ["[)", lower, upper]}, a bound being null where there is none
    a multirange          {"multirange": [[…], […]]}, ranges as they are above, in ascending order

whose parts are texts as in elements.py, more of these, or null.
"""

import struct

from elements import CANONICAL, ELEMENTS, Senseless
from hashes import xxh64
from kinds import CODES, allowed, called, sort

EMPTY, LOWER_IN, UPPER_IN, NO_LOWER, NO_UPPER = 1, 2, 4, 8, 16


def scalar(kind, text, codes=None):
    """The code that a kind gets of some that its elements may have, and the canonical bytes of an element."""
    if sort(kind) not in ELEMENTS or not isinstance(text, str):
        raise Senseless(f"no element of kind {called(kind)}: {text}")
    read, own = ELEMENTS[sort(kind)]
    # The Parquet kind of a number is that of its own width.
    code = min(sorted(own if codes is None else own & codes), key=lambda code: code != CODES[sort(kind)])
    return code, CANONICAL[code](read(text.encode()))


def is_composite(kind):
    return sort(kind) in COMPOSITES


def composite(kind, value):
    return COMPOSITES[sort(kind)](kind, value)


def member(kind, value):
    if value is None:
        return b"\0"
    if is_composite(kind):
        return b"\1" + composite(kind, value)
    _, data = scalar(kind, value)
    return b"\1" + struct.pack("<Q", len(data)) + data


def array(kind, value):
    nested = value["array"] if isinstance(value, dict) else value
    lengths, elements = [], [nested]
    while elements and isinstance(elements[0], list):
        lengths.append(len(elements[0]))
        elements = [element for inner in elements for element in inner]
    if not elements:
        return struct.pack("<I", 0)
    lower = value.get("lower") if isinstance(value, dict) else None
    dimensions = zip(lengths, lower or [1] * len(lengths))
    start = struct.pack("<I", len(lengths)) + b"".join(struct.pack("<ii", *dimension) for dimension in dimensions)
    return start + b"".join(member(kind["array"], element) for element in elements)


def row(kind, value):
    if len(value["row"]) != len(kind["columns"]):
        raise Senseless(f"{len(value['row'])} columns, not {len(kind['columns'])}")
    return b"".join(member(part, column) for (_, part), column in zip(kind["columns"], value["row"]))


def bounds(kind, bounds):
    if bounds == "empty":
        return bytes([EMPTY])
    brackets, lower, upper = bounds
    flags = LOWER_IN if brackets[0] == "[" else 0
    flags |= UPPER_IN if brackets[1] == "]" else 0
    flags |= (NO_LOWER if lower is None else 0) | (NO_UPPER if upper is None else 0)
    return bytes([flags]) + b"".join(member(kind["of"], bound) for bound in (lower, upper) if bound is not None)


def multirange(kind, value):
    ranges = value["multirange"]
    return struct.pack("<I", len(ranges)) + b"".join(bounds(kind, one) for one in ranges)


COMPOSITES = {
    "array": array,
    "row": row,
    "range": lambda kind, value: bounds(kind, value["range"]),
    "multirange": multirange,
}


def hash_of(kind, layout, value):
    """The code of a kind in a layout, and the hash of an element of it."""
    if is_composite(kind):
        return CODES[sort(kind)], xxh64(composite(kind, value))
    code, data = scalar(kind, value, {code for code in CODES.values() if allowed(code, layout)})
    return code, xxh64(data)
