"""Golden vectors for readers in other languages, tests/format/vectors.json. The server and the package of python/ make the
same values, and the reader of tests/format, which follows docs/format.md alone, gives the same answers. With --write the
server's values are written into the file."""

import json
import sys
from pathlib import Path

import psycopg

import pg_bloom

FORMAT = Path(__file__).parent.parent / "format"
FILE = FORMAT / "vectors.json"
sys.path.insert(0, str(FORMAT))

from hashes import xxh64  # noqa: E402
from members import scalar  # noqa: E402
from reader import ask  # noqa: E402
from stored import Filter as StoredFilter  # noqa: E402

# For each kind the type in SQL, and elements: as SQL writes them, and as tests/format/elements.py reads them.
ELEMENTS = {
    "integer": ("bigint", {text: text for text in ("0", "1", "-1", "42", "9223372036854775807", "-9223372036854775808")}),
    "text": ("text", {f"'{text}'": text for text in ("", "a", "é€😀", "https://example.com/1", "a" * 100)}),
    "bytea": ("bytea", {f"'\\x{text}'": text for text in ("", "00", "ff" * 33)}),
    "float": ("float8", {"0": "0", "'-0'": "-0", "1.5": "1.5", "-1e300": "-1e300", "'NaN'": "NaN", "'Infinity'": "Infinity"}),
    "numeric": ("numeric", {"0.00": "0", "1.50": "1.5", "1e20": "100000000000000000000", "-0.001": "-0.001", "'NaN'": "NaN"}),
    "uuid": ("uuid", {f"'{text}'": text for text in ("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")}),
    "date": ("date", {f"'{text}'": text for text in ("1970-01-01", "2026-02-28", "infinity")}),
    "timestamp": ("timestamp", {f"'{text}'": text for text in ("1970-01-01 00:00:00", "2026-02-28 12:34:56.789012")}),
    "timestamptz": ("timestamptz", {"'1970-01-01 00:00+00'": "0", "'2026-02-28 12:34:56.789012+02'": "1772274896789012"}),
    "boolean": ("boolean", {"true": "t", "false": "f"}),
    "time": ("time", {"'00:00'": "0", "'24:00'": "86400000000"}),
    "timetz": ("timetz", {"'00:00+00'": "0 0", "'12:00-07'": "43200000000 25200"}),
    "interval": ("interval", {"'1 month'": "1 0 0", "'-1 day 2 us'": "0 -1 2"}),
    "pg_lsn": ("pg_lsn", {"'1/2'": "4294967298"}),
    "xid8": ("xid8", {"'18446744073709551615'": "18446744073709551615"}),
    "jsonb": ("jsonb", {"'{\"b\": [1.0, null], \"a\": \"é\\n\"}'": '{"b": [1.0, null], "a": "é\\n"}'}),
}  # fmt: skip
LAYOUTS = "blocked", "classic", "parquet"
# Parquet's integers and floats of four bytes are kinds of their own; these have eight.
PARQUET_WIDTHS = {"integer": {1, 4}, "float": {1, 4}}


def vectors_of_server(conn):
    """What the file has: elements with their canonical bytes and hashes, and filters with answers."""
    elements, filters = [], []
    for kind, (sql_type, texts) in ELEMENTS.items():
        for sql, text in texts.items():
            elements.append(element_vector(conn, kind, sql_type, sql, text))
        for layout in LAYOUTS:
            array = f"ARRAY[{', '.join(texts)}]::{sql_type}[]"
            sql = f"bloom_from_array({array}, 100, 0.01, '{layout}')"
            filters.append(filter_vector(conn, sql, kind, list(texts.values()), []))
    for layout in LAYOUTS:
        for fpr in 0.1, 0.001:
            array = "ARRAY(SELECT i::text FROM generate_series(1, 60) AS i)"
            sql = f"bloom_from_array({array}, 60, {fpr}, '{layout}')"
            held, others = range(1, 61), range(61, 100)
            filters.append(filter_vector(conn, sql, "text", [str(i) for i in held], [str(i) for i in others]))
    return {"elements": elements, "filters": filters}


def element_vector(conn, kind, sql_type, sql, text):
    canonical = scalar(kind, text, PARQUET_WIDTHS.get(kind))[1]
    hash = xxh64(canonical)
    # A filter of one element is a list of its hash.
    stored = stored_filter(conn, f"bloom_from_array(ARRAY[{sql}]::{sql_type}[], 100)")
    assert int.from_bytes(stored[-8:], "little") == hash, (kind, text)
    return {"kind": kind, "sql": f"{sql}::{sql_type}", "canonical": canonical.hex(), "hash": f"{hash:016x}"}


def filter_vector(conn, sql, kind, elements, others):
    stored = stored_filter(conn, sql)
    own = pg_bloom.Filter(stored)
    held = StoredFilter(stored)
    answers = {text: ask(held, kind, text.encode()) for text in elements + others}
    assert all(answers[text] for text in elements)
    if kind == "text":
        assert own.contains_many(list(answers)) == list(answers.values())
    return {
        "sql": sql,
        "kind": own.header.key_kind,
        "stored": stored.hex(),
        "contains": [text for text, answer in answers.items() if answer],
        "absent": [text for text, answer in answers.items() if not answer],
    }


def stored_filter(conn, sql):
    return conn.execute(f"SELECT {sql}::bytea").fetchone()[0]


if __name__ == "__main__":
    with psycopg.connect(autocommit=True) as conn:
        conn.execute("SET pg_bloom.overfill = ignore; SET timezone = 'UTC'")
        vectors = vectors_of_server(conn)
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(vectors, ensure_ascii=False, indent=1) + "\n")
    assert json.loads(FILE.read_text()) == vectors
