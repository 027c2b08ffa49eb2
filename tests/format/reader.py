#!/usr/bin/env python3
"""Reads stored Bloom filters, of both types: a second implementation of docs/format.md, in plain Python and for clarity, not speed.

usage: reader.py              answers questions
       reader.py --describe   prints headers

Standard input has one question a line, three columns separated by tabs: a stored value in hexadecimal, with or without
\\x before it; the kind of the element; the element as text, up to the end of the line. For each line the answer is t
(the element may be in the filter) or f (it is not). With --describe only the first column is read, and the fields of
its header are printed.

A kind is "integer", "text" and so on as in the table of key kinds, or the name of a type that the filter has for its
kind "other". The general kinds may ask filters of the Parquet kinds that hold the same SQL types. Elements are written
like this:

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
    time, interval                          microseconds, decimal
    timetz                                  microseconds, a space, seconds of the zone west of UTC
    pg_lsn, xid8                            decimal
    jsonb                                   JSON
    array of any of these                   a JSON array, nested as deep as it has dimensions, of such texts in strings, and
                                            null; all lower bounds are 1
    other                                   the type's 64-bit extended hash, decimal

Dates and timestamps may also be infinity or -infinity; parquet DATE and the like read as date and the like.

The exit status is 1, after a message, when a value is damaged or a question makes no sense.
"""

import binascii
import bisect
import decimal
import json
import re
import struct
import sys

MASK = 2**64 - 1
HEADER = struct.Struct("<BBBBBBHQQQdI")
MAX_BYTES = 511 * 1024 * 1024
MAX_NAME = 512

