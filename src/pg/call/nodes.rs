//! Expressions as PostgreSQL has them, trees of nodes: their arguments, and lists of nodes; and
//! what the expression of a call shows about its arguments.

use super::Call;
use super::error::{Error, Result, SqlState};
use crate::pg::catalog;
use pg_bloom_core::memory::List;
use pgrx::pg_sys;

/// Returns argument `i`, counted from 0, of the function or operator that an expression calls;
/// `None` if the expression has no such argument, or isn't a call. `x operator ANY (array)` has the
/// arguments `x` and the array.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn argument(node: *mut pg_sys::Node, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller promises an expression; the node is read as what its tag says.
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

/// Returns the column that an expression is, alone or converted to another type with the same
/// bytes, which changes nothing (`varchar` to `text`); `None` for any other expression.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn column(mut node: *mut pg_sys::Node) -> Option<*mut pg_sys::Var> {
    // SAFETY: the caller promises an expression; each node is read as what its tag says.
    unsafe {
        while (*node).type_ == pg_sys::NodeTag::T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        ((*node).type_ == pg_sys::NodeTag::T_Var).then_some(node.cast())
    }
}

/// Returns the argument of an expression that casts a `char(n)` or a `name` to text by PostgreSQL's
/// own function; any other expression is returned as it is.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn without_cast_to_text(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller promises an expression; the node is read as what its tag says.
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

/// Returns an expression with the same value and with this collation. It may be the collation that
/// the expression has, but PostgreSQL doesn't take the two expressions for equal.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn collated(node: *mut pg_sys::Node, collation: pg_sys::Oid) -> *mut pg_sys::Node {
    const NO_TYPE_MODIFIER: i32 = -1;
    let not_shown = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
    // SAFETY: the caller promises an expression.
    unsafe {
        let sql_type = pg_sys::exprType(node);
        pg_sys::makeRelabelType(node.cast(), sql_type, NO_TYPE_MODIFIER, collation, not_shown)
            .cast()
    }
}

/// Returns item `i` of a list; `None` if the list has fewer.
///
/// # Safety
/// `list` must be null, which is an empty list, or a valid list of pointers.
pub unsafe fn nth(list: *mut pg_sys::List, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller promises null or a valid list.
    if i >= unsafe { length(list) } {
        return None;
    }
    // SAFETY: the list has more than `i` cells.
    Some(unsafe { (*(*list).elements.add(i)).ptr_value.cast() })
}

/// Returns the number of items of a list.
///
/// # Safety
/// `list` must be null, which is an empty list, or a valid list.
pub unsafe fn length(list: *mut pg_sys::List) -> usize {
    // SAFETY: the caller promises null or a valid list.
    unsafe { list.as_ref().map_or(0, |list| list.length as usize) }
}

/// Returns the items of a list of object identifiers.
///
/// # Safety
/// `list` must be null, which is an empty list, or a valid list of object identifiers.
pub unsafe fn oids(list: *mut pg_sys::List) -> List<pg_sys::Oid> {
    // SAFETY: the caller promises null or a valid list.
    let length = unsafe { length(list) };
    // SAFETY: a list has `length` cells.
    (0..length)
        .map(|i| unsafe { (*(*list).elements.add(i)).oid_value })
        .collect()
}

/// Returns the items of a list in their order.
///
/// # Safety
/// As for [`nth`], as long as the iterator is used.
pub unsafe fn items(list: *mut pg_sys::List) -> impl Iterator<Item = *mut pg_sys::Node> {
    // SAFETY: the caller promises null or a valid list.
    (0..unsafe { length(list) }).filter_map(move |i| unsafe { nth(list, i) })
}

/// Returns the collation that argument `i` of a call has in the query by itself, whatever
/// collations the other arguments have. If the call has no expression to look at, it is the
/// collation of the call.
///
/// Usually the list has one collation. It has several if a window has several functions, of which
/// it can't be known which one is called.
pub fn collations(call: &Call, i: usize) -> List<pg_sys::Oid> {
    let arguments = possible_arguments(call, i);
    if arguments.is_empty() {
        return List::from([call.collation()]);
    }
    // SAFETY: the nodes belong to the expression that is being executed.
    arguments
        .into_iter()
        .map(|argument| unsafe { pg_sys::exprCollation(argument) })
        .collect()
}

/// Checks that argument `i` of a call may be compared with a column as the column's index compares
/// it: the argument has no collation, the default one or the column's, or the collations don't
/// matter, since both compare bytes. `column_collation` is the invalid identifier for a type
/// without collations, for which nothing is checked. Fails with 42P21 otherwise.
pub fn require_collation(call: &Call, i: usize, column_collation: pg_sys::Oid) -> Result<()> {
    if column_collation == pg_sys::InvalidOid {
        return Ok(());
    }
    for collation in collations(call, i) {
        // An argument without a collation, or with the default one, takes that of the column.
        let yields_to_column = [
            pg_sys::InvalidOid,
            pg_sys::DEFAULT_COLLATION_OID,
            column_collation,
        ]
        .contains(&collation);
        if yields_to_column {
            continue;
        }
        let compare_bytes =
            catalog::is_deterministic(collation) && catalog::is_deterministic(column_collation);
        if !compare_bytes {
            return Err(Error::new(
                SqlState::ERRCODE_COLLATION_MISMATCH,
                "the key has another collation than the column, and values that one of them holds equal differ",
            )
            .hint("Use the COLLATE clause on the key, with the column's collation."));
        }
    }
    Ok(())
}

