//! What one element costs to add and to ask for, by the size of the filter. The only figure that depends on the machine.

use crate::plot::{Axis, Panel, Picture, Side, colour};
use pg_bloom_benches::{machine, median};
use pg_bloom_core::{DEFAULT_FPR, Layout, element, hash, hash::hash, sizing};
use std::hint::black_box;
use std::time::Instant;

/// Measurements of each thing.
const ROUNDS: usize = 7;
/// Elements that one measurement adds or asks for.
const ELEMENTS: i64 = 1 << 20;
/// Elements hashed before their bits are set or read, as an aggregate does.
const BATCH: i64 = 512;
/// Sizes of filters: powers of two from 4 KiB to 256 MiB.
const EXPONENTS: std::ops::RangeInclusive<u32> = 12..=28;

const WORKS: [&str; 3] = ["add", "ask, present", "ask, absent"];

/// A filter of this size with random bits, half of them set, as one that is full has. It isn't filled by adding elements:
/// the largest would take 200 million.
fn half_full(layout: Layout, bytes: usize) -> (u64, Vec<u8>) {
    let blocks = bytes as u64 * 8 / layout.block_bits();
    let payload = (0..bytes as u64 / 8).flat_map(|i| hash::word(i, 0).to_le_bytes()).collect();
    (blocks, payload)
}

/// Nanoseconds an element of each of [`WORKS`].
fn measure(layout: Layout, hashes: u32, blocks: u64, payload: &mut [u8]) -> [f64; 3] {
    let batches = |sign: i64, work: &mut dyn FnMut(&[u64])| {
        let mut batch = [0; BATCH as usize];
        let start = Instant::now();
        for first in (1..=ELEMENTS).step_by(BATCH as usize) {
            batch.iter_mut().zip(first..).for_each(|(h, i)| *h = hash(&element::integer(sign * i)));
            work(&batch);
        }
        start.elapsed().as_secs_f64() * 1e9 / ELEMENTS as f64
    };
    let mut found = 0;
    let add = batches(1, &mut |batch| layout.insert_all(black_box(payload), hashes, blocks, batch));
    let mut ask = |sign| {
        batches(sign, &mut |batch| {
            layout.contains_each(black_box(payload), hashes, blocks, batch, |is| found += u64::from(is));
        })
    };
    let (present, absent) = (ask(1), ask(-1));
    assert!(found >= ELEMENTS as u64, "an element is missing");
    [add, present, absent]
}

/// Medians by size, for each of [`WORKS`].
fn curves(layout: Layout) -> [Vec<(f64, f64)>; 3] {
    let hashes = sizing::density(layout, DEFAULT_FPR).expect("the rate is a usual one").hashes;
    let mut curves: [Vec<(f64, f64)>; 3] = Default::default();
    for exponent in EXPONENTS {
        let (blocks, mut payload) = half_full(layout, 1 << exponent);
        let mut times: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            let measured = measure(layout, hashes, blocks, &mut payload);
            times.iter_mut().zip(measured).for_each(|(times, time)| times.push(time));
        }
        for (curve, times) in curves.iter_mut().zip(&mut times) {
            curve.push((f64::from(1u32 << exponent), median(times)));
        }
    }
    curves
}

pub fn figure() -> Picture {
    let title = "What an element costs";
    let all = Layout::ALL.map(|layout| (layout, curves(layout)));
    let most = all.iter().flat_map(|(_, curves)| curves.iter().flatten()).map(|p| p.1).fold(0.0, f64::max);
    let most = (most / 10.0).floor() * 10.0 + 10.0;
    let sizes = [(12, "4 kB"), (16, "64 kB"), (20, "1 MB"), (24, "16 MB"), (28, "256 MB")];
    let sizes = sizes.map(|(exponent, label)| (f64::from(1u32 << exponent), label.to_owned()));
    let x = Axis::log("size of the filter", 2f64.powi(12)..2f64.powi(28), sizes);
    let step = if most > 60.0 { 20.0 } else { 10.0 };
    let ticks = (0..).map(|i| f64::from(i) * step).take_while(|&t| t <= most).map(|t| (t, format!("{t} ns")));
    let y = Axis::linear("an element", 0.0..most, ticks.collect::<Vec<_>>());
    Picture::draw(title, &machine::describe(), 430, 3, |areas| {
        for (i, (area, work)) in areas.iter().zip(WORKS).enumerate() {
            let y = if i == 0 { y.clone() } else { y.unlabelled() };
            let mut panel = Panel::new(area, work, crate::plot::INK, x.clone(), y);
            for (layout, curves) in &all {
                panel.line(&curves[i], colour(*layout), 2.0);
                let end = *curves[i].last().expect("there are points");
                panel.label(end, Side::Left, layout.name(), colour(*layout));
            }
        }
    })
}
