use super::*;

#[test]
fn floats_that_are_equal_are_one() {
    assert_eq!(float(-0.0), float(0.0));
    assert_eq!(float(f64::NAN), float(-f64::NAN));
    assert_eq!(float(f64::from_bits(0x7FF0_0000_0000_0001)), float(f64::NAN));
    assert_eq!(float32(-0.0), [0; 4]);
    assert_eq!(float(f64::from(1.5f32)), 1.5f64.to_le_bytes());
}

#[test]
fn days_and_microseconds_count_from_1970() {
    assert_eq!(date(-10_957), 0i32.to_le_bytes());
    assert_eq!(date(i32::MAX), i32::MAX.to_le_bytes());
    assert_eq!(timestamp(-946_684_800_000_000), 0i64.to_le_bytes());
    assert_eq!(timestamp(i64::MIN), i64::MIN.to_le_bytes());
    // The largest date of PostgreSQL, 5874897-12-31, does not wrap yet.
    assert_eq!(date(2_145_031_948), (2_145_031_948i32.wrapping_add(10_957)).to_le_bytes());
}

#[test]
fn times_and_intervals_are_frozen() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&integer(86_400_000_000)), "0060d71d14000000");
    assert_eq!(hex(&timetz(1, -7200)), "0100000000000000e0e3ffff");
    assert_eq!(interval(1, 0, 0), interval(0, 30, 0));
    assert_eq!(interval(0, 1, -86_400_000_000), [0; 16]);
    assert_eq!(hex(&interval(0, 0, -1)), "f".repeat(32));
    assert_eq!(hex(&interval(i32::MAX, i32::MAX, i64::MAX)), "ff5feb62904d8a4e3801000000000000");
    assert_eq!(hex(&integer(-2)), "feffffffffffffff");
}

#[test]
fn blanks_only_at_the_end() {
    assert_eq!(without_trailing_blanks(b" a b  "), b" a b");
    assert_eq!(without_trailing_blanks(b"   "), b"");
}

#[test]
fn char_above_127_prints_in_octal() {
    assert_eq!(single_char(200).as_bytes(), b"\\310");
    assert_eq!(single_char(b'a').as_bytes(), b"a");
    assert_eq!(single_char(0).as_bytes(), b"");
}