/// Returns whether argument `i` of an aggregate's transition function has the same value for all
/// rows: it is a constant, or a parameter of the query. It is false for other functions, and if the
/// argument can't be seen.
pub fn is_fixed(call: &Call, i: usize) -> bool {
    if call.node(pg_sys::NodeTag::T_AggState).is_none() {
        return false;
    }
    let arguments = possible_arguments(call, i);
    // SAFETY: the nodes belong to the expression that is being executed.
    !arguments.is_empty() && arguments.iter().all(|&node| unsafe { is_constant(node) })
}

/// Returns whether an expression has the same value for all rows of a query, since it is a constant
/// or a parameter that the client has passed (`$1`).
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn is_constant(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller promises an expression; a node is read as what its tag says.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Const => true,
            pg_sys::NodeTag::T_Param => {
                (*node.cast::<pg_sys::Param>()).paramkind == pg_sys::ParamKind::PARAM_EXTERN
            }
            _ => false,
        }
    }
}

/// Returns the expressions of the query whose value argument `i` of a call may be: usually one;
/// none if the call has no expression, as when C code calls the function directly; several in a
/// window, where the functions of one window can't be told apart.
fn possible_arguments(call: &Call, i: usize) -> List<*mut pg_sys::Node> {
    let Some(expression) = call.expression() else {
        return List::new();
    };
    // SAFETY: the executor calls the function on behalf of the window, the aggregate or the
    // expression, whose nodes are valid.
    let argument = unsafe {
        if let Some(window) = call.node(pg_sys::NodeTag::T_WindowAggState) {
            return arguments_in_window(call, window.cast(), i);
        }
        match call.node(pg_sys::NodeTag::T_AggState) {
            Some(state) => argument_of_aggregate(call, state.cast(), i),
            None => argument(expression, i),
        }
    };
    argument.into_iter().collect()
}

/// Returns the expression of the query that argument `i` of an aggregate's own function is.
/// PostgreSQL calls a transition function with the aggregate's state as argument 0 and then the
/// aggregate's arguments. A final function gets the state, the direct arguments (those before
/// WITHIN GROUP), and then the others. Returns `None` for the state, for an argument that doesn't
/// exist, and for a function that combines two states.
///
/// # Safety
/// `state` must be that of the aggregate's node, on whose behalf the function is called.
unsafe fn argument_of_aggregate(
    call: &Call,
    state: *mut pg_sys::AggState,
    i: usize,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller promises a call by an aggregate. Direct arguments are expressions, and the
    // others are entries of a target list.
    unsafe {
        let aggregate = pg_sys::AggGetAggref(call.fcinfo());
        let is_final_function = !(*state).curperagg.is_null();
        let is_combining = (*state).aggsplit & pg_sys::AGGSPLITOP_COMBINE != 0;
        if aggregate.is_null() || (is_combining && !is_final_function) {
            return None;
        }

        let mut index = i.checked_sub(1)?;
        if is_final_function {
            let direct_arguments = (*aggregate).aggdirectargs;
            if let Some(direct) = nth(direct_arguments, index) {
                return Some(direct);
            }
            index -= length(direct_arguments);
        }
        let entry = nth((*aggregate).args, index)?;
        Some((*entry.cast::<pg_sys::TargetEntry>()).expr.cast())
    }
}

/// Returns the expressions that argument `i` of a call can be if an aggregate runs over a window
/// (`OVER …`). Argument 0 is the aggregate's state, for which the list is empty.
///
/// PostgreSQL doesn't tell which of the window's aggregates it calls the function for. So the list
/// has the argument of each aggregate in the window that has this function, if its type is the one
/// of the call's argument.
///
/// # Safety
/// `window` must be the state of the window on whose behalf the function is called.
unsafe fn arguments_in_window(
    call: &Call,
    window: *mut pg_sys::WindowAggState,
    i: usize,
) -> List<*mut pg_sys::Node> {
    // Argument 0 is the state.
    let Some(index) = i.checked_sub(1) else {
        return List::new();
    };
    let (Ok(function), Ok(argument_type)) = (call.function(), call.argument_type(i)) else {
        return List::new();
    };

    let mut found = List::new();
    // SAFETY: the caller promises a call by a window. The list has the states of the window's
    // functions.
    unsafe {
        for state in items((*window).funcs) {
            let window_function = (*state.cast::<pg_sys::WindowFuncExprState>()).wfunc;
            if !catalog::is_function_of_aggregate(function, (*window_function).winfnoid) {
                continue;
            }
            if let Some(argument) = nth((*window_function).args, index)
                && pg_sys::exprType(argument) == argument_type
            {
                found.push(argument);
            }
        }
    }
    found
}
