"""Sizes of filters: section 14 of docs/format.md in plain Python."""

import math
from array import array
from functools import cache
from itertools import chain, pairwise

from layouts import BLOCK_BITS

LEAST_ON_GRID = {"blocked": 64, "classic": 1024, "parquet": 64}
LEAST_RATE = {"blocked": 1e-9, "classic": 1e-9, "parquet": 1e-6}
MOST_HASHES = 64
FULL = 40


class Occupancy:
    """How many of some cells are hit after some throws: a probability for each number, computed as far as it is asked for."""

    def __init__(self, cells):
        self.cells = cells
        self.after = [array("d", [1.0])]

    def throw(self):
        cells, last = self.cells, self.after[-1]
        # One more can be hit than before.
        hit = [*last, 0.0] if len(last) <= cells else last
        more = (b * x / cells + a * (cells - x + 1) / cells for x, (a, b) in enumerate(pairwise(hit), 1))
        self.after.append(array("d", chain([0.0], more)))

    def moment(self, throws, k):
        while len(self.after) <= throws:
            self.throw()
        return math.fsum(p * (x / self.cells) ** k for x, p in enumerate(self.after[throws]) if p)


occupancy = cache(Occupancy)


class BlockRates:
    """F(j): the rate of a block that holds j elements, computed as far as it is asked for."""

    def __init__(self, layout, k):
        self.layout, self.k = layout, k
        self.rates = [0.0]

    def __call__(self, j):
        if self.layout == "parquet":
            return (1 - (31 / 32) ** j) ** 8
        # No more elements than fill the block.
        j = min(j, FULL * 512 // self.k)
        while len(self.rates) <= j:
            self.rates.append(occupancy(512).moment(len(self.rates) * self.k, self.k))
        return self.rates[j]


block_rates = cache(BlockRates)


def mean(middle, ratio, f):
    """The mean of f over a distribution, given the ratio of the weight of j + 1 to that of j, from its middle to both sides."""
    middle = int(middle)
    weights, values = [1.0], [f(middle)]
    weight, j = 1.0, middle
    while (weight := weight * ratio(j)) >= 1e-22:
        j += 1
        weights.append(weight)
        values.append(f(j))
    weight, j = 1.0, middle
    while j > 0 and (weight := weight / ratio(j - 1)) >= 1e-22:
        j -= 1
        weights.append(weight)
        values.append(f(j))
    return math.fsum(w * v for w, v in zip(weights, values)) / math.fsum(weights)


def classic_rate(k, bits, n):
    throws = n * k
    if bits <= 1024:
        return occupancy(bits).moment(throws, k)
    load = throws / bits
    clear = math.exp(throws * math.log1p(-1 / bits))
    if load < 1e-5:
        fill, variance = load - load * load / 2, load * load * (0.5 - load / 3) / bits
    else:
        fill, variance = 1 - clear, clear * (1 - (1 + load) * clear) / bits
    v = variance / (fill * fill)
    return min(1.0, fill**k * (1 + math.comb(k, 2) * v + 3 * math.comb(k, 4) * v * v))


def rate(layout, k, blocks, n):
    """The false positive rate of n elements in so many blocks, averaged over sets."""
    if n <= 0:
        return 0.0
    if n * k > FULL * blocks * BLOCK_BITS[layout]:
        return 1.0
    if layout == "classic":
        return classic_rate(k, blocks, n)
    f = block_rates(layout, k)
    if blocks == 1:
        return f(int(n))
    return mean(n / blocks, lambda j: max(n - j, 0.0) / (j + 1) / (blocks - 1), f)


def limit(layout, k, load):
    """The same in the limit of many blocks, each with so many elements on average."""
    if load * k > FULL * BLOCK_BITS[layout]:
        return 1.0
    return mean(load, lambda j: load / (j + 1), block_rates(layout, k))


@cache
def bits_per_element(layout, k, fpr):
    if layout == "classic":
        return -k / math.log(-math.expm1(math.log(fpr) / k))
    bits = BLOCK_BITS[layout]
    low = high = bits / max(1.0, -1.44 * math.log2(fpr)) / 2
    while limit(layout, k, high) <= fpr:
        low, high = high, high * 1.5
    while limit(layout, k, low) > fpr:
        low, high = low / 2, low
    while high / low > 1 + 1e-13:
        middle = math.sqrt(low * high)
        if limit(layout, k, middle) <= fpr:
            low = middle
        else:
            high = middle
    found = bits / low
    while rate(layout, k, 64, 64 * bits / found) > fpr:
        found *= 1 + 1e-5
    return found


@cache
def hashes(layout, fpr):
    """The number of hashes that needs the fewest bits. There is one such valley, around log2(1/fpr) or below."""
    if layout == "parquet":
        return 8
    k = min(MOST_HASHES, max(1, round(-math.log2(fpr))))
    cost = lambda k: bits_per_element(layout, k, fpr)
    while k > 1 and cost(k - 1) <= cost(k):
        k -= 1
    while k < MOST_HASHES and cost(k + 1) < cost(k):
        k += 1
    return k


def surplus(k, bits):
    """What 1,024 bits of a classic filter need beyond the limit, as a factor."""
    load = k / bits
    clear = math.exp(-load)
    variance = clear * (1 - (1 + load) * clear)
    slope = k * load * clear / (1 - clear)
    return math.exp((k * (k - 1) / 2 * variance / (1 - clear) ** 2 / slope + 0.51) / 1024)


def first(holds, guess=1):
    """The first number from 1 on for which something holds that holds from there on."""
    low, high = 0, max(1, guess)
    while not holds(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def size(layout, capacity, fpr):
    """Hashes and blocks of a filter with a capacity."""
    k = hashes(layout, fpr)
    bits = bits_per_element(layout, k, fpr)
    needed = capacity * bits * (surplus(k, bits) if layout == "classic" else 1.0) / BLOCK_BITS[layout]
    if needed < LEAST_ON_GRID[layout]:
        return k, first(lambda blocks: rate(layout, k, blocks, capacity) <= fpr, math.ceil(needed))
    step = 2 ** math.floor(math.log2(needed / 64))
    m = math.ceil(needed / step)
    return k, (128 if m == 127 else m) * step


def most_elements(layout, k, blocks, fpr):
    """The most elements for which so many blocks keep a rate; at least one."""
    return max(1, first(lambda n: rate(layout, k, blocks, n) > fpr) - 1)


def size_without_capacity(layout, elements, fpr):
    """Hashes, blocks and capacity of a filter that was sized for the elements it saw."""
    k, blocks = hashes(layout, fpr), 1
    while rate(layout, k, blocks, elements) > fpr:
        blocks *= 2
    return k, blocks, most_elements(layout, k, blocks, fpr)
