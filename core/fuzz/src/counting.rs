//! Counting filters: what the parser accepts is what docs/format.md says, and every operation on it
//! does what plain arithmetic with an array of numbers does.

use super::forge::{
    HEADER, Input, LAST_GENERAL_KIND, damaged, has_name, repair, repair_counting, with_field,
};
use super::oracle;
use pg_bloom_core::counting::{
    Counting, CountingInfo, contains_in_slices, empty, parse_start, stored_bytes, sum,
    summed_header, unsized_header,
};
use pg_bloom_core::error::InvalidBinary;
use pg_bloom_core::filter::slices::{FilterStart, START_BYTES};
use pg_bloom_core::filter::{estimate, merge};
use pg_bloom_core::kind::Tag;
use pg_bloom_core::{Body, Class, Error, Header, Kind, Layout, MAX_STORED_BYTES, Problem, View};

/// The largest value of a counter, which stands for more as well.
const MOST: u8 = 15;

/// An input is bytes to parse, and it is three filters and hashes to work with.
pub fn run(data: &[u8]) {
    let whole = repair_counting(data, None);
    assert!(allowed(&whole, false), "{whole:x?}");
    let mut choices = Input(&data[data.len().saturating_sub(9)..]);
    let other = with_field(&whole, choices.byte(), choices.number());
    for bytes in [
        data,
        &whole,
        &damaged(&whole, data, HEADER),
        &other,
        &repair(data, false),
    ] {
        parse(bytes);
    }

    let mut input = Input(data);
    let (ratios, kind) = ([input.byte(), input.byte()], input.byte());
    let parts = [input.part(), input.part(), input.part()];
    let hashes: Vec<u64> = (0..8).map(|_| input.number()).collect();
    let copies: Vec<u8> = (0..8).map(|_| input.byte()).collect();

    let a = repair_counting(parts[0], None);
    let [b, c] = [1, 2].map(|i| repair_counting(parts[i], Some((&a, ratios[i - 1]))));
    let [a, b, c] = [&a, &b, &c]
        .map(|value| Counting::parse(value).expect("a repaired value is a counting filter"));
    for filter in [&a, &b, &c] {
        probe(filter, &hashes);
        describe(filter);
        add(filter, kind, &hashes);
        let steps: Vec<u64> = hashes
            .iter()
            .zip(&copies)
            .flat_map(|(&hash, copies)| vec![hash; usize::from(copies % 20)])
            .collect();
        come_and_go(filter, &steps, kind);
        remove(filter, &steps);
    }
    for (x, y) in [(&a, &b), (&b, &c), (&a, &a)] {
        add_two(x, y, &hashes);
    }
    add_three(&a, &b, &c);
}

/// Whether bytes are a counting filter: the checks of docs/format.md, sections 8 and 11, one after
/// the other, without the last one for trusted bytes.
fn allowed(bytes: &[u8], trusted: bool) -> bool {
    if bytes.len() < HEADER || bytes.len() as u64 > MAX_STORED_BYTES {
        return false;
    }
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (kind, hashes, name) =
        (bytes[2], bytes[4], usize::from(u16::from_le_bytes([bytes[6], bytes[7]])));
    let (blocks, base, capacity, fpr) =
        (number(8), number(16), number(24), f64::from_bits(number(32)));
    let fields = bytes[0] == 1
        && bytes[1] == 1
        && kind <= LAST_GENERAL_KIND
        && bytes[3] == 2
        && bytes[5] == 1;
    let named = if has_name(kind) { (1..=512).contains(&name) } else { name == 0 };
    if !(fields && bytes[40..44] == [0; 4] && (1e-9..=0.5).contains(&fpr) && named) {
        return false;
    }
    let start = HEADER + name.div_ceil(8) * 8;
    let Some(padded) = bytes.get(HEADER..start) else {
        return false;
    };
    let is_name = std::str::from_utf8(&padded[..name]).is_ok_and(|name| !name.contains('\0'));
    if !is_name || padded[name..].iter().any(|&byte| byte > 0) {
        return false;
    }
    if blocks == 0 {
        return (base, capacity, hashes, kind) == (0, 0, 0, 0) && bytes.len() == start;
    }
    let sized = (1..=64).contains(&hashes)
        && blocks <= 8_372_224
        && start as u64 + 64 * blocks <= MAX_STORED_BYTES
        && base == blocks
        && (1..1 << 63).contains(&capacity)
        && bytes.len() as u64 == start as u64 + 256 * blocks;
    sized && (trusted || (kind == 0) == bytes[start..].iter().all(|&byte| byte == 0))
}

