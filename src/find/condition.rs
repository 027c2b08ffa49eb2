//! `column = key` and `column = ANY (keys)`, as the parser resolves them in a query on the parent.
//!
//! The parser chooses the operator and the casts, by the caller's search_path. A key of type text
//! is read as an untyped literal is, since that is how literals arrive here: as a value of the
//! column's type.

use crate::pg::call::guard::{guard, raw};
use crate::pg::call::nodes::{self, argument, column};
use crate::pg::call::{Call, Element, Result};
use crate::pg::catalog::{self, Storage};
use crate::pg::method::planning::{Comparison, comparison};
use crate::pg::storage::relation::Relation;
use crate::pg::value::array;
use pg_bloom_core::memory;
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid};
use std::marker::PhantomData;
use std::ptr::null_mut;

/// A condition on the parent, which is table 1 of its query.
pub struct LookedFor<'c> {
    node: *mut Node,
    /// What an index may be asked for; `None` if only the executor knows.
    pub asked: Option<Asked>,
    call: PhantomData<&'c Call>,
}

/// Keys with which a column itself is compared.
pub struct Asked {
    pub operator: Oid,
    pub collation: Oid,
    /// Without NULLs, of the type that the operator takes.
    pub keys: Vec<Element>,
}

impl<'c> LookedFor<'c> {
    /// The condition on a column, by its number, for argument 2, a key or an array of keys; `None`
    /// for NULL. Raises PostgreSQL's own errors for types that can't be compared, and for text that
    /// is not a value of the column's type. Errors: 42P18 for a key of an unknown type, 42P21 for
    /// one that a query would compare under another collation.
    pub fn argument(
        call: &'c Call,
        parent: Relation,
        column: i16,
        is_array: bool,
    ) -> Result<Option<Self>> {
        let Some(key) = call.datum(2) else {
            return Ok(None);
        };
        let attribute = parent
            .columns()
            .nth(column as usize - 1)
            .expect("the parent has the column");
        nodes::require_collation(call, 2, attribute.attcollation)?;
        // SAFETY: the parser's own steps for an operator with a column and a constant of the type
        // of the argument.
        unsafe {
            let state = pg_sys::make_parsestate(null_mut());
            let (of, modifier) = (attribute.atttypid, attribute.atttypmod);
            let left: *mut Node =
                pg_sys::makeVar(1, column, of, modifier, attribute.attcollation, 0).cast();
            let right: *mut Node = constant(call.argument_type(2)?, key).cast();
            let name =
                pg_sys::lappend(null_mut(), pg_sys::makeString(c"=".as_ptr().cast_mut()).cast());
            let node: *mut Node = guard(|| {
                let node: *mut Node = if is_array {
                    raw::make_scalar_array_op(state, name, true, left, right, -1).cast()
                } else {
                    raw::make_op(state, name, left, right, null_mut(), -1).cast()
                };
                let node = raw::coerce_to_boolean(state, node, c"WHERE".as_ptr());
                raw::assign_expr_collations(state, node);
                raw::eval_const_expressions(null_mut(), node)
            });
            Ok(Some(LookedFor { node, asked: asked(node), call: PhantomData }))
        }
    }

    /// The expression in the current memory, for those of the keys that a table may have; `None` is
    /// all.
    pub fn of_keys(&self, may_have: Option<&[bool]>) -> *mut Node {
        // SAFETY: a condition that has keys to ask for has a constant on its right; that of several
        // is their array.
        unsafe {
            let node: *mut Node = pg_sys::copyObjectImpl(self.node.cast()).cast();
            if let (Some(asked), Some(may_have)) = (&self.asked, may_have)
                && (*node).type_ == NodeTag::T_ScalarArrayOpExpr
            {
                let keys = asked
                    .keys
                    .iter()
                    .zip(may_have)
                    .filter_map(|(&key, &may_have)| may_have.then_some(key));
                let constant: *mut pg_sys::Const =
                    argument(node, 1).expect("an operator has two sides").cast();
                (*constant).constvalue =
                    array::array_of((*constant).consttype, memory::collect(keys));
            }
            node
        }
    }
}

/// A constant of this type; of type text, one of no type yet.
///
/// # Safety
/// The datum must be of the type.
unsafe fn constant(of: Oid, value: Datum) -> *mut pg_sys::Const {
    // SAFETY: promised by the caller. What is of variable length is made whole, for hashing.
    unsafe {
        if of == pg_sys::TEXTOID || of == pg_sys::TEXTARRAYOID {
            let (mut output, mut is_variable) = (pg_sys::InvalidOid, false);
            pg_sys::getTypeOutputInfo(of, &mut output, &mut is_variable);
            let literal = Datum::from(guard(|| raw::OidOutputFunctionCall(output, value)));
            return pg_sys::makeConst(
                pg_sys::UNKNOWNOID,
                -1,
                pg_sys::InvalidOid,
                -2,
                literal,
                false,
                false,
            );
        }
        let Storage { len, by_value, .. } = catalog::storage(of);
        let value = if len == -1 {
            Datum::from(pg_sys::pg_detoast_datum(value.cast_mut_ptr()))
        } else {
            value
        };
        pg_sys::makeConst(of, -1, catalog::collation(of), len.into(), value, false, by_value)
    }
}

/// What a condition asks of its column, if it compares that itself with constants.
///
/// # Safety
/// The node must be an expression.
unsafe fn asked(node: *mut Node) -> Option<Asked> {
    // SAFETY: promised by the caller; a node is read as what its tag says.
    unsafe {
        let Comparison { operator, is_array, left, right, collation } = comparison(node)?;
        if column(left).is_none() || (*right).type_ != NodeTag::T_Const {
            return None;
        }
        let constant: &pg_sys::Const = &*right.cast();
        let datum = (!constant.constisnull).then_some(constant.constvalue)?;
        let keys = if is_array { array::elements_of(datum) } else { vec![Element { datum }] };
        Some(Asked { operator, collation, keys })
    }
}