LAYOUTS = {1: "blocked", 2: "classic", 3: "parquet"}
BLOCK_BITS = {"blocked": 512, "classic": 1, "parquet": 256}
MAX_BLOCKS = {"blocked": MAX_BYTES * 8 // 512, "classic": MAX_BYTES * 8, "parquet": 2**31 - 1}
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
NONE, OTHER, ARRAY = 0, 11, 18
NAMED = {11, 18, 19, 20, 21}
COUNTERS = 2
HAS_PARQUET_FORM = {1, 2, 3, 4, 6, 7, 8, 9}


class Damaged(Exception):
    """The stored value is not one that pg_bloom writes."""


class Senseless(Exception):
    """The question makes no sense."""


# Hashes


def rotate(x, n):
    return (x << n | x >> (64 - n)) & MASK


PRIME = [0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5]


def xxh64_round(lane, word):
    return rotate((lane + word * PRIME[1]) & MASK, 31) * PRIME[0] & MASK


def xxh64(data, seed=0):
    whole, at = len(data) // 32 * 32, 0
    if whole:
        lanes = [(seed + PRIME[0] + PRIME[1]) & MASK, (seed + PRIME[1]) & MASK, seed, (seed - PRIME[0]) & MASK]
        for words in struct.iter_unpack("<4Q", data[:whole]):
            lanes = [xxh64_round(lane, word) for lane, word in zip(lanes, words)]
        h = sum(rotate(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            h = ((h ^ xxh64_round(0, lane)) * PRIME[0] + PRIME[3]) & MASK
        at = whole
    else:
        h = (seed + PRIME[4]) & MASK
    h = (h + len(data)) & MASK
    while len(data) - at >= 8:
        (word,) = struct.unpack_from("<Q", data, at)
        h = (rotate(h ^ xxh64_round(0, word), 27) * PRIME[0] + PRIME[3]) & MASK
        at += 8
    if len(data) - at >= 4:
        (word,) = struct.unpack_from("<I", data, at)
        h = (rotate(h ^ word * PRIME[0] & MASK, 23) * PRIME[1] + PRIME[2]) & MASK
        at += 4
    for byte in data[at:]:
        h = rotate(h ^ byte * PRIME[4] & MASK, 11) * PRIME[0] & MASK
    h = (h ^ h >> 33) * PRIME[1] & MASK
    h = (h ^ h >> 29) * PRIME[2] & MASK
    return h ^ h >> 32


def word(h, j):
    """The j-th word of SplitMix64 seeded with the hash."""
    z = (h + (j + 1) * 0x9E3779B97F4A7C15) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def reduce(x, n):
    return x * n >> 64


# Which bits of a dense payload an element sets

SALT = [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31]


def positions(layout, blocks, hashes, h):
    if layout == "blocked":
        block = reduce(h, blocks)
        return [512 * block + (word(h, i // 7) >> 9 * (i % 7) & 511) for i in range(hashes)]
    if layout == "classic":
        return [reduce(word(h, j), blocks) for j in range(hashes)]
    block = (h >> 32) * blocks >> 32
    return [256 * block + 32 * i + ((h & 0xFFFFFFFF) * SALT[i] % 2**32 >> 27) for i in range(8)]


# Stored values


def check(number, holds, detail):
    if not holds:
        raise Damaged(f"check {number}: {detail}")


class Filter:
    """A stored value; making one checks it in the order of docs/format.md."""

    def __init__(self, data):
        check(1, len(data) >= HEADER.size, f"{len(data)} bytes where a header has {HEADER.size}")
        check(2, len(data) <= MAX_BYTES, f"{len(data)} bytes are too many")
        fields = HEADER.unpack_from(data)
        self.version, layout, self.kind, self.representation, self.hashes, self.hash_id, name_length = fields[:7]
        self.blocks, self.base_blocks, self.capacity, self.fpr, self.reserved = fields[7:]
        check(3, self.version == 1, f"format version {self.version} is unknown")
        check(4, layout in LAYOUTS, f"layout {layout} is unknown")
        self.layout = LAYOUTS[layout]
        check(5, self.kind in KINDS, f"key kind {self.kind} is unknown")
        allowed = self.kind not in HAS_PARQUET_FORM if self.layout == "parquet" else self.kind < 32
        check(6, allowed, f"layout {self.layout} has no elements of kind {KINDS[self.kind]}")
        check(7, self.representation in (0, 1, 2), f"representation {self.representation} is unknown")
        check(8, self.hash_id == 1, f"hash function {self.hash_id} is unknown")
        check(9, self.reserved == 0, f"reserved bytes are {self.reserved}, not 0")
        least = 1e-6 if self.layout == "parquet" else 1e-9
        check(10, least <= self.fpr <= 0.5, f"false positive rate is {self.fpr}")
        start = self.read_name(data, name_length)
        self.check_shape(start)
        self.payload = data[start:]
        if self.representation == COUNTERS:
            self.check_counters()
            return
        if self.representation == 1:
            self.check_dense_length()
        else:
            self.check_sparse_length()
        self.check_elements()

    def read_name(self, data, length):
        fits = (length > 0) == (self.kind in NAMED) and length <= MAX_NAME
        check(11, fits, f"a name of {length} bytes for kind {KINDS[self.kind]}")
        start = HEADER.size + (length + 7) // 8 * 8
        check(12, start <= len(data), "the name of its elements' type is cut off")
        name, padding = data[HEADER.size : HEADER.size + length], data[HEADER.size + length : start]
        check(13, not any(padding), "padding is not zero")
        check(14, b"\0" not in name and is_utf8(name), "the name of its elements' type is not UTF-8")
        self.name = name
        return start

    def check_shape(self, start):
        if self.blocks == 0:
            nothing = self.base_blocks == 0 and self.capacity == 0 and self.hashes == 0
            check(15, nothing, "no blocks, but base blocks, a capacity or hashes")
            self.dense_bytes = 0
            return
        least, most = (8, 8) if self.layout == "parquet" else (1, 64)
        check(16, least <= self.hashes <= most, f"{self.hashes} hashes in layout {self.layout}")
        self.dense_bytes = (self.blocks * BLOCK_BITS[self.layout] + 7) // 8
        fits = self.blocks <= MAX_BLOCKS[self.layout] and start + self.dense_bytes <= MAX_BYTES
        check(17, fits, f"{self.blocks} blocks are too many")
        divides = self.base_blocks > 0 and self.blocks % self.base_blocks == 0
        check(18, divides, f"{self.blocks} blocks are no multiple of {self.base_blocks}")
        check(19, self.capacity < 2**63, f"capacity is {self.capacity}")

    def check_dense_length(self):
        length = len(self.payload)
        check(20, self.blocks > 0, "a filter of no size is dense")
        check(21, length == self.dense_bytes, f"{length} bytes of bits, not {self.dense_bytes}")
        used = self.blocks * BLOCK_BITS[self.layout] - 8 * (length - 1)
        check(22, self.payload[-1] >> used == 0, "bits are set after the last")

    def check_sparse_length(self):
        length = len(self.payload)
        check(23, length % 8 == 0, f"{length} bytes of hashes are no multiple of 8")
        check(24, self.blocks == 0 or self.capacity > 0, "a sparse filter has capacity 0")
        check(25, self.blocks == 0 or length <= self.dense_bytes, f"{length // 8} hashes are too many to be sparse")
        check(26, self.kind != NONE or length == 0, "elements have no key kind")

    def check_elements(self):
        if self.representation == 0:
            self.list = [h for (h,) in struct.iter_unpack("<Q", self.payload)]
            ascending = all(a < b for a, b in zip(self.list, self.list[1:]))
            check(27, ascending, "hashes are not in ascending order")
        else:
            check(28, self.kind != NONE or not any(self.payload), "bits of elements without a key kind are set")
        check(29, self.blocks > 0 or not self.payload, "a filter of no size holds elements")
        check(30, self.blocks > 0 or self.kind == NONE, "a filter of no size has a key kind")
        check(31, self.blocks == 0 or self.capacity > 0, "capacity is 0")

    def check_counters(self):
        """The checks of section 11, of the type counting_bloom."""
        check("C1", self.layout == "blocked", f"counters in layout {self.layout}")
        check("C2", self.base_blocks == self.blocks, f"{self.base_blocks} base blocks of {self.blocks} of counters")
        check("C3", self.blocks == 0 or self.capacity > 0, "capacity is 0")
        check("C4", self.blocks > 0 or self.kind == NONE, "a filter of no size has a key kind")
        length = len(self.payload)
        check("C5", length == 256 * self.blocks, f"{length} bytes of counters, not {256 * self.blocks}")
        check("C6", (self.kind == NONE) != any(self.payload), "a key kind without elements, or elements without one")

    def counter(self, i):
        return self.payload[i // 2] >> 4 * (i % 2) & 15

    def contains(self, h):
        """Whether the element with this hash may be in the filter."""
        if self.representation == 0:
            at = bisect.bisect_left(self.list, h)
            return at < len(self.list) and self.list[at] == h
        if self.blocks == 0:
            return False
        places = positions(self.layout, self.blocks, self.hashes, h)
        if self.representation == COUNTERS:
            return all(self.counter(p) for p in places)
        return all(self.payload[p // 8] >> p % 8 & 1 for p in places)

    def describe(self):
        shown = {
            "version": self.version,
            "layout": self.layout,
            "kind": KINDS[self.kind],
            "name": self.name.decode(),
            "representation": ["sparse", "dense", "counters"][self.representation],
            "hashes": self.hashes,
            "hash_id": self.hash_id,
            "blocks": self.blocks,
            "base_blocks": self.base_blocks,
            "capacity": self.capacity,
            "fpr": self.fpr,
            "payload_bytes": len(self.payload),
        }
        if self.representation == 0:
            shown["elements"] = len(self.list)
        elif self.representation == COUNTERS:
            shown["counters_set"] = sum(self.counter(i) > 0 for i in range(2 * len(self.payload)))
        else:
            shown["bits_set"] = sum(bin(byte).count("1") for byte in self.payload)
        return "\t".join(f"{name}={value}" for name, value in shown.items())


def is_utf8(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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
    if not re.fullmatch(rb"-?[0-9]{1,30}", text):
        raise no("interval in microseconds", text)
    return int(text)


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


def member(data):
    return b"\0" if data is None else b"\1" + struct.pack("<Q", len(data)) + data


def array(value, kind):
    """An array, given as lists of texts of a general kind that is not made of others."""
    lengths, elements = [], [value]
    while elements and isinstance(elements[0], list):
        lengths.append(len(elements[0]))
        elements = [element for inner in elements for element in inner]
    if not elements:
        return struct.pack("<I", 0)
    if kind not in ELEMENTS or not all(element is None or isinstance(element, str) for element in elements):
        raise Senseless(f"no elements of kind {kind}")
    read, codes = ELEMENTS[kind]
    texts = (None if element is None else element.encode() for element in elements)
    members = [None if text is None else CANONICAL[min(codes)](read(text)) for text in texts]
    dimensions = b"".join(struct.pack("<ii", length, 1) for length in lengths)
    return struct.pack("<I", len(lengths)) + dimensions + b"".join(map(member, members))


CANONICAL = {
    **dict.fromkeys((1, 8, 9, 11, 12, 33, 39, 40), int64),
    **dict.fromkeys((15, 16), lambda value: struct.pack("<Q", value)),
    13: lambda value: struct.pack("<qi", *value),
    14: lambda value: value.to_bytes(16, "little", signed=True),
    17: jsonb,
    **dict.fromkeys((7, 32, 38), int32),
    **dict.fromkeys((2, 3, 5, 6, 36, 37), bytes),
    **dict.fromkeys((4, 35), float64),
    34: float32,
    10: lambda value: bytes([value]),
}


def ask(held, kind, text):
    """Whether a filter may have the element that a text of a kind stands for."""
    if held.kind == OTHER and kind == held.name.decode():
        kind = "other"
    if held.kind == ARRAY and kind == held.name.decode():
        return held.contains(xxh64(array(read_json(text), kind.removeprefix("array of "))))
    if kind not in ELEMENTS:
        raise Senseless(f"kind {kind} is unknown")
    read, filters = ELEMENTS[kind]
    value = read(text)
    if held.kind == NONE:
        return False
    if held.kind not in filters:
        raise Senseless(f"a filter of kind {KINDS[held.kind]} {held.name.decode()}".rstrip() + f" is asked for {kind}")
    canonical = CANONICAL[held.kind](value)
    return canonical is not None and held.contains(xxh64(canonical))


def main(arguments):
    if arguments not in ([], ["--describe"]):
        print(__doc__, file=sys.stderr)
        return 2
    last, held = None, None
    for number, line in enumerate(sys.stdin.buffer, 1):
        columns = line.removesuffix(b"\n").split(b"\t", 2)
        try:
            # Many questions about one value are usual: it is read once.
            if columns[0] != last:
                last, held = columns[0], Filter(unhex(columns[0], Damaged))
            if arguments:
                print(held.describe())
            elif len(columns) != 3:
                raise Senseless("a question has three columns")
            else:
                print("t" if ask(held, columns[1].decode(errors="replace"), columns[2]) else "f")
        except (Damaged, Senseless) as e:
            sys.stdout.flush()
            what = "damaged value" if isinstance(e, Damaged) else "senseless question"
            print(f"reader.py: line {number}: {what}: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
