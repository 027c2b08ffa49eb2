//! Nodes of expressions and lists of them, and what the expression of a call shows about its
//! arguments.

use super::Call;
use super::error::{Error, Result, SqlState};
use crate::pg::catalog;
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// Argument `i` of the function or operator that an expression calls; 1 of `x operator ANY (array)`
/// is the array.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn argument(node: *mut pg_sys::Node, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; the node is read as what its tag says.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_FuncExpr => nth((*node.cast::<pg_sys::FuncExpr>()).args, i),
            pg_sys::NodeTag::T_OpExpr => nth((*node.cast::<pg_sys::OpExpr>()).args, i),
            pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                nth((*node.cast::<pg_sys::ScalarArrayOpExpr>()).args, i)
            }
            _ => None,
        }
    }
}

/// The column that an expression is, perhaps under another name of its type.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn column(mut node: *mut pg_sys::Node) -> Option<*mut pg_sys::Var> {
    // SAFETY: promised by the caller; each node is read as what its tag says.
    unsafe {
        while (*node).type_ == pg_sys::NodeTag::T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        ((*node).type_ == pg_sys::NodeTag::T_Var).then_some(node.cast())
    }
}

/// The value that an expression casts to text, if the cast is one of PostgreSQL's functions for
/// `char(n)` and `name`; any other expression as it is.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn without_cast_to_text(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: promised by the caller; the node is read as what its tag says.
    unsafe {
        if (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
            return node;
        }
        let call = &*node.cast::<pg_sys::FuncExpr>();
        let casts = [pg_sys::F_TEXT_BPCHAR, pg_sys::F_TEXT_NAME];
        if !casts.contains(&call.funcid.to_u32()) {
            return node;
        }
        nth(call.args, 0).unwrap_or(node)
    }
}

/// The same expression with a collation, maybe its own: PostgreSQL doesn't take both for equal.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn collated(node: *mut pg_sys::Node, collation: pg_sys::Oid) -> *mut pg_sys::Node {
    let hidden = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
    // SAFETY: promised by the caller.
    unsafe {
        pg_sys::makeRelabelType(node.cast(), pg_sys::exprType(node), -1, collation, hidden).cast()
    }
}

/// # Safety
/// `list` must be null or a valid list of pointers.
pub unsafe fn nth(list: *mut pg_sys::List, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; a list has `length` cells.
    unsafe { (i < length(list)).then(|| (*(*list).elements.add(i)).ptr_value.cast()) }
}

/// # Safety
/// `list` must be null or a valid list.
pub unsafe fn length(list: *mut pg_sys::List) -> usize {
    // SAFETY: promised by the caller.
    unsafe { list.as_ref().map_or(0, |list| list.length as usize) }
}

/// # Safety
/// `list` must be null or a valid list of object identifiers.
pub unsafe fn oids(list: *mut pg_sys::List) -> Vec<pg_sys::Oid> {
    // SAFETY: promised by the caller; a list has `length` cells.
    memory::collect(
        (0..unsafe { length(list) }).map(|i| unsafe { (*(*list).elements.add(i)).oid_value }),
    )
}

/// # Safety
/// As [`nth`], for as long as the items are asked for.
pub unsafe fn items(list: *mut pg_sys::List) -> impl Iterator<Item = *mut pg_sys::Node> {
    // SAFETY: promised by the caller.
    (0..unsafe { length(list) }).filter_map(move |i| unsafe { nth(list, i) })
}

/// The collations that argument `i` has by itself, whatever its neighbours have: several if it
/// can't be told which function of a window is being called. If the argument can't be seen, the
/// collation of the call.
pub fn collations(call: &Call, i: usize) -> Vec<pg_sys::Oid> {
    let arguments = arguments(call, i);
    if arguments.is_empty() {
        return vec![call.collation()];
    }
    // SAFETY: the nodes belong to the expression that is being executed.
    arguments
        .into_iter()
        .map(|argument| unsafe { pg_sys::exprCollation(argument) })
        .collect()
}

