//! The promised rate, measured: filters filled to capacity, for every layout and rate.
//!
//! A rate is measured over several sets and many absent elements. The number of wrong answers of
//! one filter varies more than a coin's, since filters differ; so what is compared is the mean over
//! sets with its own standard error.

use pg_bloom_core::filter::{Header, View};
use pg_bloom_core::hash::word;
use pg_bloom_core::kind::{Kind, Tag};
use pg_bloom_core::layout::Layout;
use pg_bloom_core::sizing;
use pg_bloom_core::sizing::rate;

const RATES: [f64; 8] = [0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-5, 1e-6];

/// The share of `probes` absent elements that a dense filter of `elements` others finds. Hashes
/// come from SplitMix64, whose outputs for different counters are different.
fn measure(size: &sizing::FilterSize, elements: u64, set: u64, probes: u64) -> f64 {
    let header = Header::with_size(*size, Kind::unnamed(Tag::Numeric));
    let mut value: Vec<u8> = header.dense();
    let payload = &mut value[header.prefix_bytes()..];
    let seed = word(set, 77);
    let hash = |i: u64| word(seed.wrapping_add(i.wrapping_mul(0x632B_E59B_D9B4_E019)), 0);
    let mut batch = Vec::with_capacity(4096);
    for start in (0..elements).step_by(4096) {
        batch.clear();
        batch.extend((start..elements.min(start + 4096)).map(hash));
        header.shape().insert_all(payload, &batch);
    }
    let view = View::parse(&value).unwrap();
    let pg_bloom_core::Body::Dense(bits) = view.body else {
        unreachable!()
    };
    let contains = |h| header.shape().contains(bits, h);
    assert!((0..elements.min(20_000)).all(|i| contains(hash(i))), "a false negative");
    let found = (elements..elements + probes).filter(|&i| contains(hash(i))).count();
    found as f64 / probes as f64
}

/// Measures at capacity and checks promise and formula within four standard errors.
fn check(
    capacity: u64,
    sets: u64,
    rates: impl Iterator<Item = f64> + Clone,
    probes: impl Fn(f64) -> u64,
) {
    for layout in Layout::ALL {
        for fpr in rates.clone() {
            let size = sizing::size_for_capacity(layout, capacity, fpr).unwrap();
            let expected = rate::expected(size.shape(), capacity as f64);
            let measured: Vec<f64> = (0..sets)
                .map(|set| measure(&size, capacity, set, probes(expected)))
                .collect();
            let mean = measured.iter().sum::<f64>() / sets as f64;
            let spread =
                measured.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (sets - 1) as f64;
            // Few sets know their own spread badly: never less than that of the probes alone.
            let probes = (probes(expected) * sets) as f64;
            let error = (spread / sets as f64).max(expected / probes).sqrt();
            let label = format!(
                "{} {fpr} {capacity}: {mean:.4e}, expected {expected:.4e} ± {error:.1e}",
                layout.name()
            );
            assert!(expected <= fpr, "{label}");
            assert!((mean - expected).abs() <= 4.5 * error, "{label}");
            assert!(mean <= fpr + 4.5 * error, "{label}");
        }
    }
}

#[test]
fn at_ten_elements() {
    check(10, 2000, RATES.into_iter(), |rate| ((20.0 / rate) as u64).clamp(100, 4000));
}

#[test]
fn at_a_thousand_elements() {
    check(1000, 100, RATES.into_iter(), |rate| ((50.0 / rate) as u64).clamp(1000, 200_000));
}

#[test]
fn at_a_hundred_thousand_elements() {
    check(100_000, 8, RATES.into_iter(), |rate| ((400.0 / rate) as u64).clamp(10_000, 3_000_000));
}

#[test]
fn at_four_million_elements() {
    check(4_000_000, 2, RATES.into_iter().step_by(3), |rate| {
        ((400.0 / rate) as u64).clamp(100_000, 3_000_000)
    });
}
