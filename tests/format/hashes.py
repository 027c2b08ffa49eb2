"""Hashes of canonical bytes, and more bits of one: section 3 of docs/format.md in plain Python."""

import struct

MASK = 2**64 - 1


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
