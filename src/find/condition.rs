//! `column = key` and `column = ANY (keys)`, as the parser resolves them in a query on the parent.
//!
//! The parser chooses the operator and the casts, by the caller's search_path. A key of type text
//! is read as an untyped literal is, since that is how literals arrive here: as a value of the
//! column's type.

use crate::pg::call::guard::{guard, raw};
use crate::pg::call::nodes::{self, argument, column};
use crate::pg::call::{Call, Element, Result, interrupt};
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
    /// Makes the condition on a column, given its number, from argument 2: a key, or with `is_array`
    /// an array of keys. Returns `None` if the argument is NULL.
    ///
    /// Raises PostgreSQL's own errors for types that can't be compared, and for text that is not a
    /// value of the column's type. Fails with 42P18 if the type of the key is unknown, and with 42P21
    /// if a query would compare it under another collation.
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
        let key_type = call.argument_type(2)?;
        // SAFETY: the parser's own steps for an operator with a column and a constant of the type
        // of the argument.
        unsafe {
            let state = pg_sys::make_parsestate(null_mut());
            let (of, modifier) = (attribute.atttypid, attribute.atttypmod);
            let left: *mut Node =
                pg_sys::makeVar(1, column, of, modifier, attribute.attcollation, 0).cast();
            let right: *mut Node = constant(key_type, key).cast();
            let name =
                pg_sys::lappend(null_mut(), pg_sys::makeString(c"=".as_ptr().cast_mut()).cast());
            let comparison: *mut Node = guard(|| {
                if is_array {
                    raw::make_scalar_array_op(state, name, true, left, right, -1).cast()
                } else {
                    raw::make_op(state, name, left, right, null_mut(), -1).cast()
                }
            });
            if key_type == pg_sys::TEXTARRAYOID {
                set_elements(comparison, key);
            }
            let node = guard(|| {
                let node = raw::coerce_to_boolean(state, comparison, c"WHERE".as_ptr());
                raw::assign_expr_collations(state, node);
                raw::eval_const_expressions(null_mut(), node)
            });
            Ok(Some(LookedFor { node, asked: asked(node), call: PhantomData }))
        }
    }

    /// Returns the expression of the condition for those keys that a table may have, which `may_have`
    /// says for each; `None` is for all keys. It is allocated in the current memory context.
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

/// Returns a constant for the parser. A text becomes a literal, which has no type yet. An array of
/// texts becomes the literal of an empty array: [`set_elements`] fills it once the parser has
/// decided about its type.
///
/// # Safety
/// The datum must be of the type.
unsafe fn constant(of: Oid, value: Datum) -> *mut pg_sys::Const {
    // SAFETY: promised by the caller; texts are of variable length.
    unsafe {
        match of {
            pg_sys::TEXTOID => return literal(Datum::from(c_string(Element { datum: value }))),
            pg_sys::TEXTARRAYOID => return literal(Datum::from(c"{}".as_ptr())),
            _ => {}
        }
        let Storage { len, by_value, .. } = catalog::storage(of);
        // Values of variable length are made whole, for hashing.
        let value = if len == -1 {
            Datum::from(pg_sys::pg_detoast_datum(value.cast_mut_ptr()))
        } else {
            value
        };
        pg_sys::makeConst(of, -1, catalog::collation(of), len.into(), value, false, by_value)
    }
}

/// Returns a C string as the parser has a literal, before its type is known.
///
/// # Safety
/// The datum must be a C string, in memory that lasts as long as the call's.
unsafe fn literal(text: Datum) -> *mut pg_sys::Const {
    let c_string_length = -2;
    // SAFETY: promised by the caller.
    unsafe {
        pg_sys::makeConst(
            pg_sys::UNKNOWNOID,
            -1,
            pg_sys::InvalidOid,
            c_string_length,
            text,
            false,
            false,
        )
    }
}

/// Returns a text as a C string in the memory of the call.
///
/// # Safety
/// The element must be a text.
unsafe fn c_string(text: Element) -> *mut std::ffi::c_char {
    // SAFETY: promised by the caller.
    unsafe { pg_sys::text_to_cstring(text.datum.cast_mut_ptr()) }
}

/// Fills the empty array that a condition compares its column with. Each text is read as a literal
/// of the type that the array's elements have. A text that is NULL is left out: nothing is equal to
/// NULL. Raises the errors of reading literals.
///
/// An array literal would not do: whether it can have a NULL depends on the setting `array_nulls`.
///
/// # Safety
/// The condition must be as the parser made it from an array literal, and `texts` an array of texts.
unsafe fn set_elements(condition: *mut Node, texts: Datum) {
    // SAFETY: promised by the caller: the condition's second side is an array, and a constant, since
    // literals are read at once. An element is what the input function of its type returns.
    unsafe {
        let array = argument(condition, 1).expect("an operator has two sides");
        assert_eq!((*array).type_, NodeTag::T_Const, "the node of a literal");
        let array: *mut pg_sys::Const = array.cast();

        let of = catalog::element_type((*array).consttype).expect("a type of arrays");
        let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        pg_sys::getTypeInputInfo(of, &mut input, &mut parameter);

        let mut elements = Vec::new();
        for text in array::elements_of(texts) {
            interrupt::check_for_interrupts();
            let text = c_string(text);
            let datum = guard(|| raw::OidInputFunctionCall(input, text, parameter, -1));
            memory::push(&mut elements, Element { datum });
        }
        (*array).constvalue = array::array_of((*array).consttype, elements);
    }
}

/// Returns the keys that a condition compares its column with; `None` if it compares an expression
/// of the column, or if the keys aren't constants.
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
