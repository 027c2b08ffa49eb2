//! What a query shows about the arguments of its calls as it was parsed.
//!
//! The planner simplifies a call before it is executed. It puts values in the place of parameters, functions' bodies in
//! the place of calls, and makes one conversion of several: of `x::citext`, made a text quietly, the text `x` is left,
//! and a parameter of type `citext` is a constant of type text, as any other. Before that is done with an expression,
//! the planner asks the support functions of what the expression calls, and still has the query as it was parsed.

use super::call::Call;
use super::coercion;
use super::nodes::{self, Argument, Scope};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::pg_sys::{Node, NodeTag, Oid, PlannerInfo, Query};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;

/// How many arguments of a call are looked at: what is hashed is one of the first two. Later ones are parameters, such
/// as the name of a layout, which may be of any type.
const ARGUMENTS: usize = 2;

/// The functions that a query calls with an argument that was converted quietly, and the type it was converted from.
type Quiet = HashMap<Oid, Oid>;

/// What was found in a query of which the planner asked. A query can have thousands of calls: they are looked at once.
struct Seen {
    /// The query, and how many ranges it had: it gets those of a subquery that the planner makes a part of it.
    query: *mut Query,
    ranges: usize,
    quiet: Quiet,
}

thread_local! {
    /// By the address of the planner's root for the query.
    static SEEN: RefCell<HashMap<usize, Seen>> = RefCell::new(HashMap::new());
}

/// Lives in the memory of a planning.
struct Planning(usize);

impl Drop for Planning {
    fn drop(&mut self) {
        // Memory may go at any time, so this must not fail.
        let _ = SEEN.try_with(|seen| seen.try_borrow_mut().map(|mut seen| seen.remove(&self.0)));
    }
}

/// The string type of another extension of which the query makes an argument of the function quietly, in this call or
/// another one, if argument 0 of a support function is the planner's request to simplify a call.
pub fn quiet_argument(call: &Call) -> Option<Oid> {
    let request = call.internal::<pg_sys::SupportRequestSimplify>(0)?;
    // SAFETY: the planner passes a node, which is read as what its tag says, with a call, and the root of the query if
    // there is one.
    unsafe {
        if (*request).type_ != NodeTag::T_SupportRequestSimplify || (*request).root.is_null() {
            return None;
        }
        let root = (*request).root;
        // Once there are paths to choose from, all expressions of the query are simplified.
        if (*root).parse.is_null() || (*root).planner_cxt.is_null() || !(*root).simple_rel_array.is_null() {
            return None;
        }
        let function = (*(*request).fcall).funcid;
        let query = (*root).parse;
        let ranges = nodes::length((*query).rtable);
        SEEN.with_borrow(|all| {
            let seen = all.get(&(root as usize)).filter(|seen| seen.query == query && seen.ranges == ranges);
            seen.map(|seen| seen.quiet.get(&function).copied())
        })
        .unwrap_or_else(|| look(root, Seen { query, ranges, quiet: Quiet::new() }, function))
    }
}

/// Looks at the calls of a query, but not of its subqueries: these are planned by themselves.
///
/// # Safety
/// `root` must be that of a query that is being planned, and `seen` must name that query.
unsafe fn look(root: *mut PlannerInfo, mut seen: Seen, function: Oid) -> Option<Oid> {
    let address = root as usize;
    let ignore = pg_sys::QTW_IGNORE_RT_SUBQUERIES | pg_sys::QTW_IGNORE_CTE_SUBQUERIES | pg_sys::QTW_IGNORE_JOINALIASES;
    // SAFETY: promised by the caller. The query is only read; the walker gets what it was made for.
    unsafe {
        pg_sys::query_tree_walker(seen.query, Some(look_at), (&raw mut seen).cast(), ignore as i32);
        // What is noticed before it is entered is noticed at any rate.
        if !SEEN.with_borrow(|all| all.contains_key(&address)) {
            PgMemoryContexts::For((*root).planner_cxt).leak_and_drop_on_delete(Planning(address));
        }
    }
    let found = seen.quiet.get(&function).copied();
    SEEN.with_borrow_mut(|all| all.insert(address, seen));
    found
}

/// Notes a function that is called with an argument that was converted quietly.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn look_at(node: *mut Node, context: *mut c_void) -> bool {
    // SAFETY: the walker passes null or a node of the query, and what it was given for context.
    unsafe {
        if node.is_null() || (*node).type_ == NodeTag::T_Query {
            return false;
        }
        if is_call(node) {
            let seen = &mut *context.cast::<Seen>();
            let scope = Scope::Query(seen.query);
            let mut arguments = (0..ARGUMENTS).map_while(|i| nodes::argument(node, i));
            if let Some(oid) = arguments.find_map(|node| coercion::string_type(Argument { node, scope })) {
                seen.quiet.insert(called(node), oid);
            }
        }
        pg_sys::expression_tree_walker(node, Some(look_at), context)
    }
}

/// Whether an expression is a call or an operator of which the planner asks.
///
/// # Safety
/// `node` must be a valid expression.
unsafe fn is_call(node: *mut Node) -> bool {
    // SAFETY: promised by the caller.
    matches!(unsafe { (*node).type_ }, NodeTag::T_FuncExpr | NodeTag::T_OpExpr)
}

/// The function that such an expression calls.
///
/// # Safety
/// `node` must be a valid expression for which [`is_call`] is true.
unsafe fn called(node: *mut Node) -> Oid {
    // SAFETY: promised by the caller; the node is read as what its tag says.
    unsafe {
        match (*node).type_ {
            NodeTag::T_OpExpr => pg_sys::get_opcode((*node.cast::<pg_sys::OpExpr>()).opno),
            _ => (*node.cast::<pg_sys::FuncExpr>()).funcid,
        }
    }
}