/// Checks that a query would compare argument `i` with a column under the column's collation, or
/// that this is of no account, since both collations compare bytes. Errors: 42P21 if not.
pub fn require_collation(call: &Call, i: usize, column: pg_sys::Oid) -> Result<()> {
    let counts = |collation| {
        ![pg_sys::InvalidOid, pg_sys::DEFAULT_COLLATION_OID, column].contains(&collation)
    };
    let are_bytes =
        |collation| catalog::is_deterministic(collation) && catalog::is_deterministic(column);
    let differs = |collation| counts(collation) && !are_bytes(collation);
    if column == pg_sys::InvalidOid || !collations(call, i).into_iter().any(differs) {
        return Ok(());
    }
    let message = "the key has another collation than the column, and values that one of them holds equal differ";
    Err(Error::new(SqlState::ERRCODE_COLLATION_MISMATCH, message)
        .hint("Use the COLLATE clause on the key, with the column's collation."))
}

/// Whether argument `i` of an aggregate's transition function is one for all rows: a constant, or a
/// query's parameter.
pub fn is_fixed(call: &Call, i: usize) -> bool {
    if call.node(pg_sys::NodeTag::T_AggState).is_none() {
        return false;
    }
    let arguments = arguments(call, i);
    // SAFETY: the nodes belong to the expression that is being executed, and each is read as what
    // its tag says.
    let is_fixed = |&node: &*mut pg_sys::Node| unsafe {
        let is_extern =
            |node: *mut pg_sys::Param| (*node).paramkind == pg_sys::ParamKind::PARAM_EXTERN;
        let tag = (*node).type_;
        tag == pg_sys::NodeTag::T_Const
            || (tag == pg_sys::NodeTag::T_Param && is_extern(node.cast()))
    };
    !arguments.is_empty() && arguments.iter().all(is_fixed)
}

/// The expressions that argument `i` of a call may be: none if there is no expression to look at,
/// several in a window.
fn arguments(call: &Call, i: usize) -> Vec<*mut pg_sys::Node> {
    use pg_sys::NodeTag::{T_AggState, T_WindowAggState};
    let Some(node) = call.expression() else {
        return Vec::new();
    };
    // SAFETY: the executor calls this function for the aggregate, the window or the expression,
    // which has the nodes.
    unsafe {
        let argument = match (call.node(T_WindowAggState), call.node(T_AggState)) {
            (Some(window), _) => return arguments_in_window(call, window.cast(), i),
            (None, Some(state)) => argument_of_aggregate(call, state.cast(), i),
            (None, None) => argument(node, i),
        };
        argument.into_iter().collect()
    }
}

/// Argument `i` of an aggregate's function, which has the state first, then, if it is final, the
/// direct arguments.
///
/// # Safety
/// `state` must be that of the aggregate's node, on whose behalf the function is being called.
unsafe fn argument_of_aggregate(
    call: &Call,
    state: *mut pg_sys::AggState,
    i: usize,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; arguments of an aggregate are entries of a target list,
    // direct ones expressions.
    unsafe {
        let aggregate = pg_sys::AggGetAggref(call.fcinfo());
        let is_final = !(*state).curperagg.is_null();
        let is_combining = (*state).aggsplit & pg_sys::AGGSPLITOP_COMBINE != 0;
        if aggregate.is_null() || (is_combining && !is_final) {
            return None;
        }
        let mut i = i.checked_sub(1)?;
        if is_final {
            if let Some(direct) = nth((*aggregate).aggdirectargs, i) {
                return Some(direct);
            }
            i -= length((*aggregate).aggdirectargs);
        }
        let entry = nth((*aggregate).args, i)?;
        Some((*entry.cast::<pg_sys::TargetEntry>()).expr.cast())
    }
}

/// Argument `i` in all aggregates of a window that have the function being called, with as many of
/// its type.
///
/// # Safety
/// `window` must be the state of the window on whose behalf the function is being called.
unsafe fn arguments_in_window(
    call: &Call,
    window: *mut pg_sys::WindowAggState,
    i: usize,
) -> Vec<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; the list has the states of the window's functions.
    unsafe {
        let (Some(i_of_aggregate), Ok(function), Ok(type_of_argument)) =
            (i.checked_sub(1), call.function(), call.argument_type(i))
        else {
            return Vec::new();
        };
        items((*window).funcs)
            .map(|state| (*state.cast::<pg_sys::WindowFuncExprState>()).wfunc)
            .filter(|&wanted| catalog::is_function_of_aggregate(function, (*wanted).winfnoid))
            .filter_map(|wanted| nth((*wanted).args, i_of_aggregate))
            .filter(|&node| pg_sys::exprType(node) == type_of_argument)
            .collect()
    }
}
