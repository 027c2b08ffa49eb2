//! Warnings about overfull filters, or errors, as `pg_bloom.overfill` says.

use crate::error::invalid_parameter;
use crate::filter_type::FilterType::{self, Bloom, CountingBloom};
use crate::pg::call::error::warn;
use crate::pg::call::{Call, Error, Outcome};
use crate::pg::value::varlena::PgBuffer;
use crate::settings::{self, Overfill};
use pg_bloom_core::filter::overfull::{Overfull, overfull};

/// What to do about an overfull filter of a type.
type Advice = (FilterType, &'static str);

/// Of one that was built of its elements.
pub const BUILT: Advice =
    (Bloom, "Build it with a larger capacity, or with none to size it for what it sees.");
/// Of one that elements were added to.
pub const ADDED: Advice = (
    Bloom,
    "A filter doesn't grow when elements are added: begin it with bloom_empty(capacity).",
);
/// Of one that was merged from others.
pub const MERGED: Advice = (Bloom, "Build the filters with one capacity, enough for their union.");
/// Of one with counters.
pub const COUNTING: Advice =
    (CountingBloom, "Build it with a larger capacity, or remove elements.");

/// Other filters that the same call makes in a statement are not reported.
const OTHERS: &str = "Only the first such filter of a call is reported in a statement.";

/// Returns a filter as the result of a SQL function, after checking whether it is *overfull*: it
/// has more elements than its capacity. If so, warns the client or, if the setting
/// `pg_bloom.overfill` is `error`, fails with 22023; does neither if the setting is `ignore`. A
/// call site warns once in a statement. The advice says what the user can do.
pub fn finish(call: &Call, (filter_type, advice): Advice, filter: PgBuffer) -> Outcome {
    let overfill = settings::OVERFILL.get();
    let is_of_interest =
        overfill == Overfill::Error || (overfill == Overfill::Warn && !call.is_marked());
    if is_of_interest && let Some(over) = filter_type.whole(filter.bytes())?.with_bits(overfull) {
        if overfill == Overfill::Error {
            return Err(describe(&over, advice, ""));
        }
        call.mark();
        warn(describe(&over, advice, OTHERS));
    }
    Ok(Some(filter.into_datum()))
}

/// Returns the warning or error (22023) for an overfull filter: how many elements it has, and in
/// the hint `advice`, what the user can do. `others` is added to the detail.
///
/// If the number of elements doesn't exceed the capacity, the filter is *spread*: smaller filters
/// were merged into it, so that too many bits are set for its elements.
fn describe(over: &Overfull, advice: &str, others: &str) -> Error {
    let capacity = over.capacity;
    let spread = over.cardinality <= capacity as f64;
    let message = if spread {
        // Smaller filters were merged into it: each of their bits was spread over several.
        format!("bloom filter has more bits set than its capacity of {capacity} allows")
    } else if over.cardinality.is_finite() {
        format!(
            "bloom filter holds about {:.0} elements, but its capacity is {capacity}",
            over.cardinality
        )
    } else {
        format!(
            "bloom filter holds more elements than can be estimated, but its capacity is {capacity}"
        )
    };
    let (why, hint) = if spread {
        (
            ": bits of smaller filters were spread",
            "Build filters that will be merged with the same capacity.",
        )
    } else {
        ("", advice)
    };
    let detail = format!(
        "Its false positive rate is now {}, not {}{why}. {others}",
        significant(over.current_fpr),
        over.fpr
    );
    invalid_parameter(message).detail(detail.trim_end()).hint(hint)
}

/// A rate with two significant digits.
fn significant(rate: f64) -> String {
    if rate < 1e-4 {
        return format!("{rate:.1e}");
    }
    let digits = (1 - rate.log10().floor() as i32).clamp(1, 8) as usize;
    format!("{rate:.digits$}")
}
