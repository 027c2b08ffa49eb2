//! What the statistics of a column say about a filter that is known when a query is planned.
//!
//! An estimator can be named in `CREATE OPERATOR` for operators over any types, and is given whatever the clause has:
//! each value is read only if its type says that it is a filter, and nothing here is an error.

use crate::pg::call::guard::{guard, raw};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::nodes::nth;
use crate::pg::call::{Call, Element};
use crate::pg::catalog;
use crate::pg::value::varlena::Value;
use pgrx::{pg_sys, varatt_is_1b_e};
use std::ffi::CStr;

/// The fewest bounds of a histogram that say anything.
const FEWEST_BOUNDS: usize = 10;
/// About how many values of one kind of statistics are probed in one estimate: enough for a share of one percent.
const SAMPLE: usize = 1_000;
/// Bytes of a value out of line that are fetched for an estimate.
const MOST_BYTES: usize = 1 << 20;

/// A filter that the planner knows, and a column of elements.
pub struct ColumnStatistics<'a> {
    /// The stored bytes of the filter.
    pub filter: &'a [u8],
    /// The type of the elements in the clause.
    pub element: pg_sys::Oid,
    statistics: &'a pg_sys::VariableStatData,
    /// Whether the user may know what is in the column.
    may_look: bool,
}

/// For a restriction estimator: the share of rows that `ask` gives for a constant filter, which is argument `filter` of
/// the operator and of the extension's type with this name, and a column of elements; `None` if there are none, or none
/// that can be asked.
///
/// # Safety
/// The arguments must be those of a restriction estimator.
pub unsafe fn share_of_clause(
    call: &Call,
    filter: usize,
    filter_type: &CStr,
    ask: impl FnOnce(&ColumnStatistics<'_>) -> Option<f64>,
) -> Option<f64> {
    let (root, operator, arguments, relation) = (call.internal(0)?, call.oid(1)?, call.internal(2)?, call.i32(3)?);
    let mut statistics = pg_sys::VariableStatData::default();
    let (mut other, mut column_is_left) = (std::ptr::null_mut(), false);
    check_for_interrupts();
    // SAFETY: the planner passes the query's root, the clause's operator, arguments and relation. What is found is
    // given back below, in every case but an error, after which the planner's memory goes.
    unsafe {
        let (column, value, is_left) = (&raw mut statistics, &raw mut other, &raw mut column_is_left);
        // The other side is evaluated.
        if !guard(|| raw::get_restriction_variable(root, arguments, relation, column, value, is_left)) {
            return None;
        }
        let is_elements = column_is_left == (filter == 1);
        let share = match constant(call, other, filter_type) {
            // NULL: no row is kept.
            Some(None) if is_elements => Some(0.0),
            Some(Some(value)) if is_elements => {
                let element = nth(arguments, usize::from(!column_is_left))
                    .map_or(pg_sys::InvalidOid, |node| pg_sys::exprType(node));
                let may_look = !statistics.statsTuple.is_null()
                    && pg_sys::statistic_proc_security_check(&mut statistics, pg_sys::get_opcode(operator));
                let filter = value.bytes();
                let column = ColumnStatistics { filter, element, statistics: &statistics, may_look };
                ask(&column)
            }
            _ => None,
        };
        if let (false, Some(free)) = (statistics.statsTuple.is_null(), statistics.freefunc) {
            guarded!(free(statistics.statsTuple));
        }
        share
    }
}

/// The value of an expression that is a constant of the extension's type with this name, or a domain over it:
/// `Some(None)` is a NULL. A large value out of line is left where it is.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn constant<'a>(call: &'a Call, node: *mut pg_sys::Node, type_name: &CStr) -> Option<Option<Value<'a>>> {
    // SAFETY: promised by the caller; the node is read as what its tag says, the value as what its type is.
    unsafe {
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_Const {
            return None;
        }
        let constant: *const pg_sys::Const = node.cast();
        if !is_own(call, (*constant).consttype, type_name) {
            return None;
        }
        if (*constant).constisnull {
            return Some(None);
        }
        let datum = (*constant).constvalue;
        let is_out_of_line = varatt_is_1b_e(datum.cast_mut_ptr());
        if is_out_of_line && pg_sys::toast_raw_datum_size(datum) > MOST_BYTES {
            return None;
        }
        Some(Some(Value::detoast(datum)))
    }
}

