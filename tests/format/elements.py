"""Elements: from text to a value, and from a value to canonical bytes: section 3 of docs/format.md in plain Python.

The text of an element is, by its kind,

    integer, parquet INT32, parquet INT64   decimal
    text                                    the bytes, UTF-8
    bytea, parquet BYTE_ARRAY               hexadecimal, with or without \\x
    float, parquet DOUBLE                   decimal, NaN, Infinity, -Infinity; read as a 64-bit float
    parquet FLOAT                           the same, rounded to a 32-bit float
    numeric                                 decimal without an exponent, NaN, Infinity, -Infinity
    uuid                                    32 hexadecimal digits, hyphens ignored
    date                                    YYYY-MM-DD, with " BC" after it or not, or days since 1970-01-01
    timestamp                               YYYY-MM-DD HH:MM:SS[.ffffff][ BC], or microseconds since 1970-01-01
    timestamptz                             microseconds since 1970-01-01 UTC
    boolean                                 t or f
    time                                    microseconds since midnight
    timetz                                  the same, a space, seconds of the zone west of UTC
    interval                                months, days and microseconds, with spaces between
    pg_lsn, xid8                            decimal
    jsonb                                   JSON
    other                                   the type's 64-bit extended hash, decimal

Dates, timestamps and intervals may also be infinity or -infinity; parquet DATE and the like read as date and the like. What
is made of other elements is in members.py.
"""

import binascii
import decimal
import json
import re
import struct


class Senseless(Exception):
    """The question makes no sense."""


def unhex(digits, failure=Senseless):
    """The bytes that hexadecimal digits stand for, with or without \\x before them."""
    try:
        return binascii.unhexlify(digits[2:] if digits.startswith(b"\\x") else digits)
    except binascii.Error:
        raise failure("not an even number of hexadecimal digits") from None


# Elements: from text to a value


def no(what, text):
    return Senseless(f"no {what}: {text.decode(errors='replace')}")


