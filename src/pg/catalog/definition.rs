//! What a table has beside its columns: a primary key, rules and triggers, CHECK constraints that
//! call a function.

use crate::pg::call::error::Result;
use crate::pg::call::guard::{guard, raw};
use crate::pg::call::nodes::items;
use crate::pg::sql::{self, Parameter, Sees};
use crate::pg::storage::relation::Relation;
use pgrx::pg_sys;

pub enum CheckArgument {
    /// A column, by its number.
    Column(i16),
    /// A constant that is not NULL, of a type of fixed length, and that type.
    Constant(pg_sys::Datum, pg_sys::Oid),
    Null,
}

impl CheckArgument {
    /// The constant, if it is one of this type: functions of one name may be declared with all
    /// sorts of types.
    pub fn constant(&self, of: pg_sys::Oid) -> Option<pg_sys::Datum> {
        match *self {
            CheckArgument::Constant(datum, oid) if oid == of => Some(datum),
            _ => None,
        }
    }
}

/// A CHECK constraint that is nothing but a call of a function with columns and constants, alone or
/// followed by IS TRUE.
pub struct CheckCall {
    pub function: pg_sys::Oid,
    pub arguments: Vec<CheckArgument>,
}

/// Whether rules, or triggers after the change, may make of a change something else than it
/// returns. Those of partitions are not looked at: a table that has any counts as one that has
/// them.
pub fn is_changed_afterwards(table: Relation) -> bool {
    // SAFETY: an open relation has its row of the catalog; triggers and rules are null or there.
    unsafe {
        let relation = &*table.raw();
        let has_triggers = relation.trigdesc.as_ref().is_some_and(|triggers| {
            (triggers.trig_insert_after_row || triggers.trig_insert_after_statement)
                || (triggers.trig_update_after_row || triggers.trig_update_after_statement)
                || (triggers.trig_delete_after_row || triggers.trig_delete_after_statement)
        });
        has_triggers || !relation.rd_rules.is_null() || table.class().relhassubclass
    }
}

/// Returns whether triggers or rules may make of a TRUNCATE and an INSERT something else than the
/// table without its old rows and with the new ones. As in [`is_changed_afterwards`], a table that
/// has partitions counts as one that has them.
pub fn may_insert_others(table: Relation) -> bool {
    // SAFETY: an open relation's triggers are null or there.
    let triggers = unsafe { (*table.raw()).trigdesc.as_ref() };
    let has_triggers = triggers.is_some_and(|triggers| {
        (triggers.trig_insert_before_row || triggers.trig_insert_before_statement)
            || (triggers.trig_truncate_before_statement || triggers.trig_truncate_after_statement)
    });
    has_triggers || is_changed_afterwards(table)
}

pub fn check_calls(table: Relation) -> Vec<CheckCall> {
    // SAFETY: an open relation has a descriptor, with as many constraints as it says; nodes are
    // read as their tags say.
    unsafe {
        let Some(constraints) = (*(*table.raw()).rd_att).constr.as_ref() else {
            return Vec::new();
        };
        let call = |i| {
            let node: *mut pg_sys::Node =
                pg_sys::stringToNode((*constraints.check.add(i)).ccbin).cast();
            let node = without_is_true(node);
            if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
                return None;
            }
            let call = &*node.cast::<pg_sys::FuncExpr>();
            let arguments = items(call.args).map(|node| argument(node)).collect::<Option<_>>()?;
            Some(CheckCall { function: call.funcid, arguments })
        };
        (0..usize::from(constraints.num_check)).filter_map(call).collect()
    }
}

/// Whether a column, by its number, is the primary key of a table, checked at once. One statement
/// reads the constraint and its index: REINDEX CONCURRENTLY exchanges the index, and reports that a
/// moment later.
pub fn is_primary_key(table: pg_sys::Oid, column: i16) -> Result<bool> {
    const PRIMARY_KEY: &[u8] = b"SELECT FROM pg_catalog.pg_constraint AS c JOIN pg_catalog.pg_index AS i \
        ON i.indexrelid OPERATOR(pg_catalog.=) c.conindid WHERE c.conrelid OPERATOR(pg_catalog.=) $1 \
        AND c.contype OPERATOR(pg_catalog.=) 'p' AND c.conkey OPERATOR(pg_catalog.=) ARRAY[$2::pg_catalog.int2] \
        AND i.indimmediate AND i.indisvalid";
    let values = [Parameter::Oid(table), Parameter::I64(column.into())];
    Ok(sql::execute(&[PRIMARY_KEY], &values, Sees::Catalogs, |_| Ok(()))? == 1)
}

/// The CHECK constraints of a table as a snapshot sees them: their identifiers, and the
/// transactions that wrote them.
pub fn checks_written_by(table: pg_sys::Oid, sees: Sees) -> Result<Vec<(u32, u32)>> {
    const CHECKS: &[u8] = b"SELECT c.oid, c.xmin FROM pg_catalog.pg_constraint AS c \
        WHERE c.conrelid OPERATOR(pg_catalog.=) $1 AND c.contype OPERATOR(pg_catalog.=) 'c' ORDER BY c.oid";
    let mut rows = Vec::new();
    sql::execute(&[CHECKS], &[Parameter::Oid(table)], sees, |row| {
        let number = |column, of| row.number(column, of).map(|number| number.unwrap_or(0) as u32);
        rows.push((number(1, pg_sys::OIDOID)?, number(2, pg_sys::XIDOID)?));
        Ok(())
    })?;
    Ok(rows)
}

/// Returns `condition` of the expression `condition IS TRUE`, and any other expression as it is.
///
/// # Safety
/// `node` must be a valid expression or null.
unsafe fn without_is_true(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: promised by the caller; a node is read as what its tag says.
    unsafe {
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_BooleanTest {
            return node;
        }
        let test = &*node.cast::<pg_sys::BooleanTest>();
        if test.booltesttype == pg_sys::BoolTestType::IS_TRUE {
            test.arg.cast()
        } else {
            node
        }
    }
}

/// A column or a constant, which PostgreSQL's own functions may have cast: others would have the
/// rights of the session.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn argument(mut node: *mut pg_sys::Node) -> Option<CheckArgument> {
    // SAFETY: promised by the caller.
    unsafe {
        if is_cast_constant(node) {
            node = guard(|| raw::eval_const_expressions(std::ptr::null_mut(), node));
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Var => {
                Some(CheckArgument::Column((*node.cast::<pg_sys::Var>()).varattno))
            }
            pg_sys::NodeTag::T_Const => {
                let &pg_sys::Const { constisnull, constlen, constvalue, consttype, .. } =
                    &*node.cast();
                let value =
                    (constlen > 0).then_some(CheckArgument::Constant(constvalue, consttype));
                if constisnull { Some(CheckArgument::Null) } else { value }
            }
            _ => None,
        }
    }
}

/// Whether an expression is nothing but PostgreSQL's own functions and constants.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn is_cast_constant(node: *mut pg_sys::Node) -> bool {
    // SAFETY: promised by the caller; a node is read as what its tag says.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Const => true,
            pg_sys::NodeTag::T_FuncExpr => {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                let is_own = call.funcid.to_u32() < pg_sys::FirstNormalObjectId;
                is_own && items(call.args).all(|node| is_cast_constant(node))
            }
            _ => false,
        }
    }
}