/// Reads bytes in every way there is.
fn parse(bytes: &[u8]) {
    let (filter, trusted) = (Counting::parse(bytes), Counting::parse_trusted(bytes));
    let start = parse_start(&bytes[..bytes.len().min(START_BYTES)], bytes.len());
    assert_eq!(filter.is_ok(), allowed(bytes, false), "{filter:?} for {bytes:x?}");
    assert_eq!(trusted.is_ok(), allowed(bytes, true), "{trusted:?} for {bytes:x?}");
    if let Ok(filter) = &filter {
        assert_eq!(trusted.as_ref(), Ok(filter), "what is checked can be trusted");
    }
    if let Ok(filter) = &trusted {
        assert_eq!(start.as_ref(), Ok(&filter.header), "the start says what the whole does");
        assert_eq!(stored_bytes(&filter.header), bytes.len() as u64);
        assert_eq!(written(&filter.header, filter.counters), bytes, "it is written as it was read");
        let bits = [
            View::parse(bytes).err(),
            FilterStart::parse(&bytes[..bytes.len().min(START_BYTES)], bytes.len()).err(),
        ];
        for error in bits {
            let error = error.expect("counters are no bits");
            assert!(
                matches!(error.problem(), Problem::InvalidBinary(InvalidBinary::Counters { .. })),
                "{error:?}"
            );
        }
    }
    if View::parse(bytes).is_ok() {
        let error = filter.as_ref().expect_err("bits are no counters");
        assert!(
            matches!(error.problem(), Problem::InvalidBinary(InvalidBinary::NoCounters { .. })),
            "{error:?}"
        );
    }
    for error in [filter.err(), trusted.err(), start.err()].into_iter().flatten() {
        assert_eq!(error.class(), Class::InvalidBinary, "{error:?}");
    }
}

/// The bytes of a filter.
fn written(header: &Header<'_>, counters: &[u8]) -> Vec<u8> {
    Counting { header: *header, counters }.to_buffer()
}

/// A number for each counter.
#[derive(Clone, PartialEq)]
struct Numbers {
    header: [u64; 2],
    counters: Vec<u8>,
}

impl Numbers {
    fn of(filter: &Counting<'_>) -> Numbers {
        let header = [filter.header.num_hashes.into(), filter.header.blocks];
        Numbers {
            header,
            counters: filter
                .counters
                .iter()
                .flat_map(|byte| [byte & MOST, byte >> 4])
                .collect(),
        }
    }

    /// Each position of an element once: all are in one block. None in a filter of no size.
    fn positions(&self, hash: u64) -> Vec<usize> {
        let [hashes, blocks] = self.header;
        let mut seen = [false; 512];
        let mut all = oracle::positions(Layout::Blocked, hashes as u32, blocks, hash);
        all.retain(|position| !std::mem::replace(&mut seen[(position % 512) as usize], true));
        all.into_iter().map(|position| position as usize).collect()
    }

    fn has(&self, hash: u64) -> bool {
        !self.counters.is_empty() && self.positions(hash).iter().all(|&p| self.counters[p] > 0)
    }

    fn add(&mut self, hash: u64) {
        for p in self.positions(hash) {
            self.counters[p] = (self.counters[p] + 1).min(MOST);
        }
    }

