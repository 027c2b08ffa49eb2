use super::*;
use crate::error::Class;
use crate::sizing::rate;

/// ClickHouse's table as its source has it: rows 0…20, columns k = 0…14 (unwritten cells 0), and
/// the k of each minimum.
mod clickhouse {
    #[rustfmt::skip]
    pub const TABLE: [&[f64]; 21] = [
        &[1.0],
        &[1.0, 1.0],
        &[1.0, 0.393, 0.400],
        &[1.0, 0.283, 0.237, 0.253],
        &[1.0, 0.221, 0.155, 0.147, 0.160],
        &[1.0, 0.181, 0.109, 0.092, 0.092, 0.101],
        &[1.0, 0.154, 0.0804, 0.0609, 0.0561, 0.0578, 0.0638],
        &[1.0, 0.133, 0.0618, 0.0423, 0.0359, 0.0347, 0.0364],
        &[1.0, 0.118, 0.0489, 0.0306, 0.024, 0.0217, 0.0216, 0.0229],
        &[1.0, 0.105, 0.0397, 0.0228, 0.0166, 0.0141, 0.0133, 0.0135, 0.0145],
        &[1.0, 0.0952, 0.0329, 0.0174, 0.0118, 0.00943, 0.00844, 0.00819, 0.00846],
        &[1.0, 0.0869, 0.0276, 0.0136, 0.00864, 0.0065, 0.00552, 0.00513, 0.00509],
        &[1.0, 0.08, 0.0236, 0.0108, 0.00646, 0.00459, 0.00371, 0.00329, 0.00314],
        &[1.0, 0.074, 0.0203, 0.00875, 0.00492, 0.00332, 0.00255, 0.00217, 0.00199, 0.00194],
        &[1.0, 0.0689, 0.0177, 0.00718, 0.00381, 0.00244, 0.00179, 0.00146, 0.00129, 0.00121, 0.0012],
        &[1.0, 0.0645, 0.0156, 0.00596, 0.003, 0.00183, 0.00128, 0.001, 0.000852, 0.000775, 0.000744],
        &[1.0, 0.0606, 0.0138, 0.005, 0.00239, 0.00139, 0.000935, 0.000702, 0.000574, 0.000505, 0.00047, 0.000459],
        &[1.0, 0.0571, 0.0123, 0.00423, 0.00193, 0.00107, 0.000692, 0.000499, 0.000394, 0.000335, 0.000302, 0.000287, 0.000284],
        &[1.0, 0.054, 0.0111, 0.00362, 0.00158, 0.000839, 0.000519, 0.00036, 0.000275, 0.000226, 0.000198, 0.000183, 0.000176],
        &[1.0, 0.0513, 0.00998, 0.00312, 0.0013, 0.000663, 0.000394, 0.000264, 0.000194, 0.000155, 0.000132, 0.000118, 0.000111, 0.000109],
        &[1.0, 0.0488, 0.00906, 0.0027, 0.00108, 0.00053, 0.000303, 0.000196, 0.00014, 0.000108, 8.89e-5, 7.77e-5, 7.12e-5, 6.79e-5, 6.71e-5],
    ];
    const MIN_K: [usize; 21] = [
        0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11, 12, 12, 13, 14,
    ];

    /// Its algorithm: bits, hashes, and the rate of that cell.
    pub fn best_practices(p: f64) -> (u32, u32, f64) {
        if p >= 0.283 {
            return (2, 2, TABLE[2][2]);
        }
        for bits in 1..20 {
            if TABLE[bits][MIN_K[bits]] <= p {
                for k in (1..=MIN_K[bits]).rev() {
                    if TABLE[bits][k] > p {
                        return (bits as u32, k as u32 + 1, TABLE[bits][k + 1]);
                    }
                }
            }
        }
        (19, 13, TABLE[19][13])
    }
}

#[test]
fn clickhouse_algorithm_is_copied_right() {
    for (p, bits, hashes) in [
        (0.9, 2, 2),
        (0.25, 3, 2),
        (0.225, 19, 13),
        (0.15, 4, 3),
        (0.1, 5, 3),
        (0.025, 8, 4),
        (0.01, 10, 5),
        (0.0005, 16, 10),
        (0.0001, 19, 13),
    ] {
        let (b, k, _) = clickhouse::best_practices(p);
        assert_eq!((b, k), (bits, hashes), "{p}");
    }
}

