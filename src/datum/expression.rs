//! What the expression of a call shows about its arguments.

use super::call::Call;
use super::catalog;
use pgrx::pg_sys;
use std::ffi::CStr;

/// The type that the parser took for `text` without being asked, if argument `i` shows one: `citext` becomes `text`
/// quietly, though its values compare by other rules.
pub fn quietly_relabelled(call: &Call, i: usize) -> Option<pg_sys::Oid> {
    if let Some(window) = call.window() {
        // SAFETY: the executor calls this function for one of the window's functions.
        return unsafe { relabelled_in_window(call.function().ok()?, window) };
    }
    let node = call.expression()?;
    // SAFETY: the nodes belong to the expression that is being executed.
    unsafe { implicit_source(argument(node, i)?) }
}

/// Whether argument `i` of an aggregate's transition function is the same for all rows: a constant, or a parameter of
/// the query.
pub fn is_fixed(call: &Call, i: usize) -> bool {
    // SAFETY: the nodes belong to the expression that is being executed, and each is read as what its tag says.
    unsafe {
        let Some(node) = call.expression().filter(|&node| (*node).type_ == pg_sys::NodeTag::T_Aggref) else {
            return false;
        };
        argument(node, i).is_some_and(|expression| match (*expression).type_ {
            pg_sys::NodeTag::T_Const => true,
            pg_sys::NodeTag::T_Param => {
                (*expression.cast::<pg_sys::Param>()).paramkind == pg_sys::ParamKind::PARAM_EXTERN
            }
            _ => false,
        })
    }
}

/// Whether argument `i` is a constant. A parameter is none: PL/pgSQL changes its value without a new call site.
pub fn is_constant(call: &Call, i: usize) -> bool {
    // SAFETY: the nodes belong to the expression that is being executed.
    unsafe {
        call.expression()
            .and_then(|node| argument(node, i))
            .is_some_and(|expression| (*expression).type_ == pg_sys::NodeTag::T_Const)
    }
}

/// Argument `i` of the function that an expression calls.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn argument(node: *mut pg_sys::Node, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; the node is read as what its tag says.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_FuncExpr => nth((*node.cast::<pg_sys::FuncExpr>()).args, i),
            pg_sys::NodeTag::T_OpExpr => nth((*node.cast::<pg_sys::OpExpr>()).args, i),
            pg_sys::NodeTag::T_Aggref => {
                // The state is the transition function's first argument and no argument of the aggregate.
                let entry = nth((*node.cast::<pg_sys::Aggref>()).args, i.checked_sub(1)?)?;
                Some((*entry.cast::<pg_sys::TargetEntry>()).expr.cast())
            }
            _ => None,
        }
    }
}

/// The quietly relabelled type of the first argument of an aggregate of this window that is of the extension.
///
/// # Safety
/// `window` must be the state of the window whose function is being called.
unsafe fn relabelled_in_window(function: pg_sys::Oid, window: *mut pg_sys::WindowAggState) -> Option<pg_sys::Oid> {
    // SAFETY: promised by the caller; the list has the states of the window's functions.
    unsafe {
        let namespace = pg_sys::get_func_namespace(function);
        let functions = (*window).funcs;
        (0..).map_while(|i| nth(functions, i)).find_map(|state| {
            let window_function = (*state.cast::<pg_sys::WindowFuncExprState>()).wfunc;
            let name = pg_sys::get_func_name((*window_function).winfnoid);
            let ours = !name.is_null()
                && [c"bloom_agg", c"counting_bloom_agg"].contains(&CStr::from_ptr(name))
                && pg_sys::get_func_namespace((*window_function).winfnoid) == namespace;
            if !ours {
                return None;
            }
            let source = implicit_source(nth((*window_function).args, 0)?)?;
            catalog::is_foreign_string(source).then_some(source)
        })
    }
}

/// Item `i` of a list of nodes.
///
/// # Safety
/// `list` must be null or a valid list of pointers.
pub(super) unsafe fn nth(list: *mut pg_sys::List, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; a list has `length` cells.
    unsafe {
        let there = !list.is_null() && i < (*list).length as usize;
        there.then(|| (*(*list).elements.add(i)).ptr_value.cast())
    }
}

/// The type under implicit relabelling, if there is some.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn implicit_source(mut node: *mut pg_sys::Node) -> Option<pg_sys::Oid> {
    let mut found = None;
    // SAFETY: promised by the caller; each node is read as what its tag says.
    unsafe {
        while !node.is_null() && (*node).type_ == pg_sys::NodeTag::T_RelabelType {
            let relabel = node.cast::<pg_sys::RelabelType>();
            if (*relabel).relabelformat != pg_sys::CoercionForm::COERCE_IMPLICIT_CAST {
                return None;
            }
            node = (*relabel).arg.cast();
            found = Some(catalog::base_type(pg_sys::exprType(node)));
        }
    }
    found
}

/// How many processes may take part in a parallel plan: the workers, and the leader.
pub fn processes() -> u64 {
    // SAFETY: reading a setting of the process.
    let workers = unsafe { pg_sys::max_parallel_workers_per_gather };
    1 + u64::try_from(workers).unwrap_or(0)
}

/// Whether each process has one partial state a group of the aggregate that is being called. Below an Append, for
/// instance, it may have many.
pub fn is_only_aggregate(call: &Call) -> bool {
    let Some(aggregate) = call.aggregate_state() else { return false };
    // SAFETY: the state of the aggregate's node, its plan and that of the query live as long as the query.
    unsafe {
        // What calls aggregates by itself, as Citus does, may combine any number of states.
        if (*aggregate).aggsplit & pg_sys::AGGSPLITOP_SERIALIZE == 0 {
            return false;
        }
        let own = (*aggregate).ss.ps.plan;
        let mut plan = (*(*(*aggregate).ss.ps.state).es_plannedstmt).planTree;
        while !plan.is_null() && !std::ptr::eq(plan, own) {
            plan = (*plan).lefttree;
        }
        !plan.is_null()
    }
}
