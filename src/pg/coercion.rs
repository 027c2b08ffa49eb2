//! What the parser made of an argument without being asked.
//!
//! `citext` and its like become `text` quietly, though their values compare by rules of their own. An expression shows
//! it as long as the conversion is there: of a column or a subquery, within CASE or COALESCE, of each element of an
//! array. It is gone where the planner computed a constant, and where a cast was written the user knows.

use super::catalog;
use super::nodes::{Argument, nth};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag;

/// The string type of another extension that values of an argument were converted from quietly, if there is one.
///
/// # Safety
/// The argument must be a valid expression, and its plan null or valid.
pub unsafe fn string_type(argument: Argument) -> Option<pg_sys::Oid> {
    let Argument { node, below } = argument;
    let part = |node| Argument { node, below };
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
                in_any((*case).args, below).or_else(|| string_type(part((*case).defresult.cast())))
            }
            NodeTag::T_CaseWhen => string_type(part((*node.cast::<pg_sys::CaseWhen>()).result.cast())),
            NodeTag::T_CoalesceExpr => in_any((*node.cast::<pg_sys::CoalesceExpr>()).args, below),
            NodeTag::T_MinMaxExpr => in_any((*node.cast::<pg_sys::MinMaxExpr>()).args, below),
            NodeTag::T_NullIfExpr => string_type(part(nth((*node.cast::<pg_sys::NullIfExpr>()).args, 0)?)),
            NodeTag::T_ArrayExpr => in_any((*node.cast::<pg_sys::ArrayExpr>()).elements, below),
            NodeTag::T_Var => string_type(computed_below(node.cast(), below)?),
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
unsafe fn in_any(list: *mut pg_sys::List, below: *mut pg_sys::Plan) -> Option<pg_sys::Oid> {
    // SAFETY: promised by the caller.
    unsafe { (0..).map_while(|i| nth(list, i)).find_map(|node| string_type(Argument { node, below })) }
}

/// The expression whose value a variable is, if it is one that the plan below computes: what a query groups or sorts
/// by, for instance.
///
/// # Safety
/// As for [`string_type`].
unsafe fn computed_below(variable: *mut pg_sys::Var, below: *mut pg_sys::Plan) -> Option<Argument> {
    // SAFETY: promised by the caller; a target list has entries of that type.
    unsafe {
        let plan = below.as_ref().filter(|_| (*variable).varno == pg_sys::OUTER_VAR)?;
        let column = usize::try_from((*variable).varattno).ok()?.checked_sub(1)?;
        let entry = nth(plan.targetlist, column)?;
        Some(Argument { node: (*entry.cast::<pg_sys::TargetEntry>()).expr.cast(), below: plan.lefttree })
    }
}