/// Rates all over 1e-9…0.5, and each cell of ClickHouse's table with its neighbours.
fn wanted_rates() -> Vec<f64> {
    let mut rates: Vec<f64> = (302..9000)
        .map(|i| 10f64.powf(-f64::from(i) / 1000.0) * 0.999_999)
        .collect();
    for &cell in clickhouse::TABLE
        .iter()
        .flat_map(|row| row.iter())
        .filter(|&&c| c < 0.499)
    {
        rates.extend([cell * (1.0 - 1e-9), cell, cell * (1.0 + 1e-9)]);
    }
    rates
}

#[test]
fn agrees_with_clickhouse_wherever_it_meets_the_rate() {
    let (mut equal, mut differ) = (0, 0);
    for p in wanted_rates() {
        let ours = best_practice(Layout::Classic, p).unwrap();
        assert!(ours.fpr <= p, "{p}: {ours:?}");
        let (bits, hashes, rate) = clickhouse::best_practices(p);
        if rate <= p && !(0.221..0.237).contains(&p) {
            // Where a cell of theirs is one unit of the third digit beside the formula, the answer
            // at just that rate differs.
            let edge = clickhouse::TABLE
                .iter()
                .enumerate()
                .flat_map(|(b, row)| row.iter().enumerate().map(move |(k, &cell)| (b, k, cell)))
                .filter(|&(b, k, _)| b >= 2 && k >= 1)
                .any(|(b, k, theirs)| {
                    let mine = rows(Layout::Classic).nth(b - 2).unwrap().rates[k - 1].rate();
                    mine != theirs && (mine.min(theirs)..=mine.max(theirs)).contains(&p)
                });
            if edge {
                continue;
            }
            assert_eq!((ours.bits, ours.num_hashes), (bits, hashes), "{p}");
            equal += 1;
        } else {
            differ += 1;
        }
    }
    assert!(equal > 3000 && differ > 3000, "{equal} {differ}");
}

#[test]
fn cells_are_within_one_digit_of_clickhouse() {
    for (row, theirs) in rows(Layout::Classic).zip(&clickhouse::TABLE[2..]) {
        for (mine, &theirs) in row.cells().zip(&theirs[1..]) {
            assert!(
                (mine.fpr / theirs - 1.0).abs() < 0.011,
                "{} bits, {mine:?}: {theirs}",
                row.bits
            );
        }
    }
}

#[test]
fn well_known_answers() {
    for (p, bits, hashes) in [
        (0.025, 8, 4),
        (0.01, 10, 5),
        (0.001, 15, 7),
        (0.225, 4, 1),
        (0.3, 3, 1),
        (0.395, 2, 1),
    ] {
        let found = best_practice(Layout::Classic, p).unwrap();
        assert_eq!((found.bits, found.num_hashes), (bits, hashes), "{p}");
    }
}

#[test]
fn cells_come_from_the_formulas() {
    for layout in Layout::ALL {
        for row in rows(layout) {
            let load = layout.block_bits() as f64 / f64::from(row.bits);
            for cell in row.cells() {
                let exact = rate::at_load(layout, cell.num_hashes, load);
                // Cells have three significant digits.
                assert!(
                    (exact / cell.fpr - 1.0).abs() < 0.00501,
                    "{layout:?} {} bits, {cell:?}: {exact}",
                    row.bits
                );
            }
        }
    }
}

#[test]
fn tables_reach_the_least_rate_without_holes() {
    for layout in Layout::ALL {
        let least = crate::sizing::least_fpr(layout);
        assert!(best_practice(layout, least).is_ok());
        assert_eq!(
            best_practice(layout, least / 2.0).unwrap_err().class(),
            Class::InvalidParameter
        );
        let mut bits = 0;
        for p in wanted_rates().into_iter().filter(|&p| p >= least) {
            let found = best_practice(layout, p).unwrap();
            assert!(found.fpr <= p);
            // The row before doesn't meet the rate.
            assert!(
                found.bits == 2
                    || rows(layout)
                        .nth(found.bits as usize - 3)
                        .unwrap()
                        .cells()
                        .all(|cell| cell.fpr > p)
            );
            bits = bits.max(found.bits);
        }
        assert!(bits > 20);
    }
}
