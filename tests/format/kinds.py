"""Key kinds and their names: sections 2 and 3 of docs/format.md in plain Python.

A kind without a name is a string, as in the table of key kinds. The others say what they are made of:

    {"other": ["pg_catalog", "inet"]}                                   schema and name of the type; with "encoding": "LATIN1"
                                                                        if the name of the kind ends with one, and with
                                                                        "function": ["s", "f"], "takes": ["s", "t"] if
                                                                        it has the function that hashes values
    {"array": kind}
    {"row": ["public", "r"], "columns": [["a", "integer"], ["b", kind]]}
    {"range": ["pg_catalog", "int4range"], "of": "integer"}
    {"multirange": ["pg_catalog", "int4multirange"], "of": "integer"}
"""

import re

from hashes import xxh64

KINDS = {
    0: "none",
    1: "integer",
    2: "text",
    3: "bytea",
    4: "float",
    5: "numeric",
    6: "uuid",
    7: "date",
    8: "timestamp",
    9: "timestamptz",
    10: "boolean",
    11: "other",
    12: "time",
    13: "timetz",
    14: "interval",
    15: "pg_lsn",
    16: "xid8",
    17: "jsonb",
    18: "array",
    19: "row",
    20: "range",
    21: "multirange",
    32: "parquet INT32",
    33: "parquet INT64",
    34: "parquet FLOAT",
    35: "parquet DOUBLE",
    36: "parquet BYTE_ARRAY",
    37: "parquet FIXED_LEN_BYTE_ARRAY(16)",
    38: "parquet DATE",
    39: "parquet TIMESTAMP_MICROS",
    40: "parquet TIMESTAMP_MICROS (UTC)",
}
NONE = 0
CODES = {name: code for code, name in KINDS.items()}
NAMED = {CODES[name] for name in ("other", "array", "row", "range", "multirange")}
HAS_PARQUET_FORM = {1, 2, 3, 4, 6, 7, 8, 9}
MAX_NAME = 512


def allowed(code, layout):
    """Whether a layout may have a kind."""
    return code not in HAS_PARQUET_FORM if layout == "parquet" else code < 32


def sort(kind):
    """What the table calls a kind."""
    return kind if isinstance(kind, str) else next(name for name in kind if name in CODES)


def called(kind):
    """What a kind is called: by its name if it has one."""
    if isinstance(kind, str):
        return kind
    what = sort(kind)
    if what == "array":
        return fit(f"array of {called(kind['array'])}")
    name = ".".join(map(quoted, kind[what]))
    if what == "other":
        if "function" in kind:
            function, takes = (".".join(map(quoted, kind[key])) for key in ("function", "takes"))
            name = f"{name}@{function}({takes})"
        return fit(f"{name}@{kind['encoding']}" if "encoding" in kind else name)
    if what == "row":
        columns = (f"{quoted(column)} {called(part)}" for column, part in kind["columns"])
        return fit(f"{name}({', '.join(columns)})")
    return fit(f"{name} of {called(kind['of'])}")


def quoted(name):
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


def fit(name):
    """A name that is too long is cut, and the hash of all of it follows."""
    data = name.encode()
    if len(data) <= MAX_NAME:
        return name
    return f"{data[: MAX_NAME - 17].decode(errors='ignore')}#{xxh64(data):016x}"


def stored_name(kind):
    """The bytes of a kind's name, if it has one."""
    return b"" if isinstance(kind, str) else called(kind).encode()
