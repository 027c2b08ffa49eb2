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
            return Err(describe(&over, advice, None));
        }
        call.mark();
        warn(describe(&over, advice, Some(OTHERS)));
    }
    Ok(Some(filter.into_datum()))
}

/// Returns the warning or error (22023) for an overfull filter: how many elements it has, and in
/// the hint `advice`, what the user can do. `more_detail` is a sentence that is added to the
/// detail.
///
/// If the number of elements doesn't exceed the capacity, the filter is *spread*: smaller filters
/// were merged into it, each of whose bits became several, so that too many bits are set for its
/// elements.
fn describe(overfull: &Overfull, advice: &str, more_detail: Option<&str>) -> Error {
    let capacity = overfull.capacity;
    let elements = overfull.cardinality;
    let is_spread = elements <= capacity as f64;
    let message = if is_spread {
        format!("bloom filter has more bits set than its capacity of {capacity} allows")
    } else if elements.is_finite() {
        format!("bloom filter holds about {elements:.0} elements, but its capacity is {capacity}")
    } else {
        format!(
            "bloom filter holds more elements than can be estimated, but its capacity is {capacity}"
        )
    };

    let rate = significant(overfull.current_fpr);
    let wanted_rate = overfull.fpr;
    let mut detail = if is_spread {
        format!(
            "Its false positive rate is now {rate}, not {wanted_rate}: bits of smaller filters were spread."
        )
    } else {
        format!("Its false positive rate is now {rate}, not {wanted_rate}.")
    };
    if let Some(more_detail) = more_detail {
        detail = format!("{detail} {more_detail}");
    }

    let hint = if is_spread {
        "Build filters that will be merged with the same capacity."
    } else {
        advice
    };
    invalid_parameter(message).detail(detail).hint(hint)
}

/// A rate with two significant digits.
fn significant(rate: f64) -> String {
    if rate < 1e-4 {
        return format!("{rate:.1e}");
    }
    let digits = (1 - rate.log10().floor() as i32).clamp(1, 8) as usize;
    format!("{rate:.digits$}")
}
