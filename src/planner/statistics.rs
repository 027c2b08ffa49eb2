//! What the statistics of a column say about a filter that is known when a query is planned.
//!
//! An estimator can be named in `CREATE OPERATOR` for operators over any types, and is given
//! whatever the clause has. So each value is read only if its type says that it is a filter, and
//! nothing here fails.

use crate::element::ElementType;
use crate::filter_type::{FilterType, Whole};
use crate::pg::call::guard::{guard, raw};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::nodes::{items, nth, without_cast_to_text};
use crate::pg::call::{Call, SqlValue};
use crate::pg::catalog;
use crate::pg::value::varlena::Value;
use pg_bloom_core::View;
use pg_bloom_core::filter::estimate::{cardinality, current_fpr};
use pgrx::pg_sys::{self, Node, Oid};
use pgrx::varatt_is_1b_e;

/// The share of rows to expect where nothing is known.
pub const DEFAULT_SHARE: f64 = 0.1;
/// A histogram of fewer bounds isn't probed.
const FEWEST_BOUNDS: usize = 10;
/// From this number of bounds on, the share of them that is in a filter is taken for that of the
/// column's values.
const BOUNDS_OF_FAIR_SAMPLE: f64 = 100.0;
/// About how many values of one kind of statistics are probed in one estimate: enough for a share
/// of one percent.
const MOST_PROBED: usize = 1_000;
/// A larger filter that is stored out of line isn't fetched for an estimate.
const MOST_FETCHED_BYTES: usize = 1 << 20;

/// Estimates the share of rows, from 0 to 1, for which a condition such as `filter @> column`
/// holds. The filter must be a constant, and the other side a column of elements.
/// `filter_argument` says which argument of the operator the filter is, 0 or 1.
///
/// The filter is probed for values that PostgreSQL's statistics have of the column. Returns `None`,
/// for a default estimate, if the filter isn't a constant or is large and stored out of line, if
/// the other side isn't a column, or if the filter can't be probed for the column's type.
/// PostgreSQL may raise an error while it evaluates the side that isn't the column.
///
/// # Safety
/// The call must be that of a restriction estimator.
pub unsafe fn share_of_clause(
    call: &Call,
    filter_type: FilterType,
    filter_argument: usize,
) -> Option<f64> {
    let root = call.internal(0)?;
    let operator = call.oid(1)?;
    let arguments = call.internal(2)?;
    let relation = call.i32(3)?;
    check_for_interrupts();

    // SAFETY: the planner passes the query's root, the clause's operator and arguments, and the
    // relation.
    unsafe {
        let arguments = without_casts_to_text(arguments);
        let mut clause = Clause::from_arguments(root, arguments, relation)?;
        let share = clause.share_of_rows(call, filter_type, filter_argument, operator);
        // If an error is raised before this, PostgreSQL releases the statistics at the end of the
        // failed transaction.
        clause.release();
        share
    }
}

/// Returns a copy of the list of a clause's arguments, without casts of `char(n)` and `name` to
/// text. Columns of these types have statistics, which the planner finds for a column but not for a
/// cast; and their values are the same elements as the texts.
///
/// # Safety
/// `arguments` must be null or a list of expressions.
unsafe fn without_casts_to_text(arguments: *mut pg_sys::List) -> *mut pg_sys::List {
    let mut without_casts = std::ptr::null_mut();
    // SAFETY: the caller promises a list of expressions; the new list has expressions as well.
    unsafe {
        for node in items(arguments) {
            without_casts = pg_sys::lappend(without_casts, without_cast_to_text(node).cast());
        }
    }
    without_casts
}

/// A clause `column operator other` or `other operator column`.
struct Clause {
    arguments: *mut pg_sys::List,
    /// What is known of the column, or of an expression over columns.
    column: pg_sys::VariableStatData,
    column_argument: usize,
    /// The other argument: a constant if its value is known.
    other: *mut Node,
}

