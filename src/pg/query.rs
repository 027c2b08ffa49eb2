//! `SELECT *` of a table that stands for its parent, as the planner would make it, and the rows of
//! a function's result.

use crate::pg::call::Call;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::guard::{guard, raw};
use crate::pg::call::nodes;
use crate::pg::memory;
use crate::pg::sql;
use crate::pg::storage::relation::{ACCESS_SHARE, Relation};
use crate::pg::version;
use pgrx::pg_sys::{self, List, Node, NodeTag};
use std::ptr::null_mut;

/// What the logs of other extensions show as the query.
const TEXT: &std::ffi::CStr = c"SELECT of pg_bloom";

/// The rows that a call returns, in a store that goes to disk beyond `work_mem`. Rows have the
/// columns of one table, the parent, and may come from tables below it.
pub struct Output<'c> {
    parent: Relation<'c>,
    store: *mut pg_sys::Tuplestorestate,
    targets: *mut List,
}

impl<'c> Output<'c> {
    /// Begins the result of a function that returns rows of a table, with no rows yet. Raises 0A000
    /// if the query calls it where a set of rows isn't possible. Fails with 55000 if the table was
    /// altered after the query was planned.
    pub fn new(call: &'c Call, parent: Relation<'c>) -> Result<Output<'c>> {
        let set = call.begin_set();
        if !set.expectedDesc.is_null() {
            // SAFETY: the executor sets the columns that it expects of the function's rows.
            let expected = unsafe { version::attributes(set.expectedDesc) };
            if expected.map(live_type).ne(parent.columns().map(live_type)) {
                // The table was altered before the call locked it.
                let message =
                    format!("table \"{}\" was altered while the query began", parent.name());
                let error = Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message);
                return Err(error.hint("Run the query again."));
            }
        }
        Ok(Output { parent, store: set.setResult, targets: targets(parent) })
    }

    /// Adds the rows of a table that meet a condition to the result, as the calling query's
    /// snapshot sees them. The rows have the columns of the parent, the table whose rows the
    /// function returns; the table is the parent or a partition or child of it.
    ///
    /// Plans and executes `SELECT … FROM ONLY table WHERE condition`, whose nodes are in the
    /// current memory context. Nobody's rights to the table are checked: the caller must have
    /// checked them for the parent. Panics outside of a query.
    ///
    /// # Safety
    /// The table must be the parent or one below it, and the condition an expression, which may be
    /// changed, over the parent as table 1. No earlier call may have failed.
    pub unsafe fn add_rows(&self, leaf: Relation, condition: *mut Node) {
        let snapshot = sql::snapshot().expect("a query has a snapshot");
        // SAFETY: these are the executor's own steps for a plan. The query is one that the parser
        // could have made, since the caller promises the table and the condition.
        unsafe {
            let query = select(leaf, self.parent, self.targets, condition);
            let plan = version::plan(query, TEXT);
            version::drop_required_rights(plan, nodes::items((*plan).rtable));

            let receiver = pg_sys::CreateTuplestoreDestReceiver();
            let context = pg_sys::CurrentMemoryContext;
            let must_detoast = false;
            pg_sys::SetTuplestoreDestReceiverParams(
                receiver,
                self.store,
                context,
                must_detoast,
                null_mut(),
                null_mut(),
            );

            let no_crosscheck_snapshot = null_mut();
            let no_parameters = null_mut();
            let no_query_environment = null_mut();
            let execution = pg_sys::CreateQueryDesc(
                plan,
                TEXT.as_ptr(),
                snapshot,
                no_crosscheck_snapshot,
                receiver,
                no_parameters,
                no_query_environment,
                0,
            );
            guard(|| {
                raw::ExecutorStart(execution, 0);
                version::executor_run(execution);
                raw::ExecutorFinish(execution);
                raw::ExecutorEnd(execution);
            });
            pg_sys::FreeQueryDesc(execution);
        }
    }
}

/// Returns the type of a column; `None` if the column was dropped.
fn live_type(column: pg_sys::FormData_pg_attribute) -> Option<pg_sys::Oid> {
    if column.attisdropped { None } else { Some(column.atttypid) }
}

