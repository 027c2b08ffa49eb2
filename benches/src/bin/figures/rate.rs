//! The promised rate, the formula's and the measured one, from an empty filter to twice its
//! capacity.

use pg_bloom_benches::plot::{Axis, GREY, Panel, Picture, colour, rate_label};
use pg_bloom_core::canonical::scalar;
use pg_bloom_core::filter::build;
use pg_bloom_core::filter::{Body, Header, View};
use pg_bloom_core::kind::{Kind, Tag};
use pg_bloom_core::sizing::rate;
use pg_bloom_core::{Layout, MAX_STORED_BYTES, hash::hash, sizing};

const PROMISES: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5];
const CAPACITY: i64 = 1_000_000;
/// A measurement is made after each of so many steps to twice the capacity.
const STEPS: i64 = 20;
/// Wrong answers that are enough, and the most absent elements that are asked for to get them.
const ENOUGH: u64 = 1000;
const MOST: i64 = 1 << 25;
/// The least rate that is shown: one that the most elements still measure.
const LEAST: f64 = 1e-6;
/// Absent elements asked for at a time.
const BATCH: i64 = 1 << 14;

/// The filter with the integers `from..to` added, as an aggregate adds them.
fn add(filter: &[u8], from: i64, to: i64) -> Vec<u8> {
    let mut hashes: Vec<u64> = (from..to).map(|i| hash(&scalar::integer(i))).collect();
    hashes.sort_unstable();
    let view = View::parse(filter).expect("the filter was made here");
    let parquet = view.header.layout == Layout::Parquet;
    let kind = Kind::unnamed(if parquet { Tag::ParquetInt64 } else { Tag::Integer });
    build::add_hashes(&view, kind, &hashes, MAX_STORED_BYTES).expect("the filter is small")
}

/// The share of absent elements that a filter finds, or `None` while it is sparse and finds none.
fn measure(filter: &[u8]) -> Option<f64> {
    let view = View::parse(filter).expect("the filter was made here");
    let Body::Dense(bits) = view.body else {
        return None;
    };
    let (mut asked, mut found) = (0, 0);
    while asked < MOST && found < ENOUGH {
        let absent: Vec<u64> = (asked + 1..=asked + BATCH)
            .map(|i| hash(&scalar::integer(-i)))
            .collect();
        view.header
            .shape()
            .contains_each(bits, &absent, |is| found += u64::from(is));
        asked += BATCH;
    }
    Some(found as f64 / asked as f64)
}

/// What was measured at one promise: shares of the capacity, and rates.
struct Curve {
    formula: Vec<(f64, f64)>,
    measured: Vec<(f64, f64)>,
}

fn curve(layout: Layout, fpr: f64) -> Curve {
    let size = sizing::size_for_capacity(layout, CAPACITY as u64, fpr)
        .expect("the rate is one that the layout keeps");
    let header = Header::with_size(size, Kind::NONE);
    let expected = |elements: f64| rate::expected(size.shape(), elements);
    let step = 2 * CAPACITY / STEPS;
    let mut filter: Vec<u8> = header.sparse(0);
    let mut measured = Vec::new();
    for i in 1..=STEPS {
        filter = add(&filter, (i - 1) * step, i * step);
        let elements = (i * step) as f64;
        if expected(elements) >= LEAST
            && let Some(rate) = measure(&filter)
        {
            measured.push((elements / CAPACITY as f64, rate));
        }
    }
    // The first number of elements whose hashes take more than the bits.
    let dense = (header.payload_bytes() / 8 + 1) as f64;
    let shares = (0..=100).map(|i| dense + (2.0 * CAPACITY as f64 - dense) * f64::from(i) / 100.0);
    Curve {
        formula: shares.map(|n| (n / CAPACITY as f64, expected(n))).collect(),
        measured,
    }
}

pub fn figure() -> Picture {
    let title = "The rate that was promised is the rate that is measured";
    let subtitle = "Filters for 1,000,000 integers, at 0.1 … 10⁻⁵. Line: formula. Dots: measured. Ring: promise.";
    let percent = [
        (0.0, "0"),
        (0.5, "50 %"),
        (1.0, "100 %"),
        (1.5, "150 %"),
        (2.0, "200 %"),
    ];
    let percent = percent.map(|(share, label)| (share, label.to_owned()));
    let x = Axis::linear("elements added, of capacity", 0.0..2.0, percent);
    let decades = (0..=6).map(|i| 10f64.powi(-i)).map(|rate| (rate, rate_label(rate)));
    let y = Axis::log("false positive rate", LEAST..1.0, decades);
    Picture::draw(title, subtitle, 470, 3, |areas| {
        for (i, (area, layout)) in areas.iter().zip(Layout::ALL).enumerate() {
            let y = if i == 0 { y.clone() } else { y.unlabelled() };
            let mut panel = Panel::new(area, layout.name(), colour(layout), x.clone(), y);
            panel.line(&[(1.0, LEAST), (1.0, 1.0)], GREY, 1.0);
            let curves = PROMISES.map(|fpr| curve(layout, fpr));
            for curve in &curves {
                panel.line(&curve.formula, colour(layout), 1.25);
            }
            panel.rings(&PROMISES.map(|fpr| (1.0, fpr)), GREY, 5.0);
            for curve in &curves {
                panel.dots(&curve.measured, colour(layout), 2.25);
            }
        }
    })
}