impl Clause {
    /// Finds out which of a clause's two arguments is the column, and returns the clause with what
    /// PostgreSQL's statistics say about that column. `relation` is the number of the column's
    /// table in the query. The caller must pass the result to [`Clause::release`] in the end.
    ///
    /// `None` if both arguments have columns of this table, or neither has. Raises errors of
    /// evaluating the other argument, which PostgreSQL does if it can.
    ///
    /// # Safety
    /// The arguments must be what the planner passes to a restriction estimator.
    unsafe fn from_arguments(
        root: *mut pg_sys::PlannerInfo,
        arguments: *mut pg_sys::List,
        relation: i32,
    ) -> Option<Clause> {
        // PostgreSQL's function writes its three results to these variables.
        let mut column = pg_sys::VariableStatData::default();
        let mut other = std::ptr::null_mut();
        let mut is_column_left = false;
        let column_pointer = &raw mut column;
        let other_pointer = &raw mut other;
        let is_column_left_pointer = &raw mut is_column_left;

        // SAFETY: the caller promises the arguments of a restriction estimator; the results are
        // variables of this function. The call evaluates the other argument, and may raise errors:
        // nothing here needs to be dropped.
        let has_one_column = unsafe {
            guard(|| {
                raw::get_restriction_variable(
                    root,
                    arguments,
                    relation,
                    column_pointer,
                    other_pointer,
                    is_column_left_pointer,
                )
            })
        };
        if !has_one_column {
            return None;
        }
        let column_argument = if is_column_left { 0 } else { 1 };
        Some(Clause { arguments, column, column_argument, other })
    }

    /// Returns the share of rows, from 0 to 1, for which the clause holds. `filter_argument` says
    /// which side of its operator should be the filter, 0 or 1.
    ///
    /// Returns `None`, for a default estimate, if that side is the column, if the filter isn't a
    /// constant, or if it can't be probed for the column's type.
    ///
    /// # Safety
    /// The clause must not have been released; `operator` must be its operator.
    unsafe fn share_of_rows(
        &mut self,
        call: &Call,
        filter_type: FilterType,
        filter_argument: usize,
        operator: Oid,
    ) -> Option<f64> {
        if self.column_argument == filter_argument {
            return None;
        }
        // SAFETY: the arguments are valid expressions.
        let filter = match unsafe { constant_filter(call, self.other, filter_type) }? {
            // The clause is NULL then, which holds for no row.
            ConstantFilter::Null => return Some(0.0),
            ConstantFilter::Value(filter) => filter,
        };

        // SAFETY: the arguments are valid expressions, and the statistics are kept until they are
        // released.
        let statistics = unsafe {
            let elements = nth(self.arguments, self.column_argument);
            let function = pg_sys::get_opcode(operator);
            ColumnStatistics {
                element_type: elements.map_or(pg_sys::InvalidOid, |node| pg_sys::exprType(node)),
                user_may_know: !self.column.statsTuple.is_null()
                    && pg_sys::statistic_proc_security_check(&mut self.column, function),
                column: &self.column,
            }
        };
        statistics.share_in_filter(call, filter_type, filter.bytes())
    }

    /// Gives the column's statistics back to PostgreSQL, which counts who uses them.
    ///
    /// # Safety
    /// The clause must not have been released.
    unsafe fn release(self) {
        if !self.column.statsTuple.is_null()
            && let Some(free) = self.column.freefunc
        {
            // SAFETY: PostgreSQL names the function that the row is to be passed to.
            unsafe { guarded!(free(self.column.statsTuple)) };
        }
    }
}

/// A filter that is written in a query, or was evaluated for its plan.
enum ConstantFilter<'a> {
    Null,
    Value(Value<'a>),
}

/// Returns the filter that an expression is, or that it is NULL. `None` if the expression isn't a
/// constant of this type of filters, or of a domain over the type, or if the filter is stored out
/// of line and larger than a megabyte, which would take too long to fetch.
///
/// # Safety
/// `node` must be null or a valid expression.
unsafe fn constant_filter<'a>(
    call: &'a Call,
    node: *mut Node,
    filter_type: FilterType,
) -> Option<ConstantFilter<'a>> {
    // SAFETY: the caller promises null or an expression; the node is read as what its tag says, the
    // value as what its type is.
    unsafe {
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_Const {
            return None;
        }
        let constant: *const pg_sys::Const = node.cast();
        if !is_own(call, (*constant).consttype, filter_type) {
            return None;
        }
        if (*constant).constisnull {
            return Some(ConstantFilter::Null);
        }

        let datum = (*constant).constvalue;
        let is_out_of_line = varatt_is_1b_e(datum.cast_mut_ptr());
        if is_out_of_line && pg_sys::toast_raw_datum_size(datum) > MOST_FETCHED_BYTES {
            return None;
        }
        Some(ConstantFilter::Value(Value::detoast(datum)))
    }
}

