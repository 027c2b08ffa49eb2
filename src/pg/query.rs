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

/// The rows that a call returns, in a store that goes to disk beyond `work_mem`.
pub struct Output<'c> {
    parent: Relation<'c>,
    store: *mut pg_sys::Tuplestorestate,
    targets: *mut List,
}

impl<'c> Output<'c> {
    /// Begins an output without rows. Raises 0A000 if the caller of the function takes no set. Fails
    /// with 55000 if the table was altered since the call was planned.
    pub fn new(call: &'c Call, parent: Relation<'c>) -> Result<Output<'c>> {
        let set = call.begin_set();
        let type_of = |column: pg_sys::FormData_pg_attribute| {
            (!column.attisdropped).then_some(column.atttypid)
        };
        // SAFETY: null, or what the executor expects of the function.
        let expected =
            (!set.expectedDesc.is_null()).then(|| unsafe { version::attributes(set.expectedDesc) });
        if expected.is_some_and(|expected| expected.map(type_of).ne(parent.columns().map(type_of)))
        {
            // It was altered before the call locked it.
            let message = format!("table \"{}\" was altered while the query began", parent.name());
            let error = Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message);
            return Err(error.hint("Run the query again."));
        }
        Ok(Output { parent, store: set.setResult, targets: targets(parent) })
    }

    /// Adds the rows of a table that meet a condition over the parent's columns. Panics outside of
    /// a query.
    ///
    /// # Safety
    /// The table must be the parent or one below it, and the condition an expression, which may be
    /// changed, over the parent as table 1. No earlier call may have failed.
    pub unsafe fn add_rows(&self, leaf: Relation, condition: *mut Node) {
        let snapshot = sql::snapshot().expect("a query has a snapshot");
        // SAFETY: the executor's own steps for a plan; the query is one that the parser could have
        // made.
        unsafe {
            let query = select(leaf, self.parent, self.targets, condition);
            let plan = version::plan(query, TEXT);
            version::check_no_rights(plan, nodes::items((*plan).rtable));
            let receiver = pg_sys::CreateTuplestoreDestReceiver();
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::SetTuplestoreDestReceiverParams(
                receiver,
                self.store,
                context,
                false,
                null_mut(),
                null_mut(),
            );
            let none = null_mut();
            let run = pg_sys::CreateQueryDesc(
                plan,
                TEXT.as_ptr(),
                snapshot,
                none,
                receiver,
                null_mut(),
                null_mut(),
                0,
            );
            guard(|| {
                raw::ExecutorStart(run, 0);
                version::executor_run(run);
                raw::ExecutorFinish(run);
                raw::ExecutorEnd(run);
            });
            pg_sys::FreeQueryDesc(run);
        }
    }
}

/// Each column of the parent as a target, in the memory of the call; NULL for a dropped one.
fn targets(parent: Relation) -> *mut List {
    parent.columns().zip(1..).fold(null_mut(), |list, (column, number)| {
        // SAFETY: nodes for the column of an open table.
        unsafe {
            let expression: *mut pg_sys::Expr = if column.attisdropped {
                pg_sys::makeNullConst(pg_sys::INT4OID, -1, pg_sys::InvalidOid).cast()
            } else {
                let (of, modifier, collation) =
                    (column.atttypid, column.atttypmod, column.attcollation);
                pg_sys::makeVar(1, number, of, modifier, collation, 0).cast()
            };
            let name = pg_sys::pstrdup(column.attname.data.as_ptr());
            pg_sys::lappend(list, pg_sys::makeTargetEntry(expression, number, name, false).cast())
        }
    })
}

/// `SELECT targets FROM ONLY leaf WHERE condition`, with targets and condition over the columns of
/// the parent.
///
/// # Safety
/// The condition must be an expression, which may be changed, over table 1.
unsafe fn select(
    leaf: Relation,
    parent: Relation,
    targets: *mut List,
    mut condition: *mut Node,
) -> *mut pg_sys::Query {
    // SAFETY: promised by the caller; new nodes are of the sizes of their tags.
    unsafe {
        let mut targets: *mut List = pg_sys::copyObjectImpl(targets.cast()).cast();
        if leaf.oid() != parent.oid() {
            let both =
                pg_sys::lappend(pg_sys::lappend(null_mut(), targets.cast()), condition.cast());
            let mapped = pg_sys::map_partition_varattnos(both, 1, leaf.raw(), parent.raw());
            targets = (*(*mapped).elements).ptr_value.cast();
            condition = (*(*mapped).elements.add(1)).ptr_value.cast();
        }
        // TimescaleDB hides compressed rows from ONLY: a table with nothing below it is queried
        // without.
        let (state, is_only) = (pg_sys::make_parsestate(null_mut()), leaf.class().relhassubclass);
        let item = pg_sys::addRangeTableEntryForRelation(
            state,
            leaf.raw(),
            ACCESS_SHARE,
            null_mut(),
            !is_only,
            true,
        );
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
            ..Default::default()
        });
        version::take_rights(query, state);
        query
    }
}
