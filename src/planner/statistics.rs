//! What the statistics of a column say about a filter that is known when a query is planned.
//!
//! An estimator can be named in `CREATE OPERATOR` for operators over any types, and is given
//! whatever the clause has: each value is read only if its type says that it is a filter, and
//! nothing here is an error.

use crate::element::ElementType;
use crate::filter_type::FilterType;
use crate::pg::call::guard::{guard, raw};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::nodes::{items, nth, without_cast_to_text};
use crate::pg::call::{Call, Element};
use crate::pg::catalog;
use crate::pg::value::varlena::Value;
use pg_bloom_core::View;
use pg_bloom_core::filter::estimate::{cardinality, current_fpr};
use pgrx::{pg_sys, varatt_is_1b_e};

/// The share of rows to expect where nothing is known.
pub const DEFAULT: f64 = 0.1;
/// The fewest bounds of a histogram that say anything, and as many as are a fair sample by
/// themselves.
const FEWEST_BOUNDS: usize = 10;
const FAIR_SAMPLE: f64 = 100.0;
/// About how many values of one kind of statistics are probed in one estimate: enough for a share
/// of one percent.
const SAMPLE: usize = 1_000;
/// Bytes of a value out of line that are fetched for an estimate.
const MOST_BYTES: usize = 1 << 20;

struct ColumnStatistics<'a> {
    /// The type of the elements in the clause.
    element: pg_sys::Oid,
    statistics: &'a pg_sys::VariableStatData,
    /// Whether the user may know what is in the column.
    may_look: bool,
}

/// For a restriction estimator: the share of a column's rows whose element may be in a constant
/// filter, which is argument `filter` of the operator; `None` if they aren't these, or the filter
/// can't be probed for such elements.
///
/// # Safety
/// The arguments must be those of a restriction estimator.
pub unsafe fn share_of_clause(call: &Call, filter_type: FilterType, filter: usize) -> Option<f64> {
    let (root, operator, arguments, relation) =
        (call.internal(0)?, call.oid(1)?, call.internal(2)?, call.i32(3)?);
    // SAFETY: the planner passes the clause's arguments.
    let arguments = unsafe { without_casts_to_text(arguments) };
    let mut statistics = pg_sys::VariableStatData::default();
    let (mut other, mut column_is_left) = (std::ptr::null_mut(), false);
    check_for_interrupts();
    // SAFETY: the planner passes the query's root, the clause's operator, arguments and relation.
    // What is found is given back below, in every case but an error, after which the planner's
    // memory goes.
    unsafe {
        let (column, value, is_left) =
            (&raw mut statistics, &raw mut other, &raw mut column_is_left);
        // The other side is evaluated.
        if !guard(|| {
            raw::get_restriction_variable(root, arguments, relation, column, value, is_left)
        }) {
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
                    && pg_sys::statistic_proc_security_check(
                        &mut statistics,
                        pg_sys::get_opcode(operator),
                    );
                ColumnStatistics { element, statistics: &statistics, may_look }.share(
                    call,
                    filter_type,
                    value.bytes(),
                )
            }
            _ => None,
        };
        if let (false, Some(free)) = (statistics.statsTuple.is_null(), statistics.freefunc) {
            guarded!(free(statistics.statsTuple));
        }
        share
    }
}

/// A copy of a clause's arguments without casts of `char(n)` and `name` to text. A column of these
/// types has statistics, and its values are the same elements as the texts.
///
/// # Safety
/// `arguments` must be null or a list of expressions.
unsafe fn without_casts_to_text(arguments: *mut pg_sys::List) -> *mut pg_sys::List {
    let mut without = std::ptr::null_mut();
    // SAFETY: promised by the caller.
    for node in unsafe { items(arguments) } {
        // SAFETY: the list is one of expressions, and so is the new one.
        without = unsafe { pg_sys::lappend(without, without_cast_to_text(node).cast()) };
    }
    without
}

