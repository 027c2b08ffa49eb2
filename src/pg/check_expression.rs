//! CHECK constraints that call a function with columns and constants.

use super::nodes::{length, nth};
use pgrx::pg_sys;
use std::ffi::CStr;

/// An argument of a call in a constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckArgument {
    /// A column, by its number.
    Column(i16),
    /// A constant that is not NULL, and its type. It must be of a type that is passed by value.
    Constant(pg_sys::Oid, pg_sys::Datum),
}

/// A call that is all of a constraint.
pub struct CheckCall {
    /// The function.
    pub function: pg_sys::Oid,
    /// Its arguments.
    pub arguments: Vec<CheckArgument>,
}

/// The call that an expression is, as the catalogs keep it, if it is a call with such arguments.
pub fn call_of(expression: &CStr) -> Option<CheckCall> {
    // SAFETY: the catalogs' form of a node; each node is read as what its tag says.
    unsafe {
        let node: *mut pg_sys::Node = pg_sys::stringToNode(expression.as_ptr()).cast();
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        let call = node.cast::<pg_sys::FuncExpr>();
        let list = (*call).args;
        let arguments = (0..length(list)).map(|i| argument(nth(list, i)?)).collect::<Option<Vec<_>>>()?;
        Some(CheckCall { function: (*call).funcid, arguments })
    }
}

/// # Safety
/// `node` must be a valid expression.
unsafe fn argument(node: *mut pg_sys::Node) -> Option<CheckArgument> {
    // SAFETY: promised by the caller.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Var => Some(CheckArgument::Column((*node.cast::<pg_sys::Var>()).varattno)),
            pg_sys::NodeTag::T_Const => {
                let constant = &*node.cast::<pg_sys::Const>();
                (!constant.constisnull && constant.constbyval)
                    .then_some(CheckArgument::Constant(constant.consttype, constant.constvalue))
            }
            _ => None,
        }
    }
}
