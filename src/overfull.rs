//! Warnings about overfull filters, or errors, as `pg_bloom.overfill` says.

use crate::error::invalid_parameter;
use crate::filter_type::FilterType::{self, Bloom, CountingBloom};
use crate::pg::call::error::warn;
use crate::pg::call::{Call, Error, Outcome};
use crate::pg::value::varlena::PgBuffer;
use crate::settings::{self, Overfill};
use pg_bloom_core::filter::overfull::{Overfull, overfull};

/// What to do about an overfull filter, which depends on how it was made.
pub struct Advice {
    /// The type of the filter.
    filter_type: FilterType,
    /// The hint of the warning or error.
    hint: &'static str,
}

/// The advice for a filter that was built of its elements.
pub const BUILT: Advice = Advice {
    filter_type: Bloom,
    hint: "Build it with a larger capacity, or with none to size it for what it sees.",
};
/// The advice for a filter to which elements were added.
pub const ADDED: Advice = Advice {
    filter_type: Bloom,
    hint: "A filter doesn't grow when elements are added: begin it with bloom_empty(capacity).",
};
/// The advice for a filter that was merged from others.
pub const MERGED: Advice = Advice {
    filter_type: Bloom,
    hint: "Build the filters with one capacity, enough for their union.",
};
/// The advice for a counting filter.
pub const COUNTING: Advice = Advice {
    filter_type: CountingBloom,
    hint: "Build it with a larger capacity, or remove elements.",
};

/// The end of a warning's detail: other filters of the same call aren't reported.
const ONLY_FIRST_IS_REPORTED: &str =
    "Only the first such filter of a call is reported in a statement.";

/// Returns a filter as the result of a SQL function, after checking whether it is *overfull*: it
/// has more elements than its capacity. If so, warns the client or, if the setting
/// `pg_bloom.overfill` is `error`, fails with 22023; does neither if the setting is `ignore`. A
/// call site warns once in a statement. The advice says what the user can do.
pub fn finish(call: &Call, advice: Advice, filter: PgBuffer) -> Outcome {
    let overfill = settings::OVERFILL.get();
    // Counting the bits of a filter takes time, so it is left out if nothing follows from it.
    let must_check = match overfill {
        Overfill::Error => true,
        Overfill::Warn => !call.has_warned_in_statement(),
        Overfill::Ignore => false,
    };
    if !must_check {
        return Ok(Some(filter.into_datum()));
    }

    let whole = advice.filter_type.whole(filter.bytes())?;
    if let Some(excess) = whole.with_bits(overfull) {
        if overfill == Overfill::Error {
            return Err(describe(&excess, advice.hint, None));
        }
        call.remember_warning();
        warn(describe(&excess, advice.hint, Some(ONLY_FIRST_IS_REPORTED)));
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