    fn remove(&mut self, hash: u64) {
        if self.has(hash) {
            for p in self.positions(hash) {
                self.counters[p] -= u8::from(self.counters[p] < MOST);
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.counters
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[low, high]| low | high << 4)
            .collect()
    }
}

/// Asserts that a result has these numbers, and this header, except that it has the kind only if it
/// has elements.
fn same(value: &[u8], header: &Header<'_>, kind: Kind<'_>, numbers: &Numbers) {
    assert!(allowed(value, false), "{value:x?}");
    let kind = if numbers.counters.iter().all(|&n| n == 0) { Kind::NONE } else { kind };
    assert_eq!(value, written(&Header { kind, ..*header }, &numbers.bytes()));
}

/// Membership: the whole and its slices answer as the definition does.
fn probe(filter: &Counting<'_>, hashes: &[u64]) {
    let (numbers, h) = (Numbers::of(filter), &filter.header);
    let value = written(h, filter.counters);
    for &hash in hashes.iter().chain(&[0, 1, u64::MAX]) {
        let expected = numbers.has(hash);
        assert_eq!(filter.contains(hash), expected, "contains {hash:x}");
        filter.prefetch(hash);
        let by_slices =
            contains_in_slices(h, hash, |from, length| Ok::<_, Error>(&value[from..from + length]));
        assert_eq!(by_slices, Ok(expected), "slices {hash:x}");
    }
}

/// The figures of a filter, and the filter of bits that it is cast to.
fn describe(filter: &Counting<'_>) {
    let (numbers, h, info) = (Numbers::of(filter), &filter.header, filter.info());
    let bloom: Vec<u8> = filter.to_bloom();
    let view = View::parse(&bloom).expect("a cast is a filter");
    assert_eq!(view.to_buffer::<Vec<u8>>(), bloom);
    assert_eq!(view.header, *h);
    let bits: Vec<bool> = numbers.counters.iter().map(|&n| n > 0).collect();
    assert_eq!(oracle::bits_of(&view).unwrap_or_default(), bits);
    assert_eq!(
        matches!(view.body, Body::Sparse(_)),
        h.kind.is_none(),
        "a cast without elements is sparse"
    );

    let CountingInfo { num_counters, tally, cardinality, copies, current_fpr } = info;
    let total = numbers.counters.iter().map(|&n| u64::from(n)).sum();
    let saturated = numbers.counters.iter().filter(|&&n| n == MOST).count() as u64;
    assert_eq!(num_counters, numbers.counters.len() as u64);
    assert_eq!((tally.set, tally.saturated, tally.total), (oracle::ones(&bits), saturated, total));
    assert_eq!(cardinality, estimate::cardinality(&view));
    assert_eq!(cardinality, filter.cardinality());
    let near = |found: f64, expected: f64| (found - expected).abs() <= 1e-9 * expected;
    assert!(near(current_fpr, if total > 0 { oracle::rate(h, &bits) } else { 0.0 }), "{info:?}");
    // The mean number of distinct positions of an element.
    let positions = 512.0 * (1.0 - (511f64 / 512.0).powi(h.num_hashes as i32));
    let expected = if total > 0 { total as f64 / positions } else { 0.0 };
    assert_eq!(copies.is_none(), saturated > 0);
    assert!(copies.is_none_or(|copies| near(copies, expected)), "{info:?}");
}

/// The kind of elements that come to a filter: mostly its own.
fn kind_for<'a>(filter: &Counting<'a>, choice: u8) -> Kind<'a> {
    match choice {
        0..16 => Kind::unnamed(Tag::Integer),
        16..32 => Kind::other("pg_catalog.inet"),
        _ if filter.header.kind.is_none() => Kind::unnamed(Tag::Text),
        _ => filter.header.kind,
    }
}

/// Adding elements counts each of them.
fn add(filter: &Counting<'_>, choice: u8, hashes: &[u64]) {
    let (kind, h) = (kind_for(filter, choice), &filter.header);
    assert_eq!(filter.add::<Vec<u8>>(kind, &[]), Ok(written(h, filter.counters)), "adding nothing");
    let mut numbers = Numbers::of(filter);
    match filter.add::<Vec<u8>>(kind, hashes) {
        Ok(value) => {
            assert!(!h.is_unsized());
            hashes.iter().for_each(|&hash| numbers.add(hash));
            same(&value, h, kind, &numbers);
        }
        Err(error) => {
            let mismatch = !h.kind.is_none() && h.kind != kind;
            assert_eq!(
                error.class(),
                if mismatch { Class::KindMismatch } else { Class::InvalidParameter },
                "{error:?}"
            );
            assert!(mismatch || h.is_unsized(), "{error:?}");
        }
    }
}

/// Elements are added and some of them removed: what is left is found, and whatever was found
/// before.
fn come_and_go(filter: &Counting<'_>, steps: &[u64], choice: u8) {
    let h = &filter.header;
    let kind = if h.kind.is_none() { Kind::unnamed(Tag::Uuid) } else { h.kind };
    let Ok(value) = filter.add::<Vec<u8>>(kind, steps) else {
        return;
    };
    let grown = Counting::parse(&value).expect("a filter");
    let (left, gone) = steps.split_at(steps.len() * usize::from(choice) / 255);
    let (mut numbers, before) = (Numbers::of(&grown), Numbers::of(filter));
    gone.iter().for_each(|&hash| numbers.remove(hash));
    let shrunk: Vec<u8> = grown.remove(gone).unwrap_or_else(|| value.clone());
    same(&shrunk, h, kind, &numbers);
    let shrunk = Counting::parse(&shrunk).expect("a filter");
    assert!(left.iter().all(|&hash| shrunk.contains(hash)), "a false negative");
    assert!(
        steps.iter().all(|&hash| !before.has(hash) || shrunk.contains(hash)),
        "a false negative of before"
    );

    // All of them removed: as it was, unless some counter could not be counted down.
    let back: Vec<u8> = grown.remove(steps).unwrap_or_else(|| value.clone());
    let grown = Numbers::of(&grown);
    let stuck = grown
        .counters
        .iter()
        .zip(&before.counters)
        .any(|(&now, &then)| now == MOST && then < MOST);
    assert_eq!(back == written(h, filter.counters), !stuck, "{steps:x?}");
}

