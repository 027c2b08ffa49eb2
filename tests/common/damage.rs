//! Ways to damage a stored filter.

use super::Random;

/// Fields of the stored form: where they start and how long they are.
const FIELDS: [(usize, usize); 13] = [
    (0, 1),
    (1, 1),
    (2, 1),
    (3, 1),
    (4, 1),
    (5, 1),
    (6, 2),
    (8, 8),
    (16, 8),
    (24, 8),
    (32, 8),
    (40, 4),
    (44, 8),
];

/// A number that code may be wrong about, near `old` or at the edge of a type.
fn odd_number(random: &mut Random, old: u64) -> u64 {
    let near = [
        old ^ 1,
        old.wrapping_add(1),
        old.wrapping_sub(1),
        old << 1,
        old >> 1,
        old.swap_bytes(),
    ];
    let edge = [
        0,
        1,
        2,
        3,
        11,
        36,
        127,
        255,
        512,
        1 << 16,
        u64::from(u32::MAX),
        1 << 32,
        (1 << 62) / 511,
    ];
    let rates = [
        f64::NAN,
        f64::INFINITY,
        -0.0,
        1.0,
        5e-324,
        1.0 - f64::EPSILON,
        -0.01,
        1e308,
    ]
    .map(f64::to_bits);
    match random.below(4) {
        0 => *random.pick(&near),
        1 => *random.pick(&edge),
        2 => *random.pick(&[
            u64::MAX,
            1 << 63,
            i64::MAX as u64,
            random.0,
            random.0 >> 20,
            random.0 >> 44,
        ]),
        _ => *random.pick(&rates),
    }
}

/// Damages a filter in one of many ways.
pub fn damage(random: &mut Random, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    if bytes.is_empty() {
        bytes.extend(random.pick(seeds));
    }
    let len = bytes.len();
    match random.below(9) {
        0 => bytes[random.below(len)] ^= 1 << random.below(8),
        1 => bytes[random.below(len.min(44))] ^= 1 << random.below(8),
        2 | 3 => {
            let (start, width) = *random.pick(&FIELDS);
            if let Some(field) = bytes.get_mut(start..start + width) {
                let mut old = [0; 8];
                old[..width].copy_from_slice(field);
                field.copy_from_slice(
                    &odd_number(random, u64::from_le_bytes(old)).to_le_bytes()[..width],
                );
            }
        }
        4 => bytes.truncate(random.below(len + 1)),
        5 => bytes.extend(
            (0..random.below(40)).map(|i| (random.0 >> (i % 57)) as u8 * (random.0 & 1) as u8),
        ),
        6 => {
            let other = random.pick(seeds);
            bytes.truncate(44);
            bytes.extend(&other[other.len().min(44)..]);
        }
        7 => {
            let words = len.saturating_sub(44) / 8;
            if words > 1 {
                let (a, b) = (44 + 8 * random.below(words), 44 + 8 * random.below(words));
                (0..8).for_each(|i| bytes.swap(a + i, b + i));
            }
        }
        _ => bytes.rotate_left(random.below(len.min(3))),
    }
}

/// Stored bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold("\\x".into(), |text, byte| text + &format!("{byte:02x}"))
}
