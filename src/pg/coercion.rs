//! What the parser made of an argument without being asked.
//!
//! `citext` and its like become `text` quietly, though their values compare by rules of their own. An expression shows
//! it as long as the conversion is there: of a column or a subquery, within CASE or COALESCE, of each element of an
//! array. It is gone where the planner computed a constant, or made one conversion of two (`x::citext` of a text is `x`
//! then): there the query as it was parsed shows it. Where a cast to text was written the user knows.

use super::catalog;
use super::nodes::{Argument, Scope, nth};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag;

/// The string type of another extension that values of an argument were converted from quietly, if there is one.
///
/// # Safety
/// The argument must be a valid expression, and of its scope.
pub unsafe fn string_type(argument: Argument) -> Option<pg_sys::Oid> {
    let Argument { node, scope } = argument;
    let part = |node| Argument { node, scope };
    // SAFETY: promised by the caller; each node is read as what its tag says. Expressions can be deep: the check raises
    // an error before the stack ends.
    unsafe {
        if node.is_null() {
            return None;
        }
        pg_sys::check_stack_depth();
        match (*node).type_ {
            NodeTag::T_RelabelType => {
                let relabel = node.cast::<pg_sys::RelabelType>();
                converted((*relabel).relabelformat, part((*relabel).arg.cast()))
            }
            NodeTag::T_CoerceViaIO => {
                let coercion = node.cast::<pg_sys::CoerceViaIO>();
                converted((*coercion).coerceformat, part((*coercion).arg.cast()))
            }
            NodeTag::T_ArrayCoerceExpr => {
                let coercion = node.cast::<pg_sys::ArrayCoerceExpr>();
                converted((*coercion).coerceformat, part((*coercion).arg.cast()))
            }
            NodeTag::T_CoerceToDomain => {
                let coercion = node.cast::<pg_sys::CoerceToDomain>();
                converted((*coercion).coercionformat, part((*coercion).arg.cast()))
            }
            NodeTag::T_FuncExpr => {
                let function = node.cast::<pg_sys::FuncExpr>();
                converted((*function).funcformat, part(nth((*function).args, 0)?))
            }
            NodeTag::T_CollateExpr => string_type(part((*node.cast::<pg_sys::CollateExpr>()).arg.cast())),
            NodeTag::T_CaseExpr => {
                let case = node.cast::<pg_sys::CaseExpr>();
                in_any((*case).args, scope).or_else(|| string_type(part((*case).defresult.cast())))
            }
            NodeTag::T_CaseWhen => string_type(part((*node.cast::<pg_sys::CaseWhen>()).result.cast())),
            NodeTag::T_CoalesceExpr => in_any((*node.cast::<pg_sys::CoalesceExpr>()).args, scope),
            NodeTag::T_MinMaxExpr => in_any((*node.cast::<pg_sys::MinMaxExpr>()).args, scope),
            NodeTag::T_NullIfExpr => string_type(part(nth((*node.cast::<pg_sys::NullIfExpr>()).args, 0)?)),
            NodeTag::T_ArrayExpr => in_any((*node.cast::<pg_sys::ArrayExpr>()).elements, scope),
            NodeTag::T_Var => string_type(variable(node.cast(), scope)?),
            _ => None,
        }
    }
}

/// The type in question of an argument of a conversion that was made quietly, or of what it is made of.
///
/// # Safety
/// As for [`string_type`].
unsafe fn converted(format: pg_sys::CoercionForm::Type, argument: Argument) -> Option<pg_sys::Oid> {
    if format != pg_sys::CoercionForm::COERCE_IMPLICIT_CAST {
        return None;
    }
    // SAFETY: promised by the caller.
    unsafe { of_string_type(pg_sys::exprType(argument.node)).or_else(|| string_type(argument)) }
}

/// The string type of another extension that a type is, or is a domain over or an array of.
pub fn of_string_type(oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let base = catalog::base_type(oid);
    let base = catalog::element_type(base).map_or(base, catalog::base_type);
    catalog::is_foreign_string(base).then_some(base)
}

/// The type in question of any of these expressions.
///
/// # Safety
/// `list` must be null or a valid list of expressions; otherwise as for [`string_type`].
unsafe fn in_any(list: *mut pg_sys::List, scope: Scope) -> Option<pg_sys::Oid> {
    // SAFETY: promised by the caller.
    unsafe { (0..).map_while(|i| nth(list, i)).find_map(|node| string_type(Argument { node, scope })) }
}

/// The expression whose value a variable is, if it is one that the plan below computes, what a query groups or sorts by
/// for instance, or a column of a join in a query.
///
/// # Safety
/// As for [`string_type`].
unsafe fn variable(variable: *mut pg_sys::Var, scope: Scope) -> Option<Argument> {
    // SAFETY: promised by the caller; a target list has entries of that type, and so has a query's range table.
    unsafe {
        let column = usize::try_from((*variable).varattno).ok()?.checked_sub(1)?;
        match scope {
            Scope::Plan(plan) => {
                let plan = plan.as_ref().filter(|_| (*variable).varno == pg_sys::OUTER_VAR)?;
                let entry = nth(plan.targetlist, column)?;
                let node = (*entry.cast::<pg_sys::TargetEntry>()).expr.cast();
                Some(Argument { node, scope: Scope::Plan(plan.lefttree) })
            }
            Scope::Query(query) => {
                let range = usize::try_from((*variable).varno).ok()?.checked_sub(1)?;
                let of_this_query = (*variable).varlevelsup == 0;
                let entry = nth((*query).rtable, range).filter(|_| of_this_query)?.cast::<pg_sys::RangeTblEntry>();
                let node = nth(computed_in(entry)?, column)?;
                Some(Argument { node, scope })
            }
        }
    }
}

/// The expressions of a range's columns: of a join, and since PostgreSQL 18 of what a query groups by.
///
/// # Safety
/// `entry` must be a valid entry of a range table.
unsafe fn computed_in(entry: *mut pg_sys::RangeTblEntry) -> Option<*mut pg_sys::List> {
    // SAFETY: promised by the caller.
    unsafe {
        match (*entry).rtekind {
            pg_sys::RTEKind::RTE_JOIN => Some((*entry).joinaliasvars),
            #[cfg(feature = "pg18")]
            pg_sys::RTEKind::RTE_GROUP => Some((*entry).groupexprs),
            _ => None,
        }
    }
}
