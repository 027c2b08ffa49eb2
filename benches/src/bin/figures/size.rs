//! How large a filter is by what it holds: sparse and dense, with a capacity and without.

use pg_bloom_benches::plot::{Axis, GREY, PURPLE, Panel, Picture, Side, colour};
use pg_bloom_core::canonical::scalar;
use pg_bloom_core::filter::Header;
use pg_bloom_core::filter::build;
use pg_bloom_core::kind::{Kind, Tag};
use pg_bloom_core::{DEFAULT_FPR, Layout, MAX_STORED_BYTES, hash::hash, sizing};

const LAYOUT: Layout = Layout::Blocked;
const MOST: usize = 10_000_000;
const CAPACITIES: [(usize, &str); 2] = [(10_000, "10,000"), (1_000_000, "1,000,000")];

/// Numbers of elements from one to `most`, evenly on a logarithmic scale.
fn numbers(most: usize) -> Vec<usize> {
    let steps = (most as f64).log10() * 100.0;
    let mut numbers: Vec<usize> = (0..=steps.round() as u32)
        .map(|i| (most as f64).powf(f64::from(i) / steps).round() as usize)
        .collect();
    numbers.dedup();
    numbers
}

/// Bytes of filters that are built with this header from so many integers.
fn bytes(header: &Header<'_>, most: usize) -> Vec<(f64, f64)> {
    let all: Vec<u64> = (0..most as i64).map(|i| hash(&scalar::integer(i))).collect();
    let mut sizes: Vec<(f64, f64)> = Vec::new();
    for elements in numbers(most) {
        let mut hashes = all[..elements].to_vec();
        hashes.sort_unstable();
        let filter: Vec<u8> =
            build::from_hashes(header, &hashes, MAX_STORED_BYTES).expect("the filter is small");
        add_point(&mut sizes, (elements as f64, filter.len() as f64));
    }
    sizes
}

/// A level stretch is drawn by its two ends, a jump straight up.
fn add_point(sizes: &mut Vec<(f64, f64)>, (elements, size): (f64, f64)) {
    match sizes[..] {
        [.., (_, before), (_, last)] if before == last && last == size => {
            sizes.pop();
        }
        [.., (_, last)] if size > 1.3 * last => sizes.push((elements, last)),
        _ => {}
    }
    sizes.push((elements, size));
}

pub fn figure() -> Picture {
    let title = "A filter costs what it holds";
    let subtitle = "Stored bytes of filters of 1 to 10,000,000 integers, layout blocked, rate 0.01";
    let x = Axis::log("elements held", 1.0..2e8, (0..=7).map(|i| (10f64.powi(i), count_label(i))));
    let y = Axis::log("bytes", 40.0..4e7, (2..=7).map(|i| (10f64.powi(i), size_label(i))));
    Picture::draw(title, subtitle, 480, 1, |areas| {
        let mut panel = Panel::new(&areas[0], "", GREY, x, y);
        let density = sizing::density(LAYOUT, DEFAULT_FPR).expect("the rate is a usual one");
        let least = [40.0, MOST as f64]
            .map(|elements| (elements, elements * density.bits_per_element / 8.0));
        panel.line(&least, GREY, 1.0);
        panel.label(
            (160.0, 150.0),
            Side::Right,
            &format!("the least: {:.2} bits per element", density.bits_per_element),
            GREY,
        );
        let kind = Kind::unnamed(Tag::Integer);
        let unsized_ = bytes(&Header { kind, ..Header::without_size(LAYOUT, DEFAULT_FPR) }, MOST);
        panel.line(&unsized_, PURPLE, 2.0);
        panel.note(unsized_[unsized_.len() - 1], "no capacity", "bloom_agg(x)", PURPLE);
        for (capacity, written) in CAPACITIES {
            let size = sizing::size_for_capacity(LAYOUT, capacity as u64, DEFAULT_FPR)
                .expect("the rate is a usual one");
            let sizes = bytes(&Header::with_size(size, kind), capacity);
            let end = sizes[sizes.len() - 1];
            panel.line(&sizes, colour(LAYOUT), 2.0);
            panel.dots(&[end], colour(LAYOUT), 3.5);
            panel.note(
                end,
                &format!("capacity {written}"),
                &format!("bloom_agg(x, {capacity})"),
                colour(LAYOUT),
            );
        }
        panel.label((1.6e4, 1.4e5), Side::Left, "sparse: 8 bytes per element", GREY);
        panel.label((3.9e5, 1.3e6), Side::Above, "dense", GREY);
    })
}

fn count_label(exponent: i32) -> String {
    [
        "1",
        "10",
        "100",
        "1,000",
        "10,000",
        "100,000",
        "1 million",
        "10 million",
    ][exponent as usize]
        .into()
}

fn size_label(exponent: i32) -> String {
    [
        "1 B", "10 B", "100 B", "1 kB", "10 kB", "100 kB", "1 MB", "10 MB",
    ][exponent as usize]
        .into()
}
