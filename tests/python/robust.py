"""What threads, signals, a lack of memory and bytes from outside can do: an exception, never more. The arguments are
archives of hostile bytes."""

import copy
import itertools
import pickle
import resource
import signal
import sys
import tarfile
import threading
import time
import warnings

from common import ONE_OF_EACH_KIND, refused

from pg_bloom import Filter, Header, OverfullWarning


def filters_are_values():
    """Filters are compared, hashed, copied, pickled and printed."""
    filter = Filter.build(range(50), 100)
    stored = bytes(filter)
    copies = pickle.loads(pickle.dumps(filter)), copy.deepcopy(filter), Filter(stored), Filter(bytearray(stored))
    for other in copies:
        assert other == filter and hash(other) == hash(filter) and bytes(other) == stored
    assert Filter("\\x" + stored.hex()) == filter == Filter("\\x" + stored.hex().upper())
    for text in "", "\\x", "\\x00", "\\xé", "x" + stored.hex(), "{" + stored.hex() + "}":
        refused(ValueError, lambda: Filter(text), "invalid bloom filter")
    for value in 7, [stored], None:
        refused(TypeError, lambda: Filter(value), "bytes", type(value).__name__)
    assert filter != Filter.build(range(51), 100) and filter != stored
    assert isinstance(filter.header, Header) and filter.header == filter.header
    assert filter.header.bytes == len(stored)
    assert "integer" in repr(filter) and "integer" in repr(filter.header)
    assert Filter.build.__doc__ and Filter.contains_many.__doc__ and Filter.__doc__


def errors_of_iterators_come_through():
    def failing():
        yield 1
        raise ArithmeticError("of the iterator")

    refused(ArithmeticError, lambda: Filter.build(failing()), "of the iterator")

    class Stopping(int):
        def __index__(self):
            raise KeyboardInterrupt

    refused(KeyboardInterrupt, lambda: Filter.build([1] * 1000 + [Stopping(1)]))


def signals_end_what_is_long():
    """An endless iterator, and long lists."""

    def stop(*_):
        raise InterruptedError("by a signal")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    refused(InterruptedError, lambda: Filter.build([1]).contains_many(itertools.count()), "by a signal")
    values = list(range(3_000_000)) * 10
    for work in Filter.build, Filter.build([1]).contains_many:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        refused(InterruptedError, lambda: work(values), "by a signal")


def other_threads_go_on():
    """Another thread counts while this one works, even where Python itself would let none in between."""
    passed = [0]
    ended = threading.Event()

    def count():
        while not ended.wait(0.001):
            passed.append(0)

    def until(condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline

    class Passed:
        """An element that tells how far the other thread is, without running code of Python."""

        __index__ = staticmethod(passed.__len__)

    other = threading.Thread(target=count, daemon=True)
    other.start()
    zeros = [0] * 500_000
    until(lambda: Filter.build([Passed(), *zeros, Passed()]).cardinality == 3)

    filter = Filter.build(range(1_000_000), 1_000_000)
    stored = bytes(filter)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    for work in (
        lambda: Filter(stored),
        lambda: filter | filter,
        lambda: filter & filter,
        lambda: filter.resize(2_000_000),
        lambda: filter.fpr,
        lambda: filter.cardinality,
    ):
        before = len(passed)
        until(lambda: work() is not None and len(passed) > before)
    sys.setswitchinterval(interval)
    ended.set()
    other.join()


def threads_build_at_once():
    built = [None] * 8

    def elements(i):
        return range(i * 1000, (i + 9) * 1000)

    def build(i):
        built[i] = Filter.build(elements(i), 100_000) | Filter.build(range(5), 100_000)

    workers = [threading.Thread(target=build, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(all(filter.contains_many(elements(i))) for i, filter in enumerate(built))


def damaged(stored):
    """A filter's bytes with one bit changed, in each of the first sixty bytes."""
    for place in range(min(60, len(stored))):
        for bit in 1, 128:
            yield stored[:place] + bytes([stored[place] ^ bit]) + stored[place + 1 :]


def inputs_of(archive_files):
    for file in archive_files:
        with tarfile.open(file) as archive:
            for member in archive:
                if member.isfile():
                    yield archive.extractfile(member).read()


def hostile_bytes(archives):
    """Bytes are refused, or are a filter that every method works with, or refuses."""
    seeds = [bytes(Filter.build([value] * 3 + [None], capacity)) for value in ONE_OF_EACH_KIND for capacity in (None, 9)]
    seeds += [bytes(Filter.build(range(100), 60, 0.1, layout)) for layout in ("blocked", "classic", "parquet")]
    found = list(inputs_of(archives))
    accepted = 0
    for data in itertools.chain(seeds, *map(damaged, seeds), found):
        try:
            filter = Filter(data)
        except ValueError:
            continue
        accepted += 1
        assert bytes(filter) == data and filter.header.bytes == len(data)
        assert filter.cardinality >= 0 and 0 <= filter.fpr <= 1
        for work in works_with(filter):
            try:
                work()
            except (TypeError, ValueError):
                pass
    assert len(found) > 100 and accepted > 500, (len(found), accepted)


def works_with(filter):
    for value in ONE_OF_EACH_KIND:
        yield lambda: filter.add_all([value])
        yield lambda: filter.contains_many([value, None])
    yield lambda: filter | filter
    yield lambda: filter & filter
    yield filter.resize
    yield lambda: filter.resize(1000)


def without_memory():
    """A filter for which there is no memory is a MemoryError."""
    a, b = Filter.build([], 200_000_000), Filter.build([], 400_000_000)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), resource.RLIM_INFINITY))
    refused(MemoryError, lambda: a | b, "bytes")
    refused(MemoryError, lambda: Filter.build(iter(range(100_000_000))))
    assert 1 in Filter.build([1])


if __name__ == "__main__":
    filters_are_values()
    errors_of_iterators_come_through()
    signals_end_what_is_long()
    other_threads_go_on()
    threads_build_at_once()
    warnings.simplefilter("ignore", OverfullWarning)
    hostile_bytes(sys.argv[1:])
    without_memory()
