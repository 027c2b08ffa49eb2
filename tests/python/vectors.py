"""Golden vectors for readers in other languages, tests/format/vectors.json: the server and the package of python/ make the
same values, and the reader of tests/format, which follows docs/format.md alone, gives the same answers. With --write the
server's values are written into the file."""

import json
import sys
from pathlib import Path

FORMAT = Path(__file__).parent.parent / "format"
FILE = FORMAT / "vectors.json"
sys.path.insert(0, str(FORMAT))

import psycopg  # noqa: E402
from hashes import xxh64  # noqa: E402
from members import scalar  # noqa: E402
from reader import ask  # noqa: E402
from stored import Filter as Read  # noqa: E402

import pg_bloom  # noqa: E402

# The type, and elements as SQL and as tests/format/elements.py reads them.
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


def vectors(conn):
    """What the file has, from the server."""
    elements, filters = [], []
    for kind, (sql_type, texts) in ELEMENTS.items():
        for sql, text in texts.items():
            canonical = scalar(kind, text, None if kind not in ("integer", "float") else {1, 4})[1]
            stored = conn.execute(f"SELECT bloom_from_array(ARRAY[{sql}]::{sql_type}[], 100)::bytea").fetchone()[0]
            assert int.from_bytes(stored[-8:], "little") == xxh64(canonical), (kind, text)
            hash = f"{xxh64(canonical):016x}"
            elements.append({"kind": kind, "sql": f"{sql}::{sql_type}", "canonical": canonical.hex(), "hash": hash})
        for layout in LAYOUTS:
            array = f"ARRAY[{', '.join(texts)}]::{sql_type}[]"
            filters.append(filter_of(conn, f"bloom_from_array({array}, 100, 0.01, '{layout}')", kind, list(texts.values()), []))
    for layout in LAYOUTS:
        for fpr in 0.1, 0.001:
            array = "ARRAY(SELECT i::text FROM generate_series(1, 60) AS i)"
            sql = f"bloom_from_array({array}, 60, {fpr}, '{layout}')"
            filters.append(filter_of(conn, sql, "text", [str(i) for i in range(1, 61)], [str(i) for i in range(61, 100)]))
    return {"elements": elements, "filters": filters}


def filter_of(conn, sql, kind, elements, others):
    stored = conn.execute(f"SELECT {sql}::bytea").fetchone()[0]
    held = Read(stored)
    answers = {text: ask(held, kind, text.encode()) for text in elements + others}
    assert all(answers[text] for text in elements)
    if kind == "text":
        own = pg_bloom.Filter(stored)
        assert own.contains_many(list(answers)) == list(answers.values())
    return {
        "sql": sql,
        "kind": own_kind(stored),
        "stored": stored.hex(),
        "contains": [text for text, answer in answers.items() if answer],
        "absent": [text for text, answer in answers.items() if not answer],
    }


def own_kind(stored):
    return pg_bloom.Filter(stored).header.key_kind


with psycopg.connect(autocommit=True) as conn:
    conn.execute("SET pg_bloom.overfill = ignore; SET timezone = 'UTC'")
    made = vectors(conn)
if "--write" in sys.argv:
    FILE.write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n")
assert json.loads(FILE.read_text()) == made