/// Removing what may never have been added, in turn: only what is there changes anything.
fn remove(filter: &Counting<'_>, steps: &[u64]) {
    let before = Numbers::of(filter);
    let mut numbers = before.clone();
    steps.iter().for_each(|&hash| numbers.remove(hash));
    let removed: Option<Vec<u8>> = filter.remove(steps);
    assert_eq!(removed.is_some(), steps.iter().any(|&hash| before.has(hash)));
    match removed {
        Some(value) => same(&value, &filter.header, filter.header.kind, &numbers),
        None => assert!(numbers == before),
    }
}

fn add_filters(a: &Counting<'_>, b: &Counting<'_>) -> Result<Vec<u8>, Error> {
    sum(a, b)
}

/// Why the sum of two filters must be refused, if it must.
fn refusal(a: &Header<'_>, b: &Header<'_>) -> Option<Class> {
    if !a.kind.is_none() && !b.kind.is_none() && a.kind != b.kind {
        return Some(Class::KindMismatch);
    }
    let both = !a.is_unsized() && !b.is_unsized();
    (both && (a.num_hashes, a.blocks) != (b.num_hashes, b.blocks))
        .then_some(Class::InvalidParameter)
}

/// The header of a sum except its kind: docs/format.md, section 7. Rates are positive, so their
/// bits are in their order.
fn larger<'a>(a: &Header<'a>, b: &Header<'a>) -> Header<'a> {
    let is_plain = |h: &Header<'_>| h.is_unsized() && h.fpr == 0.01;
    let order = |h: &Header<'_>| (h.blocks, h.capacity, !is_plain(h), h.fpr.to_bits());
    if order(a) > order(b) { *a } else { *b }
}

/// The sum of two: counter by counter, in either order, of the elements of both.
fn add_two(a: &Counting<'_>, b: &Counting<'_>, hashes: &[u64]) {
    let value = match (add_filters(a, b), add_filters(b, a), refusal(&a.header, &b.header)) {
        (Ok(value), Ok(other), None) => {
            assert_eq!(value, other, "not commutative");
            value
        }
        (Err(error), Err(other), Some(class)) => {
            assert_eq!((error.class(), other.class()), (class, class));
            return;
        }
        (one, other, expected) => panic!("{one:?}, {other:?} where {expected:?}"),
    };
    let (larger, x, y) = (larger(&a.header, &b.header), Numbers::of(a), Numbers::of(b));
    let mut numbers = if a.header.is_unsized() { y.clone() } else { x.clone() };
    if !a.header.is_unsized() && !b.header.is_unsized() {
        numbers
            .counters
            .iter_mut()
            .zip(&y.counters)
            .for_each(|(n, other)| *n = (*n + other).min(MOST));
    }
    let kind = if a.header.kind.is_none() { b.header.kind } else { a.header.kind };
    same(&value, &larger, kind, &numbers);
    let both = Counting::parse(&value).expect("a sum is a filter");
    assert_eq!(summed_header(&a.header, &b.header), Ok(both.header));
    assert!(
        hashes
            .iter()
            .all(|&hash| !(x.has(hash) || y.has(hash)) || both.contains(hash)),
        "a false negative"
    );
    // Adding the empty filter changes nothing.
    for nothing in [
        empty::<Vec<u8>>(&both.header),
        empty(&unsized_header(0.01).expect("a possible rate")),
    ] {
        let nothing = Counting::parse(&nothing).expect("a filter without elements");
        assert_eq!(add_filters(&both, &nothing).as_ref(), Ok(&value), "no identity");
    }
    // The bits of the sum are those of either.
    let [x, y, both] = [a, b, &both].map(|filter| filter.to_bloom::<Vec<u8>>());
    let [x, y] = [&x, &y].map(|value| View::parse(value).expect("a cast is a filter"));
    assert_eq!(merge::union(&x, &y, MAX_STORED_BYTES), Ok(both));
}

/// The sum of three is the same however it is bracketed.
fn add_three(a: &Counting<'_>, b: &Counting<'_>, c: &Counting<'_>) {
    let (Ok(ab), Ok(bc), Ok(_)) = (add_filters(a, b), add_filters(b, c), add_filters(a, c)) else {
        return;
    };
    let [ab, bc] = [&ab, &bc].map(|value| Counting::parse(value).expect("a sum is a filter"));
    assert_eq!(add_filters(&ab, c), add_filters(a, &bc), "not associative");
}
