//! Bytes → the one parser: what it accepts is written again as the same bytes, whatever way it is
//! read.

use super::forge::{HEADER, damaged, repair};
use pg_bloom_core::filter::slices::{FilterStart, START_BYTES};
use pg_bloom_core::{Class, View};

/// An input is bytes to parse. They are tried as they are, repaired, and repaired with some of them
/// damaged again.
pub fn run(data: &[u8]) {
    check(data);
    for state in [false, true] {
        let whole = repair(data, state);
        let accepted = if state { View::parse_partial(&whole) } else { View::parse(&whole) };
        assert!(accepted.is_ok(), "{accepted:?} for what the format allows: {whole:x?}");
        check(&whole);
        check(&damaged(&whole, data, HEADER));
    }
}

/// Reads bytes in every way there is.
fn check(bytes: &[u8]) {
    let (filter, trusted, state) =
        (View::parse(bytes), View::parse_trusted(bytes), View::parse_partial(bytes));
    let start = FilterStart::parse(&bytes[..bytes.len().min(START_BYTES)], bytes.len());
    if let Ok(view) = &filter {
        assert_eq!(state.as_ref(), Ok(view), "a filter is a state");
        assert_eq!(trusted.as_ref(), Ok(view), "what is checked can be trusted");
    }
    if let Ok(view) = &state {
        assert_eq!(view.to_buffer::<Vec<u8>>(), bytes, "it is written as it was read");
        assert_eq!(view.stored_bytes(), bytes.len());
    }
    if let Ok(view) = &trusted {
        assert_eq!(
            start.as_ref().map(|start| start.header),
            Ok(view.header),
            "the start says what the whole does"
        );
    }
    for error in [filter.err(), state.err(), trusted.err(), start.err()]
        .into_iter()
        .flatten()
    {
        assert_eq!(error.class(), Class::InvalidBinary, "{error:?}");
    }
}
