//! Arbitrary numbers for everything that computes sizes and rates: never a panic, and what is
//! promised holds.

use super::forge::Input;
use pg_bloom_core::layout::Shape;
use pg_bloom_core::sizing::{rate, table};
use pg_bloom_core::{Class, Header, Kind, Layout, filter, sizing};

/// How much a rate may be off by rounding.
const ROUNDING: f64 = 1.0 + 1e-9;

/// An input is a layout, a capacity, a rate, a number of bytes, and a number of hashes and of
/// blocks.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let layout = Layout::ALL[usize::from(input.byte()) % Layout::ALL.len()];
    let capacity = input.number() >> (input.byte() % 64);
    let fpr = rate_of(&mut input);
    let bytes = input.number() >> (input.byte() % 64);
    let hashes = 1 + u32::from(input.byte()) % 64;
    let blocks = (input.number() >> (input.byte() % 64)).max(1);
    expected(layout, hashes, blocks, capacity);
    if refused(layout, fpr) {
        return;
    }
    practice(layout, fpr);
    let capacity = capacity.clamp(1, i64::MAX as u64);
    size(layout, capacity, fpr);
    power_of_two(layout, capacity, fpr);
    for_bytes(layout, bytes, fpr);
}

/// A rate: any float, or one of a filter that somebody may want.
fn rate_of(input: &mut Input<'_>) -> f64 {
    let (sort, number) = (input.byte(), input.number());
    match sort % 4 {
        0 => f64::from_bits(number),
        1 => 0.1f64.powf(number as f64 / u64::MAX as f64 * 9.0),
        2 => number as f64 / u64::MAX as f64,
        _ => [0.01, 0.001, 0.1, 1e-6, 1e-9, 0.5, 0.25, 0.5 + f64::EPSILON][(number % 8) as usize],
    }
}

/// Whether a rate can't be kept: then everything says so.
fn refused(layout: Layout, fpr: f64) -> bool {
    let possible = fpr >= sizing::least_fpr(layout) && fpr <= 0.5;
    let answers = [
        sizing::check_fpr(layout, fpr).err(),
        sizing::density(layout, fpr).err(),
        sizing::size_for_capacity(layout, 1, fpr).err(),
        sizing::power_of_two_size(layout, 1, fpr).err(),
        filter::capacity_for_bytes(layout, 1 << 20, fpr).err(),
        table::best_practice(layout, fpr).err(),
    ];
    for answer in answers {
        assert_eq!(
            answer.map(|error| error.class()),
            (!possible).then_some(Class::InvalidParameter),
            "{fpr:e}"
        );
    }
    !possible
}

/// The lookup table's answer meets the rate, and no smaller row does.
fn practice(layout: Layout, fpr: f64) {
    let found = table::best_practice(layout, fpr).expect("the rate was checked");
    assert!(found.fpr <= fpr && (1..=64).contains(&found.num_hashes), "{found:?}");
    let meets = |row: &table::SizingRow| row.cells().any(|cell| cell.fpr <= fpr);
    assert!(table::rows(layout).all(|row| row.bits >= found.bits || !meets(&row)), "{found:?}");
}

/// A filter for a capacity keeps its rate at it, is the smallest below 64 blocks and close to it
/// above, and none for more elements is smaller.
fn size(layout: Layout, capacity: u64, fpr: f64) {
    let size = match sizing::size_for_capacity(layout, capacity, fpr) {
        Ok(size) => size,
        Err(error) => {
            assert!(
                error.class() == Class::TooLarge && capacity > 1 << 40,
                "{error:?} for {capacity} at {fpr:e}"
            );
            return;
        }
    };
    assert!((1..=64).contains(&size.num_hashes) && size.blocks > 0, "{size:?}");
    let at_capacity = rate::expected(size.shape(), capacity as f64);
    assert!(at_capacity <= fpr * ROUNDING, "{at_capacity:e} for {size:?}");
    let on_grid = size.blocks >= if layout == Layout::Classic { 1024 } else { 64 };
    let fewer = if on_grid { (size.blocks as f64 * 0.975) as u64 } else { size.blocks - 1 };
    let too_few = if fewer == 0 {
        1.0
    } else {
        rate::expected(Shape { blocks: fewer, ..size.shape() }, capacity as f64)
    };
    assert!(too_few > fpr / ROUNDING, "{fewer} blocks would do: {size:?}");
    if let Ok(next) = sizing::size_for_capacity(layout, capacity + 1, fpr) {
        assert!(next.blocks >= size.blocks, "{next:?} after {size:?}");
    }
    let header = Header::with_size(size, Kind::NONE);
    if header.check_size(pg_bloom_core::MAX_STORED_BYTES).is_ok()
        && size.blocks <= sizing::max_blocks(layout)
    {
        let fits =
            filter::capacity_for_bytes(layout, header.dense_bytes(), fpr).expect("it fits itself");
        assert!(fits >= capacity, "{fits} for {size:?}");
    }
}

/// A build that is sized at its end keeps its rate with what it saw.
fn power_of_two(layout: Layout, elements: u64, fpr: f64) {
    let elements = elements % (1 << 42);
    let size = sizing::power_of_two_size(layout, elements, fpr).expect("the rate was checked");
    assert!(size.blocks.is_power_of_two() && size.capacity >= elements, "{size:?} for {elements}");
    let rate = rate::expected(size.shape(), elements as f64);
    assert!(rate <= fpr, "{rate:e} for {size:?} and {elements}");
}

/// The largest capacity that fits so many bytes does fit them.
fn for_bytes(layout: Layout, bytes: u64, fpr: f64) {
    let capacity = match filter::capacity_for_bytes(layout, bytes, fpr) {
        Ok(capacity) => capacity,
        Err(error) => return assert_eq!(error.class(), Class::InvalidParameter),
    };
    let bytes_of = |capacity: u64| {
        let blocks = sizing::size_for_capacity(layout, capacity, fpr)
            .map(|size| size.blocks)
            .ok()?;
        Some(filter::HEADER_BYTES as u64 + layout.payload_bytes(blocks))
    };
    // Above 2^53 a capacity is a float and may be off by its last bits, and above 2^62 bits there
    // are no filters.
    if capacity >= 1 << 50 {
        return;
    }
    assert!(
        capacity >= 1 && bytes_of(capacity).is_some_and(|n| n <= bytes),
        "{capacity} for {bytes} at {fpr:e}"
    );
    assert!(
        bytes_of(capacity + 1).is_none_or(|n| n > bytes),
        "{capacity} + 1 for {bytes} at {fpr:e}"
    );
}

/// A rate is a probability for any parameters, and grows with the elements.
fn expected(layout: Layout, hashes: u32, blocks: u64, elements: u64) {
    let hashes = if layout == Layout::Parquet { 8 } else { hashes };
    let blocks = blocks.min(i64::MAX as u64 / layout.block_bits());
    let rates = [
        elements,
        elements.saturating_add(1),
        elements.saturating_add(1).saturating_mul(2),
    ]
    .map(|elements| rate::expected(Shape { layout, num_hashes: hashes, blocks }, elements as f64));
    assert!(rates.iter().all(|rate| (0.0..=1.0).contains(rate)), "{rates:?}");
    assert!(rates.is_sorted_by(|a, b| *a <= b * ROUNDING), "{rates:?} for {elements} in {blocks}");
}
