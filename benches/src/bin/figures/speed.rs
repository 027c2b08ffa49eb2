//! What one element costs to add and to ask for, by the size of the filter. The only figure that
//! depends on the machine.

use pg_bloom_benches::plot::{Axis, INK, Panel, Picture, Side, colour};
use pg_bloom_benches::{machine, median};
use pg_bloom_core::canonical::scalar;
use pg_bloom_core::layout::Shape;
use pg_bloom_core::{DEFAULT_FPR, Layout, hash, hash::hash, sizing};
use std::hint::black_box;
use std::time::Instant;

/// Measurements of each thing.
const ROUNDS: usize = 7;
/// Elements that one measurement adds or asks for.
const ELEMENTS: i64 = 1 << 20;
/// Elements hashed before their bits are set or read, as an aggregate does.
const BATCH: i64 = 512;
/// Bits for each element that is added.
const BITS_LEFT: i64 = 64;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Sizes of filters: powers of two from 4 kB to 256 MB.
const EXPONENTS: std::ops::RangeInclusive<u32> = 12..=28;

const WORKS: [&str; 3] = ["add", "ask, present", "ask, absent"];

/// A filter of which half of the bits are set, as of one that is full. It isn't filled by adding
/// elements: the largest would take 200 million.
struct HalfFull {
    shape: Shape,
    bytes: Vec<u8>,
    /// Where the payload starts in `bytes`, on a cache line as in a filter that is remembered.
    start: usize,
}

impl HalfFull {
    fn new(layout: Layout, size: usize) -> HalfFull {
        let mut bytes = vec![0; size + LINE];
        let start = bytes.as_ptr().align_offset(LINE);
        let words = bytes[start..start + size].as_chunks_mut().0;
        words
            .iter_mut()
            .zip(0..)
            .for_each(|(bits, i)| *bits = hash::word(i, 0).to_le_bytes());
        let num_hashes = sizing::density(layout, DEFAULT_FPR)
            .expect("the rate is a usual one")
            .num_hashes;
        let shape = Shape {
            layout,
            num_hashes,
            blocks: size as u64 * 8 / layout.block_bits(),
        };
        HalfFull { shape, bytes, start }
    }

    fn size(&self) -> usize {
        self.bytes.len() - LINE
    }

    /// Nanoseconds an element of each of [`WORKS`].
    fn measure(&mut self) -> [f64; 3] {
        let shape = self.shape;
        // Few enough to leave about half of the bits as they are.
        let present = ELEMENTS.min(self.size() as i64 * 8 / BITS_LEFT).max(BATCH);
        let payload = &mut self.bytes[self.start..];
        let payload = &mut payload[..shape.payload_bytes() as usize];
        let add = time(1, present, |batch| shape.insert_all(black_box(payload), batch));
        let mut found = 0;
        let mut ask = |sign, different| {
            time(sign, different, |batch| {
                shape.contains_each(black_box(payload), batch, |is| found += u64::from(is));
            })
        };
        let times = [add, ask(1, present), ask(-1, ELEMENTS)];
        assert!(found >= ELEMENTS as u64, "an element is missing");
        times
    }
}

/// Nanoseconds for an integer to be hashed and worked on: `sign` times 1 to `different`, again and
/// again.
fn time(sign: i64, different: i64, mut work: impl FnMut(&[u64])) -> f64 {
    let mut batch = [0; BATCH as usize];
    let start = Instant::now();
    for first in (0..ELEMENTS).step_by(BATCH as usize) {
        let first = first % (different / BATCH * BATCH);
        batch
            .iter_mut()
            .zip(first + 1..)
            .for_each(|(h, i)| *h = hash(&scalar::integer(sign * i)));
        work(&batch);
    }
    start.elapsed().as_secs_f64() * 1e9 / ELEMENTS as f64
}

/// Medians by size, for each of [`WORKS`]. Rounds go over all sizes, so that other work of the
/// machine spoils a round, not a size.
fn curves(layout: Layout) -> [Vec<(f64, f64)>; 3] {
    let mut filters: Vec<HalfFull> = EXPONENTS
        .map(|exponent| HalfFull::new(layout, 1 << exponent))
        .collect();
    let mut times: Vec<[Vec<f64>; 3]> = vec![Default::default(); filters.len()];
    for _ in 0..ROUNDS {
        for (filter, times) in filters.iter_mut().zip(&mut times) {
            times
                .iter_mut()
                .zip(filter.measure())
                .for_each(|(times, time)| times.push(time));
        }
    }
    let mut curves: [Vec<(f64, f64)>; 3] = Default::default();
    for (times, filter) in times.iter_mut().zip(&filters) {
        for (curve, times) in curves.iter_mut().zip(times) {
            curve.push((filter.size() as f64, median(times)));
        }
    }
    curves
}

pub fn figure() -> Picture {
    let title = "What an element costs";
    let all = Layout::ALL.map(|layout| (layout, curves(layout)));
    let times = || {
        all.iter()
            .flat_map(|(_, curves)| curves.iter().flatten())
            .map(|point| point.1)
    };
    let (least, most) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    let sizes = [(14, "16 kB"), (20, "1 MB"), (26, "64 MB")];
    let sizes = sizes.map(|(exponent, label)| (f64::from(1u32 << exponent), label.to_owned()));
    let first_and_last = f64::from(1u32 << EXPONENTS.start())..f64::from(1u32 << EXPONENTS.end());
    let x = Axis::log("size of the filter", first_and_last, sizes);
    // Room for the names of the layouts above what the smallest filters take.
    let range = least / 1.25..most * 1.5;
    let ticks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map(f64::from).into_iter();
    let ticks = ticks
        .filter(|tick| range.contains(tick))
        .map(|tick| (tick, format!("{tick} ns")));
    let y = Axis::log("time per element", range.clone(), ticks.collect::<Vec<_>>());
    Picture::draw(title, &machine::describe(), 430, 3, |areas| {
        for (i, (area, work)) in areas.iter().zip(WORKS).enumerate() {
            let y = if i == 0 { y.clone() } else { y.unlabelled() };
            let mut panel = Panel::new(area, work, INK, x.clone(), y);
            for (j, (layout, curves)) in all.iter().enumerate() {
                panel.line(&curves[i], colour(*layout), 2.0);
                let height = range.end * (range.start / range.end).powf(0.06 + 0.07 * j as f64);
                let key = (f64::from(1u32 << (EXPONENTS.start() + 1)), height);
                if i == 0 {
                    panel.dots(&[key], colour(*layout), 3.5);
                    panel.label(key, Side::Right, layout.name(), colour(*layout));
                }
            }
        }
    })
}
