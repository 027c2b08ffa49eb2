#!/usr/bin/env python3
"""Reads stored Bloom filters, of both types: a second implementation of docs/format.md, in plain Python and for clarity, not speed.

usage: reader.py              answers questions
       reader.py --describe   prints headers
       reader.py --check      prints which values are good, and what is wrong with the others

Standard input has one question a line, three columns separated by tabs: a stored value in hexadecimal, with or without
\\x before it; the kind of the element; the element, up to the end of the line. For each line the answer is t (the element
may be in the filter) or f (it is not). Otherwise only the first column is read.

A kind is "integer", "text" and so on as in the table of key kinds, or, in JSON, one that has a name, as in kinds.py. The
general kinds may ask filters of the Parquet kinds that hold the same SQL types. Elements are written as elements.py says, and
those of arrays, rows, ranges and multiranges in JSON, as members.py says.

The exit status is 1, after a message, when a value is damaged or a probe makes no sense.
"""

import json
import sys

from elements import CANONICAL, ELEMENTS, Senseless, unhex
from hashes import xxh64
from kinds import CODES, KINDS, NONE, sort, stored_name
from members import hash_of, is_composite
from stored import Damaged, Filter


def ask(held, kind, text):
    """Whether a filter may have the element that a text of a kind stands for."""
    if held.kind == NONE:
        return False
    if is_composite(kind):
        check_kind(held, kind, {CODES[sort(kind)]})
        _, h = hash_of(kind, held.layout, json.loads(text))
        return held.contains(h)
    if sort(kind) not in ELEMENTS:
        raise Senseless(f"kind {sort(kind)} is unknown")
    read, filters = ELEMENTS[sort(kind)]
    check_kind(held, kind, filters)
    canonical = CANONICAL[held.kind](read(text))
    return canonical is not None and held.contains(xxh64(canonical))


def check_kind(held, kind, filters):
    if held.kind not in filters or held.name != stored_name(kind):
        name = held.name.decode()
        raise Senseless(f"a filter of kind {KINDS[held.kind]} {name}".rstrip() + f" is asked for {kind}")


def read_kind(column):
    text = column.decode(errors="replace")
    return json.loads(text) if text.startswith("{") else text


def check(column):
    try:
        Filter(unhex(column, Damaged))
    except Damaged as e:
        return str(e)
    return "good"


def answer(columns, held, arguments):
    if arguments:
        return held.describe()
    if len(columns) != 3:
        raise Senseless("a probe has three columns")
    return "t" if ask(held, read_kind(columns[1]), columns[2]) else "f"


def main(arguments):
    if arguments not in ([], ["--describe"], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    last, held = None, None
    for number, line in enumerate(sys.stdin.buffer, 1):
        columns = line.removesuffix(b"\n").split(b"\t", 2)
        if arguments == ["--check"]:
            print(check(columns[0]))
            continue
        try:
            # One value is usually probed many times: it is read once.
            if columns[0] != last:
                last, held = columns[0], Filter(unhex(columns[0], Damaged))
            print(answer(columns, held, arguments))
        except (Damaged, Senseless) as e:
            sys.stdout.flush()
            what = "damaged value" if isinstance(e, Damaged) else "senseless question"
            print(f"reader.py: line {number}: {what}: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
