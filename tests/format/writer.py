#!/usr/bin/env python3
"""Writes stored Bloom filters, byte for byte as pg_bloom does: a second implementation of docs/format.md, in plain Python.

Standard input has one filter a line, as an expression in JSON; for each line its stored bytes are printed, in hexadecimal.

    {"layout": "blocked", "capacity": 1000, "fpr": 0.01, "kind": "integer", "elements": ["1", "2"]}
        a filter of these elements; "capacity" may be null, and there may be none of them. Kinds are written as in kinds.py,
        elements as in elements.py and members.py
    {"counting": true, …}      the same as a counting_bloom; an element counts as often as it is there
    {"union": [a, b]}, {"intersection": [a, b]}, {"sum": [a, b]}
    {"fold": a, "fpr": 0.05}, {"resize": a, "capacity": 2000}
    {"shown": a}               the filter of bits of a counting_bloom
    {"stored": "0101…"}        a filter that is there
"""

import json
import math
import sys

import sizes
from elements import unhex
from kinds import NONE, stored_name
from layouts import LAYOUTS, dense_bytes, fold, positions, present_rate, spread
from members import hash_of
from stored import COUNTERS, DENSE, HEADER, SPARSE, Filter

CODES = {name: code for code, name in LAYOUTS.items()}


def fits_sparse(layout, blocks, count):
    return 8 * count <= dense_bytes(layout, blocks)


