//! What a bitmap scan of an index over ranges costs.
//!
//! | module | what it estimates |
//! |---|---|
//! | `elements` | scans of an index whose rows have one element each: `x = 5`, `x = ANY (…)` |
//! | `parts` | scans of an index over what is in a value: `text LIKE '%abc%'`, `array @> '{5}'` |
//! | `probes` | the index pages that a scan probes, and what they cost |
//! | `known` | asking the index, while a query is planned, how many of its ranges may match |
//! | `table` | the table's size, and what PostgreSQL charges for the rows that a scan returns |
//!
//! A cost is a sum of three terms, in the unit of PostgreSQL's settings (`seq_page_cost` is 1):
//!
//! ```text
//! cost = index pages · (random_page_cost + 50 · cpu_operator_cost)  reading and probing the index
//!      + table pages · cost of a page   reading ranges, where PostgreSQL doesn't charge for it
//!      + rows        · cost of a row    comparing rows, where PostgreSQL doesn't charge for it
//! ```

mod elements;
mod known;
mod parts;
mod probes;
mod table;

use known::KnownIndex;

use super::columns::RangesIndex;
use super::columns::class::PARTS_CLASS_FUNCTION;
use crate::index::kind::Cost;
use crate::pg::method::planning::PlannedScan;

/// Estimates the cost of a bitmap scan of an index over ranges, for the planner, which considers
/// the scan.
///
/// The index is read to find out how many ranges (neighbouring pages of the table) may match. If
/// the user may not see all rows of the table, only the index's sizes are used, since an estimate
/// would tell which values the other rows have.
///
/// An index that is damaged, or that a tool like hypopg only imagines, gets the cost of a typical
/// one: damage must not keep the table's queries from being planned. The scan reports the damage.
pub fn estimate(planned: &PlannedScan) -> Cost {
    let opened = planned.index();
    let index = opened
        .as_ref()
        .and_then(|opened| RangesIndex::open(opened.relation()).ok());
    let directory = index.as_ref().and_then(|index| index.directory().ok());
    let known = match (&index, &directory) {
        (Some(index), Some(directory)) => {
            Some(KnownIndex { index, directory, may_be_asked: planned.may_show_all_rows() })
        }
        _ => None,
    };

    // The operator class tells what the index is over, also if the index isn't known.
    let (_, parts_function) = planned.support_function(PARTS_CLASS_FUNCTION);
    if parts_function.is_some() {
        parts::estimate(planned, known)
    } else {
        elements::estimate(planned, known)
    }
}