def read_int(text, bits=64):
    if not re.fullmatch(rb"[+-]?[0-9]{1,20}", text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise no(f"{bits}-bit integer", text)
    return int(text)


def read_float(text):
    try:
        return float(text if b"_" not in text else b"")
    except ValueError:
        raise no("float", text) from None


def read_real(text):
    value = read_float(text)
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise no("32-bit float", text) from None


def read_numeric(text):
    if text in (b"NaN", b"Infinity", b"-Infinity"):
        return text
    parts = re.fullmatch(rb"([+-]?)([0-9]*)(?:\.([0-9]*))?", text)
    if not parts or not (parts[2] or parts[3]):
        raise no("numeric", text)
    whole, fraction = parts[2].lstrip(b"0") or b"0", (parts[3] or b"").rstrip(b"0")
    number = whole + (b"." + fraction if fraction else b"")
    return b"-" + number if parts[1] == b"-" and number != b"0" else number


def read_uuid(text):
    value = unhex(text.replace(b"-", b""))
    if len(value) != 16:
        raise no("uuid", text)
    return value


def read_boolean(text):
    if text not in (b"t", b"f"):
        raise no("boolean", text)
    return text == b"t"


def days(year, month, day):
    """Days from 1970-01-01 in the Gregorian calendar; the year before 1 is 0."""
    if month <= 2:
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469


def read_instant(text, what, pattern, bits):
    """An integer, an infinity, or the fields of a date that a pattern finds."""
    if text in (b"infinity", b"-infinity"):
        return 2 ** (bits - 1) - 1 if text == b"infinity" else -(2 ** (bits - 1))
    if re.fullmatch(rb"[+-]?[0-9]+", text):
        return read_int(text, bits)
    fields = pattern and re.fullmatch(pattern, text)
    if not fields:
        raise no(what, text)
    year, month, day = (int(fields[i]) for i in (1, 2, 3))
    return fields, days(1 - year if text.endswith(b" BC") else year, month, day)


DATE = rb"([0-9]{4,7})-([0-9]{2})-([0-9]{2})"


def read_date(text):
    value = read_instant(text, "date", DATE + rb"(?: BC)?", 32)
    return value[1] if isinstance(value, tuple) else value


def read_timestamp(text):
    pattern = DATE + rb" ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?(?: BC)?"
    value = read_instant(text, "timestamp", pattern, 64)
    if not isinstance(value, tuple):
        return value
    fields, day = value
    hours, minutes, seconds = (int(fields[i]) for i in (4, 5, 6))
    microseconds = int((fields[7] or b"").ljust(6, b"0"))
    since = (((day * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000 + microseconds
    return (since + 2**63) % 2**64 - 2**63


def read_unsigned(text):
    if not re.fullmatch(rb"[0-9]{1,20}", text) or int(text) >= 2**64:
        raise no("64-bit number", text)
    return int(text)


def read_interval(text):
    if text in (b"infinity", b"-infinity"):
        most = 2**31 - 1, 2**31 - 1, 2**63 - 1
        return most if text == b"infinity" else tuple(-n - 1 for n in most)
    parts = text.split(b" ")
    if len(parts) != 3:
        raise no("interval in months, days and microseconds", text)
    return read_int(parts[0], 32), read_int(parts[1], 32), read_int(parts[2])


def read_timetz(text):
    time, _, zone = text.partition(b" ")
    return read_int(time), read_int(zone, 32)


def read_json(text):
    try:
        return json.loads(text.decode(), parse_int=decimal.Decimal, parse_float=decimal.Decimal)
    except ValueError:
        raise no("JSON", text) from None


def read_timestamptz(text):
    return read_instant(text, "timestamptz in microseconds", None, 64)
# How each kind of element is read, and which kinds of filters it may ask.
ELEMENTS = {
    "integer": (read_int, {1, 32, 33}),
    "text": (bytes, {2, 36}),
    "bytea": (unhex, {3, 36}),
    "float": (read_float, {4, 34, 35}),
    "numeric": (read_numeric, {5}),
    "uuid": (read_uuid, {6, 37}),
    "date": (read_date, {7, 38}),
    "timestamp": (read_timestamp, {8, 39}),
    "timestamptz": (read_timestamptz, {9, 40}),
    "boolean": (read_boolean, {10}),
    "other": (read_int, {11}),
    "time": (read_int, {12}),
    "timetz": (read_timetz, {13}),
    "interval": (read_interval, {14}),
    "pg_lsn": (read_unsigned, {15}),
    "xid8": (read_unsigned, {16}),
    "jsonb": (read_json, {17}),
    "parquet INT32": (lambda text: read_int(text, 32), {32, 33}),
    "parquet INT64": (read_int, {32, 33}),
    "parquet FLOAT": (read_real, {34, 35}),
    "parquet DOUBLE": (read_float, {34, 35}),
    "parquet BYTE_ARRAY": (unhex, {36}),
    "parquet FIXED_LEN_BYTE_ARRAY(16)": (read_uuid, {37}),
    "parquet DATE": (read_date, {38}),
    "parquet TIMESTAMP_MICROS": (read_timestamp, {39}),
    "parquet TIMESTAMP_MICROS (UTC)": (read_timestamptz, {40}),
}


# Elements: from a value to canonical bytes. None is an element that no filter of the kind can hold.


def float64(value):
    return struct.pack("<Q", 0x7FF8000000000000) if value != value else struct.pack("<d", value + 0.0)


def float32(value):
    if value != value:
        return struct.pack("<I", 0x7FC00000)
    try:
        narrow = struct.pack("<f", value + 0.0)
    except OverflowError:
        return None
    return narrow if struct.unpack("<f", narrow)[0] == value else None


def int32(value):
    return struct.pack("<i", value) if -(2**31) <= value < 2**31 else None


def int64(value):
    return struct.pack("<q", value)


def jsonb(value):
    """Compact JSON of which there is one for equal values."""
    if isinstance(value, decimal.Decimal):
        return read_numeric(format(value, "f").encode())
    if isinstance(value, list):
        return b"[" + b",".join(jsonb(element) for element in value) + b"]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return b"{" + b",".join(jsonb(key) + b":" + jsonb(value[key]) for key in keys) + b"}"
    return json.dumps(value, ensure_ascii=False).encode()


def interval(value):
    months, days, microseconds = value
    return ((months * 30 + days) * 86_400_000_000 + microseconds).to_bytes(16, "little", signed=True)


CANONICAL = {
    **dict.fromkeys((1, 8, 9, 11, 12, 33, 39, 40), int64),
    **dict.fromkeys((15, 16), lambda value: struct.pack("<Q", value)),
    13: lambda value: struct.pack("<qi", *value),
    14: interval,
    17: jsonb,
    **dict.fromkeys((7, 32, 38), int32),
    **dict.fromkeys((2, 3, 5, 6, 36, 37), bytes),
    **dict.fromkeys((4, 35), float64),
    34: float32,
    10: lambda value: bytes([value]),
}