class Value:
    """A filter: the fields of its header, and a sorted list of hashes, or bits or counters as one number."""

    def __init__(self, layout, fpr, hashes=0, blocks=0, capacity=0, base=None, kind=NONE, name=b""):
        self.layout, self.fpr, self.hashes, self.blocks, self.capacity = layout, fpr, hashes, blocks, capacity
        self.base, self.kind, self.name = blocks if base is None else base, kind, name
        self.representation, self.list, self.bits, self.counters = SPARSE, [], None, None

    def changed(self, **fields):
        """A filter with the same header except for these fields, and without elements."""
        known = dict(layout=self.layout, fpr=self.fpr, hashes=self.hashes, blocks=self.blocks, capacity=self.capacity)
        known.update(base=self.base, kind=self.kind, name=self.name)
        return Value(**{**known, **fields})

    def with_list(self, hashes):
        """The filter of a set of hashes, in the form that section 6 says."""
        self.list = sorted(hashes)
        if self.blocks and not fits_sparse(self.layout, self.blocks, len(self.list)):
            return self.with_bits(self.bits_of(self.list))
        return self

    def with_bits(self, bits):
        self.representation, self.list, self.bits = DENSE, [], bits
        return self

    def bits_of(self, hashes):
        bits = bytearray(dense_bytes(self.layout, self.blocks))
        for h in hashes:
            for p in positions(self.layout, self.blocks, self.hashes, h):
                bits[p // 8] |= 1 << p % 8
        return int.from_bytes(bits, "little")

    def dense(self):
        """D of section 7: the bits, whatever the form."""
        return self.bits if self.representation == DENSE else self.bits_of(self.list)

    def contains(self, h):
        if self.representation == SPARSE:
            return h in self.list
        return all(self.bits >> p & 1 for p in positions(self.layout, self.blocks, self.hashes, h))

    def stored(self):
        name = self.name + bytes(-len(self.name) % 8)
        fields = [1, CODES[self.layout], self.kind, self.representation, self.hashes, 1, len(self.name)]
        header = HEADER.pack(*fields, self.blocks, self.base, self.capacity, self.fpr, 0)
        if self.representation == SPARSE:
            payload = b"".join(h.to_bytes(8, "little") for h in self.list)
        elif self.representation == DENSE:
            payload = self.bits.to_bytes(dense_bytes(self.layout, self.blocks), "little")
        else:
            low, high = self.counters[::2], self.counters[1::2]
            payload = bytes(a | b << 4 for a, b in zip(low, high))
        return header + name + payload


# What makes filters


def build(layout, capacity, fpr, kind="integer", elements=()):
    found = [hash_of(kind, layout, element) for element in elements]
    hashes = {h for _, h in found}
    value = Value(layout, fpr)
    if capacity is not None:
        value.hashes, value.blocks = sizes.size(layout, capacity, fpr)
        value.capacity = capacity
    elif hashes:
        value.hashes, value.blocks, value.capacity = sizes.size_without_capacity(layout, len(hashes), fpr)
    value.base = value.blocks
    if hashes:
        value.kind, value.name = found[0][0], stored_name(kind)
    return value.with_list(hashes)


def build_counting(capacity, fpr, kind="integer", elements=()):
    value = build("blocked", capacity, fpr, kind)
    value.representation, value.counters = COUNTERS, [0] * 512 * value.blocks
    for element in elements:
        value.kind, h = hash_of(kind, "blocked", element)
        value.name = stored_name(kind)
        for p in set(positions("blocked", value.blocks, value.hashes, h)):
            value.counters[p] = min(value.counters[p] + 1, 15)
    return value


def shown(value):
    if value.kind == NONE:
        return value.changed()
    return value.changed().with_bits(sum(1 << p for p, counter in enumerate(value.counters) if counter))


def is_plain(value):
    return value.blocks == 0 and value.layout == "blocked" and value.fpr == 0.01


def rank(value):
    """The greater of two has the header of what they are merged to."""
    return value.blocks, value.capacity, not is_plain(value), value.fpr, -CODES[value.layout]


def merged(a, b):
    """A filter without elements with the header of two that are merged."""
    larger, kind = max(a, b, key=rank), a if a.kind != NONE else b
    return larger.changed(base=math.gcd(a.base, b.base), kind=kind.kind, name=kind.name)


def spread_to(value, blocks):
    return spread(value.dense(), value.layout, value.blocks, blocks // value.blocks)


def union(a, b):
    result = merged(a, b)
    if a.blocks == 0 or b.blocks == 0:
        return result if a.blocks == b.blocks else b if a.blocks == 0 else a
    if a.blocks == b.blocks and a.representation == b.representation == SPARSE:
        return result.with_list({*a.list, *b.list})
    return result.with_bits(spread_to(a, result.blocks) | spread_to(b, result.blocks))


def intersection(a, b):
    result = merged(a, b)
    if a.blocks == 0 or b.blocks == 0:
        return result
    if a.representation == b.representation == DENSE:
        return result.with_bits(spread_to(a, result.blocks) & spread_to(b, result.blocks))
    listed, other = (a, b) if a.representation == SPARSE else (b, a)
    result.list = [h for h in listed.list if other.contains(h)]
    return result


def summed(a, b):
    if a.blocks == 0 or b.blocks == 0:
        result = merged(a, b)
        counters = a.counters or b.counters
    else:
        result = merged(a, b)
        counters = [min(x + y, 15) for x, y in zip(a.counters, b.counters)]
    result.base, result.representation, result.counters = result.blocks, COUNTERS, counters
    return result


def folded(value, fpr):
    layout, k, blocks = value.layout, value.hashes, value.blocks
    bits = value.dense() if blocks else 0
    while blocks and blocks % 2 == 0:
        half = fold(bits, layout, blocks // 2, 2)
        if present_rate(layout, k, blocks // 2, half) > fpr:
            break
        bits, blocks = half, blocks // 2
    if blocks == value.blocks:
        return value
    capacity = sizes.most_elements(layout, k, blocks, fpr)
    result = value.changed(blocks=blocks, base=math.gcd(value.base, blocks), capacity=capacity, fpr=fpr)
    sparse = value.representation == SPARSE and fits_sparse(layout, blocks, len(value.list))
    return result.with_list(value.list) if sparse else result.with_bits(bits)


def resized(value, capacity):
    if value.representation == SPARSE:
        hashes, blocks = sizes.size(value.layout, capacity, value.fpr)
        return value.changed(hashes=hashes, blocks=blocks, base=blocks, capacity=capacity).with_list(value.list)
    blocks = resized_blocks(value, capacity)
    result = value.changed(blocks=blocks, base=math.gcd(value.base, blocks), capacity=capacity)
    if blocks >= value.blocks:
        return result.with_bits(spread_to(value, blocks))
    return result.with_bits(fold(value.bits, value.layout, blocks, value.blocks // blocks))


def resized_blocks(value, capacity):
    hashes, blocks = sizes.size(value.layout, capacity, value.fpr)
    if hashes == value.hashes:
        return blocks
    holds = lambda blocks: sizes.most_elements(value.layout, value.hashes, blocks, value.fpr) >= capacity
    blocks = value.blocks
    while not holds(blocks):
        blocks *= 2
    while blocks % 2 == 0 and holds(blocks // 2):
        blocks //= 2
    return blocks


def stored_value(digits):
    read = Filter(unhex(digits.encode()))
    value = Value(read.layout, read.fpr, read.hashes, read.blocks, read.capacity, read.base_blocks, read.kind, read.name)
    value.representation = read.representation
    if read.representation == SPARSE:
        value.list = list(read.list)
    elif read.representation == DENSE:
        value.bits = int.from_bytes(read.payload, "little")
    else:
        value.counters = [read.counter(i) for i in range(2 * len(read.payload))]
    return value


PAIRS = {"union": union, "intersection": intersection, "sum": summed}


def evaluate(expression):
    for name, function in PAIRS.items():
        if name in expression:
            return function(*map(evaluate, expression[name]))
    if "fold" in expression:
        return folded(evaluate(expression["fold"]), expression["fpr"])
    if "resize" in expression:
        return resized(evaluate(expression["resize"]), expression["capacity"])
    if "shown" in expression:
        return shown(evaluate(expression["shown"]))
    if "stored" in expression:
        return stored_value(expression["stored"])
    fields = dict(expression)
    if fields.pop("counting", False):
        return build_counting(**fields)
    return build(**fields)


def main():
    for line in sys.stdin:
        print(evaluate(json.loads(line)).stored().hex(), flush=True)


if __name__ == "__main__":
    main()
