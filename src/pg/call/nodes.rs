//! Nodes of expressions and lists of them.

use pg_bloom_core::memory;
use pgrx::pg_sys;

/// Argument `i` of the function or operator that an expression calls. The second one of `x operator ANY (array)` is the
/// array.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn argument(node: *mut pg_sys::Node, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; the node is read as what its tag says.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_FuncExpr => nth((*node.cast::<pg_sys::FuncExpr>()).args, i),
            pg_sys::NodeTag::T_OpExpr => nth((*node.cast::<pg_sys::OpExpr>()).args, i),
            pg_sys::NodeTag::T_ScalarArrayOpExpr => nth((*node.cast::<pg_sys::ScalarArrayOpExpr>()).args, i),
            _ => None,
        }
    }
}

/// The same expression, which PostgreSQL doesn't take for equal.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn relabeled(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: promised by the caller.
    unsafe { collated(node, pg_sys::exprCollation(node)) }
}

/// An expression with another collation.
///
/// # Safety
/// `node` must be a valid expression.
pub unsafe fn collated(node: *mut pg_sys::Node, collation: pg_sys::Oid) -> *mut pg_sys::Node {
    let hidden = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
    // SAFETY: promised by the caller.
    unsafe { pg_sys::makeRelabelType(node.cast(), pg_sys::exprType(node), -1, collation, hidden).cast() }
}

/// Item `i` of a list of nodes.
///
/// # Safety
/// `list` must be null or a valid list of pointers.
pub unsafe fn nth(list: *mut pg_sys::List, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: promised by the caller; a list has `length` cells.
    unsafe { (i < length(list)).then(|| (*(*list).elements.add(i)).ptr_value.cast()) }
}

/// How many items a list has.
///
/// # Safety
/// `list` must be null or a valid list.
pub unsafe fn length(list: *mut pg_sys::List) -> usize {
    // SAFETY: promised by the caller.
    unsafe { list.as_ref().map_or(0, |list| list.length as usize) }
}

/// The items of a list of object identifiers.
///
/// # Safety
/// `list` must be null or a valid list of these.
pub unsafe fn oids(list: *mut pg_sys::List) -> Vec<pg_sys::Oid> {
    // SAFETY: promised by the caller; a list has `length` cells.
    memory::collect((0..unsafe { length(list) }).map(|i| unsafe { (*(*list).elements.add(i)).oid_value }))
}

/// The items of a list of nodes.
///
/// # Safety
/// As [`nth`], for as long as the items are asked for.
pub unsafe fn items(list: *mut pg_sys::List) -> impl Iterator<Item = *mut pg_sys::Node> {
    // SAFETY: promised by the caller.
    (0..unsafe { length(list) }).filter_map(move |i| unsafe { nth(list, i) })
}
