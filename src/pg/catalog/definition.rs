//! What a table has beside its columns: a primary key, rules and triggers, CHECK constraints that
//! call a function.

use crate::pg::call::error::Result;
use crate::pg::call::guard::{guard, raw};
use crate::pg::call::nodes::items;
use crate::pg::sql::{self, Parameter, Sees};
use crate::pg::storage::relation::Relation;
use pg_bloom_core::memory::List;
use pgrx::pg_sys;

/// An argument of the function that a CHECK constraint calls.
pub enum CheckArgument {
    /// A column, by its number.
    Column(i16),
    /// A constant that is not NULL, of a type of fixed length, and that type.
    Constant(pg_sys::Datum, pg_sys::Oid),
    Null,
}

impl CheckArgument {
    /// Returns the constant if it has this type; `None` for any other argument. Functions of one
    /// name may be declared with all sorts of types.
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
    pub arguments: List<CheckArgument>,
}

/// Returns whether rules of a table, or triggers after a change, may alter rows once a change has
/// returned them. A table with partitions or children counts as one with triggers, since the
/// triggers of the tables below it aren't read.
pub fn is_changed_afterwards(table: Relation) -> bool {
    // SAFETY: an open relation has a valid struct, whose triggers and rules may be null.
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

/// Returns whether a table may have other rows than the inserted ones after a TRUNCATE and an
/// INSERT, because of triggers or rules. A table with partitions or children counts as one with
/// triggers.
pub fn may_insert_others(table: Relation) -> bool {
    // SAFETY: an open relation has a valid struct, whose triggers may be null.
    let triggers = unsafe { (*table.raw()).trigdesc.as_ref() };
    let has_triggers = triggers.is_some_and(|triggers| {
        (triggers.trig_insert_before_row || triggers.trig_insert_before_statement)
            || (triggers.trig_truncate_before_statement || triggers.trig_truncate_after_statement)
    });
    has_triggers || is_changed_afterwards(table)
}

/// Returns those CHECK constraints of a table that are nothing but a call of a function with
/// columns and constants as arguments, such as `CHECK (f(a, 5))`. Others are left out. The memory
/// that PostgreSQL needs for reading them is in the current memory context.
pub fn check_calls(table: Relation) -> List<CheckCall> {
    let mut calls = List::new();
    // SAFETY: an open relation has a descriptor, with `num_check` constraints; the text of each is
    // a valid expression.
    unsafe {
        let Some(constraints) = (*(*table.raw()).rd_att).constr.as_ref() else {
            return List::new();
        };
        for i in 0..usize::from(constraints.num_check) {
            let text = (*constraints.check.add(i)).ccbin;
            calls.extend(check_call(pg_sys::stringToNode(text).cast()));
        }
    }
    calls
}

/// Returns the function and the arguments of a CHECK constraint that is nothing but a call with
/// columns and constants, alone or followed by IS TRUE; `None` if it is another expression.
///
/// # Safety
/// `constraint` must be a valid expression or null.
unsafe fn check_call(constraint: *mut pg_sys::Node) -> Option<CheckCall> {
    // SAFETY: the caller promises an expression, whose nodes have the structs of their tags.
    unsafe {
        let node = without_is_true(constraint);
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        let call = &*node.cast::<pg_sys::FuncExpr>();
        let arguments = items(call.args).map(|node| argument(node)).collect::<Option<_>>()?;
        Some(CheckCall { function: call.funcid, arguments })
    }
}

/// Returns whether a column, by its number, is alone the primary key of a table, valid and not
/// deferrable. Asks the catalogs by SQL, and fails as SQL does.
///
/// One statement reads both the constraint and its index, since REINDEX CONCURRENTLY exchanges the
/// index, and this session may learn of that a moment later.
pub fn is_primary_key(table: pg_sys::Oid, column: i16) -> Result<bool> {
    const PRIMARY_KEY: &[u8] = b"SELECT FROM pg_catalog.pg_constraint AS c JOIN pg_catalog.pg_index AS i \
        ON i.indexrelid OPERATOR(pg_catalog.=) c.conindid WHERE c.conrelid OPERATOR(pg_catalog.=) $1 \
        AND c.contype OPERATOR(pg_catalog.=) 'p' AND c.conkey OPERATOR(pg_catalog.=) ARRAY[$2::pg_catalog.int2] \
        AND i.indimmediate AND i.indisvalid";
    let values = [Parameter::Oid(table), Parameter::I64(column.into())];
    Ok(sql::execute(&[PRIMARY_KEY], &values, Sees::Catalogs, |_| Ok(()))? == 1)
}

/// A CHECK constraint as it is at some time.
#[derive(PartialEq)]
pub struct CheckVersion {
    /// The identifier of the constraint.
    constraint: u32,
    /// The number of the transaction that wrote the constraint's row in the catalog. After the
    /// constraint was altered, that is another transaction.
    pub written_by: u32,
}

/// Returns the CHECK constraints of a table, in the order of their identifiers, as the catalog has
/// them in the snapshot that `sees` names. The caller can compare what two snapshots see. Asks by
/// SQL, and fails as the statement does.
pub fn check_versions(table: pg_sys::Oid, sees: Sees) -> Result<List<CheckVersion>> {
    const CHECKS: &[u8] = b"SELECT c.oid, c.xmin FROM pg_catalog.pg_constraint AS c \
        WHERE c.conrelid OPERATOR(pg_catalog.=) $1 AND c.contype OPERATOR(pg_catalog.=) 'c' ORDER BY c.oid";
    let mut checks = List::new();
    sql::execute(&[CHECKS], &[Parameter::Oid(table)], sees, |row| {
        let constraint = row.number(1, pg_sys::OIDOID)?.unwrap_or(0) as u32;
        let written_by = row.number(2, pg_sys::XIDOID)?.unwrap_or(0) as u32;
        checks.push(CheckVersion { constraint, written_by });
        Ok(())
    })?;
    Ok(checks)
}

/// Returns the expression before IS TRUE, if `node` is such a test; any other expression, and null,
/// is returned as it is.
///
/// # Safety
/// `node` must be a valid expression or null.
unsafe fn without_is_true(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller promises an expression, whose nodes have the structs of their tags.
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

/// Returns the column or the constant that an argument of a call in a CHECK constraint is; `None`
/// for another expression, and for a constant of a type of variable length. A constant may be
/// within PostgreSQL's own functions, such as casts, which are evaluated. Functions of users aren't
/// called, since they would have the rights of the session.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn argument(mut node: *mut pg_sys::Node) -> Option<CheckArgument> {
    // SAFETY: the caller promises an expression, whose nodes have the structs of their tags.
    unsafe {
        if is_cast_constant(node) {
            node = guard(|| raw::eval_const_expressions(std::ptr::null_mut(), node));
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Var => {
                Some(CheckArgument::Column((*node.cast::<pg_sys::Var>()).varattno))
            }
            pg_sys::NodeTag::T_Const => {
                let constant: &pg_sys::Const = &*node.cast();
                if constant.constisnull {
                    Some(CheckArgument::Null)
                } else if constant.constlen > 0 {
                    Some(CheckArgument::Constant(constant.constvalue, constant.consttype))
                } else {
                    None
                }
            }
            _ => None,
        }
    }
}

/// Returns whether an expression is a constant, or a call of PostgreSQL's own functions on
/// constants, such as a cast of one.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn is_cast_constant(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller promises an expression, whose nodes have the structs of their tags.
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
