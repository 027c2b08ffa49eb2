"""Stored values, and the checks of sections 8 and 11 of docs/format.md."""

import bisect
import struct

from kinds import KINDS, MAX_NAME, NAMED, NONE, allowed
from layouts import BLOCK_BITS, LAYOUTS, MAX_BLOCKS, MAX_BYTES, dense_bytes, positions

HEADER = struct.Struct("<BBBBBBHQQQdI")
SPARSE, DENSE, COUNTERS = 0, 1, 2


class Damaged(Exception):
    """The stored value is not one that pg_bloom writes."""


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
        check(6, allowed(self.kind, self.layout), f"layout {self.layout} has no elements of kind {KINDS[self.kind]}")
        check(7, self.representation in (SPARSE, DENSE, COUNTERS), f"representation {self.representation} is unknown")
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
        if self.representation == DENSE:
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
        self.dense_bytes = dense_bytes(self.layout, self.blocks)
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
        if self.representation == SPARSE:
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
        if self.representation == SPARSE:
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
        if self.representation == SPARSE:
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
