//! Parameters that the planner is about to replace with their values.
//!
//! A plan made for certain values of its parameters has constants in their place, and a `citext` that the parser made a
//! `text` of is then a constant of type text, as any other. The planner asks a function's support function to simplify
//! a call when that is done, but still has the query as it was parsed.

use super::call::Call;
use super::nodes::{self, Argument};
use super::{catalog, coercion};
use pgrx::pg_sys;
use pgrx::pg_sys::{Node, NodeTag, Oid};
use std::ffi::c_void;

/// What is looked for in a query.
struct Search {
    /// The function that is called.
    function: Oid,
    /// The type of a parameter that was converted quietly.
    found: Option<Oid>,
}

/// The string type of another extension that a parameter has from which the query makes an argument of the function
/// quietly, if argument 0 of a support function is the planner's request to simplify a call.
pub fn quiet_parameter(call: &Call) -> Option<Oid> {
    let request = call.internal::<pg_sys::SupportRequestSimplify>(0)?;
    // SAFETY: the planner passes a node, which is read as what its tag says, with a call, and the root of the query if
    // there is one. The query is only read.
    unsafe {
        if (*request).type_ != NodeTag::T_SupportRequestSimplify || (*request).root.is_null() {
            return None;
        }
        let root = (*request).root;
        if (*root).glob.is_null() || !may_have_quiet((*(*root).glob).boundParams) {
            return None;
        }
        let mut search = Search { function: (*(*request).fcall).funcid, found: None };
        let ignore =
            pg_sys::QTW_IGNORE_RT_SUBQUERIES | pg_sys::QTW_IGNORE_CTE_SUBQUERIES | pg_sys::QTW_IGNORE_JOINALIASES;
        pg_sys::query_tree_walker((*root).parse, Some(find_call), (&raw mut search).cast(), ignore as i32);
        search.found
    }
}

/// Whether a parameter with a value may be of a string type of another extension.
///
/// # Safety
/// `params` must be null or valid.
unsafe fn may_have_quiet(params: pg_sys::ParamListInfo) -> bool {
    // SAFETY: promised by the caller; there are `numParams` values unless they are fetched as needed, as PL/pgSQL does.
    unsafe {
        let Some(list) = params.as_ref() else { return false };
        list.paramFetch.is_some()
            || list
                .params
                .as_slice(list.numParams as usize)
                .iter()
                .any(|param| catalog::is_type(param.ptype) && coercion::of_string_type(param.ptype).is_some())
    }
}

/// Looks for a call of the function with a parameter that was converted quietly, in a query but not in its subqueries:
/// these are planned by themselves.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn find_call(node: *mut Node, context: *mut c_void) -> bool {
    // SAFETY: the walker passes null or a node of the query, and what it was given for context.
    unsafe {
        if node.is_null() || (*node).type_ == NodeTag::T_Query {
            return false;
        }
        let search = &mut *context.cast::<Search>();
        if called(node) == Some(search.function) {
            let arguments = (0..).map_while(|i| nodes::argument(node, i));
            let below = std::ptr::null_mut();
            search.found = arguments
                .filter(|&argument| has_parameter(argument, std::ptr::null_mut()))
                .find_map(|node| coercion::string_type(Argument { node, below }));
        }
        search.found.is_some() || pg_sys::expression_tree_walker(node, Some(find_call), context)
    }
}

/// The function that an expression calls, if it is a call or an operator.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn called(node: *mut Node) -> Option<Oid> {
    // SAFETY: promised by the caller; the node is read as what its tag says.
    unsafe {
        match (*node).type_ {
            NodeTag::T_FuncExpr => Some((*node.cast::<pg_sys::FuncExpr>()).funcid),
            NodeTag::T_OpExpr => Some(pg_sys::get_opcode((*node.cast::<pg_sys::OpExpr>()).opno)),
            _ => None,
        }
    }
}

/// Whether there is a parameter of the query in an expression.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn has_parameter(node: *mut Node, context: *mut c_void) -> bool {
    // SAFETY: the walker passes null or a node of the query.
    unsafe {
        if node.is_null() || (*node).type_ == NodeTag::T_Query {
            return false;
        }
        let is_parameter = (*node).type_ == NodeTag::T_Param
            && (*node.cast::<pg_sys::Param>()).paramkind == pg_sys::ParamKind::PARAM_EXTERN;
        is_parameter || pg_sys::expression_tree_walker(node, Some(has_parameter), context)
    }
}