/// The value of an expression that is a constant of this type, or of a domain over it: `Some(None)`
/// is a NULL. A large value out of line is left where it is.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn constant<'a>(
    call: &'a Call,
    node: *mut pg_sys::Node,
    of: FilterType,
) -> Option<Option<Value<'a>>> {
    // SAFETY: promised by the caller; the node is read as what its tag says, the value as what its
    // type is.
    unsafe {
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_Const {
            return None;
        }
        let constant: *const pg_sys::Const = node.cast();
        if !is_own(call, (*constant).consttype, of) {
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

/// Whether values of a type are those of the extension's own type of filters.
pub fn is_own(call: &Call, oid: pg_sys::Oid, of: FilterType) -> bool {
    oid != pg_sys::InvalidOid
        && call.function().is_ok_and(|function| {
            catalog::base_type(oid) == catalog::type_beside(function, of.name())
        })
}

impl ColumnStatistics<'_> {
    fn share(&self, call: &Call, filter_type: FilterType, filter: &[u8]) -> Option<f64> {
        let filter = filter_type.whole(filter).ok()?;
        let element = ElementType::of_type(call, 0, self.element).ok()?;
        let hasher = element.hasher_for(filter.header(), filter_type.contains()).ok()?;
        // SAFETY: what is asked for are values of the column, as its statistics have them.
        let contains =
            |element| unsafe { hasher.hash(element) }.is_some_and(|hash| filter.contains(hash));

        let (found, mut is_default) = (std::ptr::from_ref(self.statistics).cast_mut(), false);
        // SAFETY: the function reads what was found about the column.
        let distinct = unsafe { pg_sys::get_variable_numdistinct(found, &mut is_default) };
        let distinct = (!is_default).then_some(distinct);
        let share_of = |view: &View<'_>, distinct: f64| {
            (cardinality(view) / distinct + current_fpr(view)).min(1.0)
        };
        let most =
            distinct.map_or(1.0, |distinct| filter.with_bits(|view| share_of(view, distinct)));
        let unknown = if distinct.is_some() { most } else { DEFAULT };
        let (common_found, common) = self.common(contains);
        let others = match self.bounds(contains) {
            Some((found, size)) => {
                let size = size as f64;
                // A share that the sample is too small to show is half of one bound.
                let seen = found.max(0.5 / size);
                let weight = (size / FAIR_SAMPLE).min(1.0);
                (weight * seen + (1.0 - weight) * unknown).min(most)
            }
            None => unknown,
        };
        Some((common_found + (1.0 - self.nulls() - common).max(0.0) * others).clamp(0.0, 1.0))
    }

    /// Of the most common values those for which `contains` says so, and all that were probed: as
    /// shares of all rows.
    fn common(&self, contains: impl Fn(Element) -> bool) -> (f64, f64) {
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

    /// Share of the histogram's bounds for which `contains` says so, and how many there are; `None`
    /// for too few.
    fn bounds(&self, contains: impl Fn(Element) -> bool) -> Option<(f64, usize)> {
        self.with_slot(
            pg_sys::STATISTIC_KIND_HISTOGRAM,
            pg_sys::ATTSTATSSLOT_VALUES,
            |values, _| {
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
            },
        )
    }

    fn nulls(&self) -> f64 {
        let row = self.statistics.statsTuple;
        // SAFETY: a row of `pg_statistic`, which begins with its fixed columns.
        let share = || unsafe {
            (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_statistic>()).stanullfrac
        };
        if row.is_null() { 0.0 } else { share().into() }
    }

    /// What `read` makes of the values of one kind, and of their numbers, if they may be read as
    /// the clause's elements.
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
        // SAFETY: the row is there; the slot has as many values and numbers as it says, which live
        // until it is freed. The column's values are of the clause's type except for relabelling.
        unsafe {
            if !pg_sys::get_attstatsslot(
                &mut slot,
                statistics,
                kind as i32,
                pg_sys::InvalidOid,
                flags as i32,
            ) {
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
