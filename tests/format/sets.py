"""Rows of filter sets: core/src/set/rows.md in plain Python.

Reads lines of bucket, B and hexadecimal bytes, and prints for each the hashes with their slices."""

import struct
import sys

from hashes import xxh64


def shape(bits, keeps, bucket, count):
    """Low bits of each hash, bits of the high parts, and bytes of the row."""
    width = bits - (bucket.bit_length() - 1)
    logarithm = max(count - 1, 0).bit_length()
    low, high = width - logarithm, count + 2**logarithm if count else 0
    total = count * low + high + (4 * count if keeps else 0)
    return low, high, (2 + (8 if keeps else 0) + (total + 7) // 8 + 6 + 7) // 8 * 8


def read(bits, bucket, row):
    version, form, keeps = row[0], row[1], row[1] >= 128
    (checksum,) = struct.unpack("<I", row[-4:])
    assert version == 1 and form % 128 == bits and checksum == xxh64(row[:-4], bucket) % 2**32
    (count,) = struct.unpack("<H", row[-6:-4])
    low, high, length = shape(bits, keeps, bucket, count)
    assert length == len(row)
    head = 10 if keeps else 2
    first = struct.unpack("<q", row[2:10])[0] if keeps else 0
    stream = int.from_bytes(row[head:-6], "little")
    depth = bucket.bit_length() - 1
    start = (bucket - 2**depth) << (bits - depth)
    hashes, part = [], 0
    for place in range(count * low, count * low + high):
        if stream >> place & 1:
            i = len(hashes)
            slice_at = count * low + high + 4 * i
            hashes.append((start + (part << low) + (stream >> i * low) % 2**low, first + (stream >> slice_at) % 16 * keeps))
        else:
            part += 1
    assert len(hashes) == count and hashes == sorted(hashes)
    return hashes


def main():
    for line in sys.stdin:
        bucket, bits, row = line.split()
        hashes = read(int(bits), int(bucket), bytes.fromhex(row))
        print(" ".join(f"{h}:{s}" for h, s in hashes))


if __name__ == "__main__":
    main()