/// Returns the list after SELECT, as the parser makes it, that has each column of a table in its
/// order, and NULL for a dropped one, so that the rows fit the table's row type. The columns refer
/// to the table as table 1 of the query. The list is allocated in the current memory context.
fn targets(parent: Relation) -> *mut List {
    let mut targets = null_mut();
    for (column, number) in parent.columns().zip(1..) {
        // SAFETY: the nodes are made for the columns of a table that is open.
        unsafe {
            let expression: *mut pg_sys::Expr = if column.attisdropped {
                pg_sys::makeNullConst(pg_sys::INT4OID, -1, pg_sys::InvalidOid).cast()
            } else {
                pg_sys::makeVar(
                    1,
                    number,
                    column.atttypid,
                    column.atttypmod,
                    column.attcollation,
                    0,
                )
                .cast()
            };
            let name = pg_sys::pstrdup(column.attname.data.as_ptr());
            let is_left_out = false;
            let target = pg_sys::makeTargetEntry(expression, number, name, is_left_out);
            targets = pg_sys::lappend(targets, target.cast());
        }
    }
    targets
}

/// Returns the query `SELECT targets FROM ONLY leaf WHERE condition` as the parser makes it, in the
/// current memory context. `targets` and `condition` are over the columns of the parent, which the
/// leaf may have at other numbers.
///
/// # Safety
/// The leaf must be the parent or below it. The condition must be an expression, which may be
/// changed, and refer to its table as table 1, as the targets must.
unsafe fn select(
    leaf: Relation,
    parent: Relation,
    targets: *mut List,
    mut condition: *mut Node,
) -> *mut pg_sys::Query {
    // SAFETY: the caller promises the tables and the expressions. Each new node has the struct of
    // its tag, and a mapped list has as many items as the list before.
    unsafe {
        let mut targets: *mut List = pg_sys::copyObjectImpl(targets.cast()).cast();
        if leaf.oid() != parent.oid() {
            // The numbers of columns become the leaf's.
            let both =
                pg_sys::lappend(pg_sys::lappend(null_mut(), targets.cast()), condition.cast());
            let mapped = pg_sys::map_partition_varattnos(both, 1, leaf.raw(), parent.raw());
            targets = (*(*mapped).elements).ptr_value.cast();
            condition = (*(*mapped).elements.add(1)).ptr_value.cast();
        }

        let state = pg_sys::make_parsestate(null_mut());
        let item = add_to_range_table(state, leaf);
        let reference =
            memory::copied(&pg_sys::RangeTblRef { type_: NodeTag::T_RangeTblRef, rtindex: 1 });
        let query = memory::copied(&pg_sys::Query {
            type_: NodeTag::T_Query,
            commandType: pg_sys::CmdType::CMD_SELECT,
            canSetTag: true,
            rtable: pg_sys::lappend(null_mut(), (*item).p_rte.cast()),
            jointree: pg_sys::makeFromExpr(
                pg_sys::lappend(null_mut(), reference.cast()),
                condition,
            ),
            targetList: targets,
            // The other fields are empty, as in a query without those clauses.
            ..Default::default()
        });
        version::take_rights(query, state);
        query
    }
}

/// Adds a table to the tables of a query (the parser's range table), as `FROM ONLY leaf` does, and
/// returns the parser's item for it. A table without partitions or children is added without ONLY,
/// which means the same, except to extensions that store rows elsewhere.
///
/// # Safety
/// The state must be the parser's.
unsafe fn add_to_range_table(
    state: *mut pg_sys::ParseState,
    leaf: Relation,
) -> *mut pg_sys::ParseNamespaceItem {
    // An extension that compresses rows may hide them from ONLY. So a table with nothing below it
    // is queried without ONLY.
    let is_only = leaf.class().relhassubclass;
    let with_descendants = !is_only;
    let is_in_from_clause = true;
    let no_alias = null_mut();
    // SAFETY: a `Relation` is open, and the caller promises the state.
    unsafe {
        pg_sys::addRangeTableEntryForRelation(
            state,
            leaf.raw(),
            ACCESS_SHARE,
            no_alias,
            with_descendants,
            is_in_from_clause,
        )
    }
}
