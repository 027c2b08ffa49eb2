//! What the statistics of a column say about a filter.

use super::call::Call;
use super::expression;
use super::varlena::Value;
use crate::error::Failure;
use pgrx::pg_sys;

/// The fewest bounds of a histogram that say anything.
const FEWEST_BOUNDS: i32 = 10;
/// Bounds at either end that are left out: the extremes are no sample.
const ENDS: i32 = 1;

/// On which side of the operator the filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `filter @> element`
    Left,
    /// `element <@ filter`
    Right,
}

/// A filter that is known to the planner, and what it says about a column's statistics.
pub enum Asked<'a> {
    /// The filter is NULL.
    Null,
    /// Shares are of all rows.
    Column {
        /// The filter.
        filter: Value<'a>,
        /// Share of the most common values that are in the filter.
        common_found: f64,
        /// Share of the most common values.
        common: f64,
        /// Share of NULLs.
        nulls: f64,
        /// Distinct values, if that is known.
        distinct: Option<f64>,
        /// Which of the histogram's bounds are in the filter, as a share of them, and how many there are.
        bounds: Option<(f64, i32)>,
    },
}

/// For a restriction estimator: what a constant filter says about a column of elements; `None` if the clause is another.
///
/// # Errors
/// 42804 when the filter holds elements of another kind than the column's.
pub fn statistics<'a>(call: &'a Call, filter: Side) -> Result<Option<Asked<'a>>, Failure> {
    let (Some(root), Some(operator), Some(arguments), Some(relation)) =
        (call.internal(0), call.i32(1), call.internal(2), call.i32(3))
    else {
        return Ok(None);
    };
    let operator = pg_sys::Oid::from(operator as u32);
    let mut column = pg_sys::VariableStatData::default();
    let (mut other, mut column_is_left) = (std::ptr::null_mut(), false);
    // SAFETY: the planner passes the query's root, the clause's operator, arguments and relation. What is found is
    // given back below, in every case but an error, after which the planner's memory goes.
    unsafe {
        if !pg_sys::get_restriction_variable(root, arguments, relation, &mut column, &mut other, &mut column_is_left) {
            return Ok(None);
        }
        let is_elements = column_is_left == (filter == Side::Right);
        let asked = if is_elements && (*other).type_ == pg_sys::NodeTag::T_Const {
            Some(ask(call, operator, arguments, &mut column, other.cast(), column_is_left))
        } else {
            None
        };
        if let (false, Some(free)) = (column.statsTuple.is_null(), column.freefunc) {
            free(column.statsTuple);
        }
        Ok(asked)
    }
}

/// Asks a constant filter about the statistics of a column.
///
/// # Safety
/// `arguments` must be those of the clause, `column` what `get_restriction_variable` found in it, and `constant` the
/// other side.
unsafe fn ask<'a>(
    call: &'a Call,
    operator: pg_sys::Oid,
    arguments: *mut pg_sys::List,
    column: &mut pg_sys::VariableStatData,
    constant: *mut pg_sys::Const,
    column_is_left: bool,
) -> Asked<'a> {
    // SAFETY: promised by the caller; a constant of the operator's other side is a filter.
    unsafe {
        if (*constant).constisnull {
            return Asked::Null;
        }
        let filter = (*constant).constvalue;
        let mut function = operator_function(call, operator, arguments);
        let collation = call.collation();
        let (mut common, mut size, mut is_default) = (0.0, 0, false);
        let common_found =
            pg_sys::mcv_selectivity(column, &mut function, collation, filter, column_is_left, &mut common);
        let found = pg_sys::histogram_selectivity(
            column,
            &mut function,
            collation,
            filter,
            column_is_left,
            FEWEST_BOUNDS,
            ENDS,
            &mut size,
        );
        let distinct = pg_sys::get_variable_numdistinct(column, &mut is_default);
        Asked::Column {
            filter: Value::detoast(filter),
            common_found,
            common,
            nulls: nulls(column.statsTuple),
            distinct: (!is_default).then_some(distinct),
            bounds: (found >= 0.0).then_some((found, size)),
        }
    }
}

/// The operator's function, with an expression that tells it the types of its arguments: those of the clause, since the
/// column itself may have been relabelled there.
///
/// # Safety
/// `arguments` must be those of a clause with the operator.
unsafe fn operator_function(call: &Call, operator: pg_sys::Oid, arguments: *mut pg_sys::List) -> pg_sys::FmgrInfo {
    let mut function = pg_sys::FmgrInfo::default();
    // SAFETY: promised by the caller; the result lives as long as the planner's memory.
    unsafe {
        pg_sys::fmgr_info(pg_sys::get_opcode(operator), &mut function);
        function.fn_expr = pg_sys::make_opclause(
            operator,
            pg_sys::BOOLOID,
            false,
            expression::nth(arguments, 0).map_or(std::ptr::null_mut(), |left| left.cast()),
            expression::nth(arguments, 1).map_or(std::ptr::null_mut(), |right| right.cast()),
            pg_sys::InvalidOid,
            call.collation(),
        )
        .cast();
    }
    function
}

/// Share of NULLs by a row of `pg_statistic`.
///
/// # Safety
/// The tuple must be null or such a row.
unsafe fn nulls(row: pg_sys::HeapTuple) -> f64 {
    if row.is_null() {
        return 0.0;
    }
    // SAFETY: promised by the caller; the fixed columns follow the tuple's header.
    unsafe {
        let data = (*row).t_data;
        let fixed: *const pg_sys::FormData_pg_statistic = data.cast::<u8>().add(usize::from((*data).t_hoff)).cast();
        f64::from((*fixed).stanullfrac)
    }
}
