use super::*;

#[test]
fn occupancy_matches_hand_computed_values() {
    // Two throws into 512 cells: the second hits the first's cell once in 512.
    let mut chain = OccupancyChain::new(BLOCKED_BITS as usize);
    chain.throw();
    chain.throw();
    assert!((chain.probabilities[1] - 1.0 / 512.0).abs() < 1e-15);
    assert!((chain.probabilities[2] - 511.0 / 512.0).abs() < 1e-15);
}

#[test]
fn moments_join_the_exact_chain_smoothly() {
    for (k, n) in [(1, 150.0), (6, 107.0), (10, 71.0), (20, 36.0), (30, 24.0)] {
        let bits = MOST_CELLS_OF_CHAIN + 1;
        let mut chain = OccupancyChain::new(bits as usize);
        (0..(n * f64::from(k)) as u64).for_each(|_| chain.throw());
        let (exact, approximate) = (chain.moment(k), classic_rate(k, bits, n));
        assert!((approximate / exact - 1.0).abs() < 0.02, "k {k}: {approximate} for {exact}");
    }
}

#[test]
fn nearly_empty_filters_have_tiny_rates() {
    for (k, bits, n) in [
        (1, 1u64 << 60, 65.0),
        (2, 1_770_556_648_088_141_824, 65.0),
        (3, 1 << 40, 1e6),
        (2, 1 << 30, 3000.0),
    ] {
        let expected = (n * f64::from(k) / bits as f64).powi(k as i32);
        let found = classic_rate(k, bits, n);
        assert!((found / expected - 1.0).abs() < 1e-4, "k {k}: {found:e} for {expected:e}");
    }
    // Where the series ends and the differences begin.
    let rates = [0.999_999, 1.000_001]
        .map(|share| classic_rate(5, 1 << 40, SPARSE_LOAD * share / 5.0 * 40f64.exp2()));
    assert!((rates[1] / rates[0] - 1.0).abs() < 1e-4, "{rates:?}");
}

#[test]
fn poisson_is_the_limit_of_binomial() {
    for layout in Layout::ALL {
        let blocks = if layout == Layout::Classic { 1 << 30 } else { 1 << 22 };
        let load = layout.block_bits() as f64 / 12.0;
        let limit = at_load(layout, 8, load);
        let rate = expected(Shape { layout, num_hashes: 8, blocks }, load * blocks as f64);
        assert!((rate / limit - 1.0).abs() < 1e-4, "{layout:?}: {rate} {limit}");
    }
}

#[test]
fn rates_grow_with_elements_and_end_at_one() {
    for layout in Layout::ALL {
        let mut last = 0.0;
        for n in [1, 10, 100, 1000, 10_000, 1_000_000] {
            let rate = expected(Shape { layout, num_hashes: 8, blocks: 40 }, f64::from(n));
            assert!(rate >= last && rate <= 1.0, "{layout:?} {n}: {rate}");
            last = rate;
        }
        assert!(last > 0.999_999);
    }
    // The sum of this one's terms is 1.0000000000000018.
    assert_eq!(
        expected(Shape { layout: Layout::Blocked, num_hashes: 1, blocks: 1 }, 17_138.0),
        1.0
    );
}
