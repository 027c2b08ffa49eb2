//! What is in a plan.
//!
//! ```text
//! plan.qual       the other restrictions, in their order; the first `before` of them are asked before ours
//! custom_exprs    ours
//! custom_private  before, and which condition ours is
//! ```

use crate::pg::call::nodes::{items, nth};
use pgrx::pg_sys::{self, NodeTag};
use std::ptr::null_mut;

/// A call of a function by its name or by an operator.
pub struct Called {
    pub function: pg_sys::Oid,
    pub arguments: *mut pg_sys::List,
    pub collation: pg_sys::Oid,
}

/// Our restriction.
///
/// # Safety
/// `scan` must be a plan made here.
pub unsafe fn ours(scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: promised by the caller.
    unsafe { nth((*scan).custom_exprs, 0).expect("a plan has its condition") }
}

/// Which condition of the provider's it is.
///
/// # Safety
/// `scan` must be a plan made here.
pub unsafe fn condition(scan: *mut pg_sys::CustomScan) -> usize {
    // SAFETY: promised by the caller.
    unsafe { integer((*scan).custom_private, 1) as usize }
}

/// The other restrictions that are asked before ours, and those that are asked after it.
///
/// # Safety
/// `scan` must be a plan made here.
pub unsafe fn others(scan: *mut pg_sys::CustomScan) -> (*mut pg_sys::List, *mut pg_sys::List) {
    // SAFETY: promised by the caller: there are at least as many restrictions.
    unsafe {
        let before = integer((*scan).custom_private, 0) as usize;
        let append = |list, node: *mut pg_sys::Node| pg_sys::lappend(list, node.cast());
        let all = (*scan).scan.plan.qual;
        (items(all).take(before).fold(null_mut(), append), items(all).skip(before).fold(null_mut(), append))
    }
}

/// What a node calls, if it is a call by an operator or a function's name.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn called(node: *mut pg_sys::Node) -> Option<Called> {
    // SAFETY: promised by the caller; the node is read as what its tag says.
    unsafe {
        match (*node).type_ {
            NodeTag::T_OpExpr => {
                let call: *mut pg_sys::OpExpr = node.cast();
                pg_sys::set_opfuncid(call);
                Some(Called { function: (*call).opfuncid, arguments: (*call).args, collation: (*call).inputcollid })
            }
            NodeTag::T_FuncExpr => {
                let call: *mut pg_sys::FuncExpr = node.cast();
                Some(Called { function: (*call).funcid, arguments: (*call).args, collation: (*call).inputcollid })
            }
            _ => None,
        }
    }
}

/// The column that an expression is, except for another name of its type.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn column(mut node: *mut pg_sys::Node) -> Option<*mut pg_sys::Var> {
    // SAFETY: promised by the caller; each node is read as what its tag says.
    unsafe {
        while (*node).type_ == NodeTag::T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        ((*node).type_ == NodeTag::T_Var).then_some(node.cast())
    }
}

/// Integer `i` of a list of them.
///
/// # Safety
/// The list must have it.
pub unsafe fn integer(list: *mut pg_sys::List, i: usize) -> i32 {
    // SAFETY: promised by the caller.
    unsafe { (*(*list).elements.add(i)).int_value }
}
