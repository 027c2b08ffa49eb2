#!/usr/bin/env python3
"""Estimates cardinality and rate of stored filters: section 15 of docs/format.md in plain Python.

Standard input has a stored value in hexadecimal on each line; for each the cardinality and the rate are printed. A filter of
counters is shown as its bits.
"""

import math
import sys

from layouts import BLOCK_BITS, fold, present_rate
from stored import DENSE
from writer import evaluate, shown


def touched(layout, k, blocks):
    """The chance that an element sets a given bit."""
    if layout == "classic":
        return -math.expm1(k * math.log1p(-1 / blocks))
    if layout == "blocked":
        return -math.expm1(k * math.log1p(-1 / 512)) / blocks
    return 1 / (32 * blocks)


def elements(layout, k, blocks, bits):
    ones = bin(bits).count("1")
    if ones == blocks * BLOCK_BITS[layout]:
        return math.inf
    return math.log1p(-ones / (blocks * BLOCK_BITS[layout])) / math.log1p(-touched(layout, k, blocks))


def standard_error(layout, k, blocks, n):
    load = n / blocks
    if layout == "classic":
        clear = math.exp(-k * load)
        return math.sqrt(blocks * max(0.0, clear * (1 - (1 + k * load) * clear))) / (k * clear)
    if layout == "blocked":
        t = 1 - (511 / 512) ** k
        z = math.exp(-load * t)
        q = z / 512 + 511 / 512 * math.exp(-load * (1 - (510 / 512) ** k))
    else:
        t = 1 / 32
        z = math.exp(-load * t)
        q = (z + 31 * math.exp(-load / 16) + 224 * math.exp(-load * (1 - (31 / 32) ** 2))) / 256
    return math.sqrt(blocks * max(0.0, q - z * z * (1 + load * t * t))) / (t * z)


def least_factor(n):
    return next((factor for factor in range(2, math.isqrt(n) + 1) if n % factor == 0), n)


def cardinality(f):
    if f.representation != DENSE:
        return float(len(f.list))
    blocks, bits = f.blocks, f.bits
    finest_first = [(blocks, elements(f.layout, f.hashes, blocks, bits))]
    while blocks > f.base:
        factor = least_factor(blocks // f.base)
        blocks //= factor
        bits = fold(bits, f.layout, blocks, factor)
        finest_first.append((blocks, elements(f.layout, f.hashes, blocks, bits)))
    answer, coarser = 0.0, []
    for blocks, n in reversed(finest_first):
        if any(abs(n - other) > 2 * error for other, error in coarser):
            break
        coarser.append((n, math.inf if math.isinf(n) else standard_error(f.layout, f.hashes, blocks, n)))
        answer = n
    return answer


def rate(f):
    if f.representation != DENSE:
        return len(f.list) / 2**64
    return present_rate(f.layout, f.hashes, f.blocks, f.bits)


def main():
    for line in sys.stdin:
        f = evaluate({"stored": line.strip()})
        if f.counters is not None:
            f = shown(f)
        print(cardinality(f), rate(f))


if __name__ == "__main__":
    main()
