//! Bits per element by false positive rate: what each layout costs and what it can't cost less
//! than.

use pg_bloom_benches::plot::{Axis, GREY, Panel, Picture, colour, rate_label};
use pg_bloom_core::{Layout, sizing};

/// Rates from one end to the other, evenly on a logarithmic scale.
fn rates(from: f64, to: f64, steps: u32) -> impl Iterator<Item = f64> {
    (0..=steps).map(move |i| from * (to / from).powf(f64::from(i) / f64::from(steps)))
}

/// Bits per element of a layout at each rate that it can keep.
fn bits(layout: Layout) -> Vec<(f64, f64)> {
    rates(0.5, sizing::least_fpr(layout), 160)
        .map(|fpr| {
            let fpr = fpr.max(sizing::least_fpr(layout));
            (
                fpr,
                sizing::density(layout, fpr)
                    .expect("the rate is one that the layout keeps")
                    .bits_per_element,
            )
        })
        .collect()
}

pub fn figure() -> Picture {
    let title = "What a false positive rate costs";
    let subtitle = "Bits per element at capacity, with the number of hashes that needs the fewest";
    Picture::draw(title, subtitle, 460, 1, |areas| {
        let ticks =
            [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9].map(|r| (r, rate_label(r)));
        // Room for labels beyond the last rate.
        let x = Axis::log("false positive rate", 0.5..2e-12, ticks);
        let bits_ticks = (0..=8).map(|i| (f64::from(i) * 10.0, format!("{}", i * 10)));
        let y = Axis::linear("bits per element", 0.0..84.0, bits_ticks);
        let mut panel = Panel::new(&areas[0], "", GREY, x, y);
        let bound = [0.5, 1e-9].map(|rate: f64| (rate, -rate.log2()));
        panel.line(&bound, GREY, 1.5);
        panel.note(bound[1], "any structure", "log₂(1/rate)", GREY);
        for layout in Layout::ALL {
            panel.line(&bits(layout), colour(layout), 2.25);
        }
        let notes = [
            "one 512-bit block",
            "1.44 · log₂(1/rate)",
            "eight 32-bit words",
        ];
        for (layout, note) in Layout::ALL.into_iter().zip(notes) {
            let end = *bits(layout).last().expect("there are points");
            panel.dots(&[end], colour(layout), 3.5);
            panel.note(end, &format!("{} {:.1}", layout.name(), end.1), note, colour(layout));
        }
    })
}
