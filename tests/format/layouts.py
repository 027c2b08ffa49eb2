"""Dense payloads: sections 5 and 7 of docs/format.md in plain Python. A payload is a number whose bit p is that of position p."""

import math

from hashes import reduce, word

LAYOUTS = {1: "blocked", 2: "classic", 3: "parquet"}
BLOCK_BITS = {"blocked": 512, "classic": 1, "parquet": 256}
MAX_BYTES = 511 * 1024 * 1024
MAX_BLOCKS = {"blocked": MAX_BYTES * 8 // 512, "classic": MAX_BYTES * 8, "parquet": 2**31 - 1}
SALT = [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31]


def dense_bytes(layout, blocks):
    return (blocks * BLOCK_BITS[layout] + 7) // 8


def positions(layout, blocks, hashes, h):
    """The bits that an element with this hash sets."""
    if layout == "blocked":
        block = reduce(h, blocks)
        return [512 * block + (word(h, i // 7) >> 9 * (i % 7) & 511) for i in range(hashes)]
    if layout == "classic":
        return [reduce(word(h, j), blocks) for j in range(hashes)]
    block = (h >> 32) * blocks >> 32
    return [256 * block + 32 * i + ((h & 0xFFFFFFFF) * SALT[i] % 2**32 >> 27) for i in range(8)]


# Spread and fold


def split(bits, layout, blocks):
    """The blocks of a payload, each as a number."""
    if layout == "classic":
        return [int(bit) for bit in reversed(f"{bits:0{blocks}b}")]
    width = BLOCK_BITS[layout] // 8
    payload = bits.to_bytes(width * blocks, "little")
    return [int.from_bytes(payload[i : i + width], "little") for i in range(0, len(payload), width)]


def join(blocks, layout):
    if layout == "classic":
        return int("".join("01"[bit] for bit in reversed(blocks)), 2)
    width = BLOCK_BITS[layout] // 8
    return int.from_bytes(b"".join(block.to_bytes(width, "little") for block in blocks), "little")


def spread(bits, layout, blocks, q):
    return join([block for block in split(bits, layout, blocks) for _ in range(q)], layout)


def fold(bits, layout, blocks, q):
    """Folds to so many blocks, of q times as many."""
    result = [0] * blocks
    for i, block in enumerate(split(bits, layout, blocks * q)):
        result[i // q] |= block
    return join(result, layout)


def present_rate(layout, hashes, blocks, bits):
    """The rate that a dense filter has now: section 15."""
    ones = lambda number: bin(number).count("1")
    if layout == "classic":
        return (ones(bits) / blocks) ** hashes
    if layout == "blocked":
        return sum((ones(block) / 512) ** hashes for block in split(bits, layout, blocks)) / blocks
    words = lambda block: [block >> 32 * i & 0xFFFFFFFF for i in range(8)]
    return sum(math.prod(ones(word) / 32 for word in words(block)) for block in split(bits, layout, blocks)) / blocks