/// Returns whether a type is this extension's type of filters, or a domain over it.
pub fn is_own(call: &Call, oid: Oid, filter_type: FilterType) -> bool {
    oid != pg_sys::InvalidOid
        && call.function().is_ok_and(|function| {
            catalog::base_type(oid) == catalog::type_in_schema_of(function, filter_type.name())
        })
}

/// What PostgreSQL knows of a column of elements.
struct ColumnStatistics<'a> {
    /// The type of the elements in the clause.
    element_type: Oid,
    /// Whether there are statistics that the user may read.
    user_may_know: bool,
    column: &'a pg_sys::VariableStatData,
}

/// What a filter says of the most common values of a column.
#[derive(Default)]
struct ProbedCommonValues {
    /// The share of rows with one of the probed values.
    probed_rows: f64,
    /// The share of rows with one that is in the filter.
    found_rows: f64,
}

/// What a filter says of the bounds of a histogram.
struct ProbedBounds {
    /// The share of bounds that are in the filter.
    found: f64,
    /// How many bounds the histogram has, of which some were probed.
    bounds: usize,
}

impl ColumnStatistics<'_> {
    /// Returns the share of rows, from 0 to 1, whose element may be in a filter, given by its
    /// stored bytes. `None` if the filter is damaged, or of another kind than the elements.
    ///
    /// PostgreSQL's statistics have the most common values of a column with their shares of rows,
    /// and a histogram: a sample of the other values. The filter is probed for both: `common values
    /// found + other rows · share of the histogram's bounds found`. The second share is at most
    /// what the filter's number of elements allows.
    fn share_in_filter(&self, call: &Call, filter_type: FilterType, filter: &[u8]) -> Option<f64> {
        let filter = filter_type.whole(filter).ok()?;
        let element_type = ElementType::of_type(call, 0, self.element_type).ok()?;
        let hasher = element_type
            .hasher_for(filter.header(), filter_type.contains())
            .ok()?;
        // SAFETY: the filter is probed for values of the column, which `with_values` returns only
        // if they can be read as the clause's elements.
        let contains =
            |element| unsafe { hasher.hash(element) }.is_some_and(|hash| filter.contains(hash));

        let share_by_fill = self
            .distinct_values()
            .map(|distinct| share_of_values(&filter, distinct));
        let common = self.probe_common_values(contains);
        let share_of_others = match self.probe_bounds(contains) {
            Some(probed) => share_of_other_values(&probed, share_by_fill),
            None => share_by_fill.unwrap_or(DEFAULT_SHARE),
        };

        let other_rows = (1.0 - self.share_of_nulls() - common.probed_rows).max(0.0);
        Some((common.found_rows + other_rows * share_of_others).clamp(0.0, 1.0))
    }

    /// Returns how many distinct values the column has; `None` if PostgreSQL has no statistics and
    /// only guesses.
    fn distinct_values(&self) -> Option<f64> {
        let column = std::ptr::from_ref(self.column).cast_mut();
        let mut is_guess = false;
        // SAFETY: the function only reads what is known of the column.
        let distinct = unsafe { pg_sys::get_variable_numdistinct(column, &mut is_guess) };
        (!is_guess).then_some(distinct)
    }

    /// Returns the share of rows whose element is NULL; 0 if it isn't known.
    fn share_of_nulls(&self) -> f64 {
        let row = self.column.statsTuple;
        if row.is_null() {
            return 0.0;
        }
        // SAFETY: a row of `pg_statistic`, which begins with its fixed columns.
        let share = unsafe {
            (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_statistic>()).stanullfrac
        };
        share.into()
    }

    /// Calls `contains` with up to 1,000 of the column's most common values. Returns the share of
    /// rows that have one of these values, and the share that have one for which `contains` is
    /// true. Both are 0 without such statistics.
    fn probe_common_values(&self, contains: impl Fn(SqlValue) -> bool) -> ProbedCommonValues {
        let parts = pg_sys::ATTSTATSSLOT_VALUES | pg_sys::ATTSTATSSLOT_NUMBERS;
        self.with_values(pg_sys::STATISTIC_KIND_MCV, parts, |values, shares_of_rows| {
            let mut probed = ProbedCommonValues::default();
            for (&datum, &rows) in values.iter().zip(shares_of_rows).take(MOST_PROBED) {
                check_for_interrupts();
                let rows = f64::from(rows);
                probed.probed_rows += rows;
                if contains(SqlValue { datum }) {
                    probed.found_rows += rows;
                }
            }
            Some(probed)
        })
        .unwrap_or_default()
    }

    /// Calls `contains` with about 1,000 bounds of the column's histogram, which are a sample of
    /// its values, and returns the share for which it is true, and how many bounds there are.
    /// `None` if there is no histogram, or if it has fewer than ten bounds.
    fn probe_bounds(&self, contains: impl Fn(SqlValue) -> bool) -> Option<ProbedBounds> {
        let parts = pg_sys::ATTSTATSSLOT_VALUES;
        self.with_values(pg_sys::STATISTIC_KIND_HISTOGRAM, parts, |bounds, _| {
            if bounds.len() < FEWEST_BOUNDS {
                return None;
            }
            // The least and the largest bound are extreme values, not a sample.
            let inner = &bounds[1..bounds.len() - 1];
            let sample = inner.iter().step_by(inner.len().div_ceil(MOST_PROBED));

            let probed = sample.len();
            let mut found = 0_usize;
            for &datum in sample {
                check_for_interrupts();
                found += usize::from(contains(SqlValue { datum }));
            }
            Some(ProbedBounds { found: found as f64 / probed as f64, bounds: bounds.len() })
        })
    }

    /// Calls `read` with the values of one kind of the column's statistics, such as the most common
    /// values, and with the number that belongs to each value, and returns its result. `kind` and
    /// `parts` are PostgreSQL's constants: the kind, and whether values, numbers or both are
    /// wanted. Numbers are empty if they aren't.
    ///
    /// `None` if there are no such statistics, if the user may not read them, or if the values
    /// can't be read as elements of the clause's type.
    fn with_values<T>(
        &self,
        kind: u32,
        parts: u32,
        read: impl FnOnce(&[pg_sys::Datum], &[f32]) -> Option<T>,
    ) -> Option<T> {
        if !self.user_may_know {
            return None;
        }
        let mut slot = pg_sys::AttStatsSlot::default();
        let statistics = self.column.statsTuple;
        // SAFETY: the row is there, as the user may know it. The slot has as many values and
        // numbers as it says, which live until it is freed.
        unsafe {
            let any_operator = pg_sys::InvalidOid;
            if !pg_sys::get_attstatsslot(
                &mut slot,
                statistics,
                kind as i32,
                any_operator,
                parts as i32,
            ) {
                return None;
            }

            // The clause may have the column under another type that is stored in the same way.
            let mut result = None;
            if slot.nvalues > 0 && pg_sys::IsBinaryCoercible(slot.valuetype, self.element_type) {
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

/// Returns the share of a column's values, apart from the most common ones, that may be in a
/// filter: by the bounds of a histogram that were found in it, and at most `share_by_fill`, the
/// share that the number of the filter's elements allows, if that is known.
///
/// Example: of 50 bounds 20 % are in the filter, and `share_by_fill` is 0.3. Half of the weight is
/// on either, so the share is 0.25. By 100 bounds it would be 0.2.
fn share_of_other_values(probed: &ProbedBounds, share_by_fill: Option<f64>) -> f64 {
    // If no bound is in the filter, the true share is probably not 0, but below that of one bound.
    // Half of a bound is assumed.
    let bounds = probed.bounds as f64;
    let share_of_bounds_found = probed.found.max(0.5 / bounds);

    // Few bounds are a bad sample: their share is averaged with the estimate without a histogram.
    // With 100 bounds or more, it counts alone.
    let weight = (bounds / BOUNDS_OF_FAIR_SAMPLE).min(1.0);
    let averaged =
        weight * share_of_bounds_found + (1.0 - weight) * share_by_fill.unwrap_or(DEFAULT_SHARE);
    averaged.min(share_by_fill.unwrap_or(1.0))
}

/// Returns the largest share of a column's distinct values that may be in a filter: as many as the
/// filter has elements, and a share of the values that is its false positive rate.
fn share_of_values(filter: &Whole<'_>, distinct_values: f64) -> f64 {
    let share = |bits: &View<'_>| cardinality(bits) / distinct_values + current_fpr(bits);
    filter.with_bits(share).min(1.0)
}