/// Whether values of a type are those of the extension's own type with this name.
pub fn is_own(call: &Call, oid: pg_sys::Oid, type_name: &CStr) -> bool {
    oid != pg_sys::InvalidOid
        && call.function().is_ok_and(|function| catalog::base_type(oid) == catalog::type_beside(function, type_name))
}

impl ColumnStatistics<'_> {
    /// Of the most common values those for which `contains` says so, and all that were probed: as shares of all rows.
    pub fn common(&self, contains: impl Fn(Element) -> bool) -> (f64, f64) {
        let flags = pg_sys::ATTSTATSSLOT_VALUES | pg_sys::ATTSTATSSLOT_NUMBERS;
        self.with_slot(pg_sys::STATISTIC_KIND_MCV, flags, |values, shares| {
            let (mut found, mut all) = (0.0, 0.0);
            for (&datum, &share) in values.iter().zip(shares).take(SAMPLE) {
                check_for_interrupts();
                all += f64::from(share);
                if contains(Element { datum }) {
                    found += f64::from(share);
                }
            }
            Some((found, all))
        })
        .unwrap_or_default()
    }

    /// Share of the histogram's bounds for which `contains` says so, and how many there are; `None` for too few.
    pub fn bounds(&self, contains: impl Fn(Element) -> bool) -> Option<(f64, usize)> {
        self.with_slot(pg_sys::STATISTIC_KIND_HISTOGRAM, pg_sys::ATTSTATSSLOT_VALUES, |values, _| {
            if values.len() < FEWEST_BOUNDS {
                return None;
            }
            // The extremes are no sample.
            let inner = &values[1..values.len() - 1];
            let sample = inner.iter().step_by(inner.len().div_ceil(SAMPLE));
            let asked = sample.len() as f64;
            let has = |&&datum: &&pg_sys::Datum| {
                check_for_interrupts();
                contains(Element { datum })
            };
            Some((sample.filter(has).count() as f64 / asked, values.len()))
        })
    }

    /// Share of NULLs.
    pub fn nulls(&self) -> f64 {
        let row = self.statistics.statsTuple;
        // SAFETY: a row of `pg_statistic`, which begins with its fixed columns.
        let share = || unsafe { (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_statistic>()).stanullfrac };
        if row.is_null() { 0.0 } else { share().into() }
    }

    /// Distinct values, if that is known.
    pub fn distinct(&self) -> Option<f64> {
        let mut is_default = false;
        // SAFETY: the function reads what was found about the column.
        let distinct = unsafe {
            pg_sys::get_variable_numdistinct(std::ptr::from_ref(self.statistics).cast_mut(), &mut is_default)
        };
        (!is_default).then_some(distinct)
    }

    /// What `read` makes of the values of one kind, and of their numbers, if they may be read as the clause's elements.
    fn with_slot<T>(
        &self,
        kind: u32,
        flags: u32,
        read: impl FnOnce(&[pg_sys::Datum], &[f32]) -> Option<T>,
    ) -> Option<T> {
        if !self.may_look {
            return None;
        }
        let mut slot = pg_sys::AttStatsSlot::default();
        let statistics = self.statistics.statsTuple;
        // SAFETY: the row is there; the slot has as many values and numbers as it says, which live until it is freed.
        // The column's values are of the clause's type except for relabelling.
        unsafe {
            if !pg_sys::get_attstatsslot(&mut slot, statistics, kind as i32, pg_sys::InvalidOid, flags as i32) {
                return None;
            }
            let mut result = None;
            if slot.nvalues > 0 && pg_sys::IsBinaryCoercible(slot.valuetype, self.element) {
                let values = std::slice::from_raw_parts(slot.values, slot.nvalues as usize);
                let numbers = match slot.nnumbers {
                    0 => &[][..],
                    n => std::slice::from_raw_parts(slot.numbers, (n as usize).min(values.len())),
                };
                result = read(values, numbers);
            }
            pg_sys::free_attstatsslot(&mut slot);
            result
        }
    }
}
