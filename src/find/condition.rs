//! `column = key` and `column = ANY (keys)`, as the parser resolves them in a query on the parent.
//!
//! The parser chooses the operator and the casts, by the caller's search_path. A key of type text
//! is read as an untyped literal is, since that is how literals arrive here: as a value of the
//! column's type.

use crate::pg::call::guard::{guard, raw};
use crate::pg::call::nodes::{self, argument, column};
use crate::pg::call::{Call, Result, SqlValue, interrupt};
use crate::pg::catalog::{self, Storage};
use crate::pg::method::planning::{Comparison, comparison};
use crate::pg::storage::relation::Relation;
use crate::pg::value::array;
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid};
use std::marker::PhantomData;
use std::ptr::null_mut;

/// The argument of a call that says which keys to find.
#[derive(Clone, Copy, PartialEq)]
pub enum KeyArgument {
    OneKey,
    /// An array of keys.
    Array,
}

/// The condition `column = key` or `column = ANY (keys)` on the parent, which is table 1 of its
/// query.
pub struct ColumnCondition<'c> {
    node: *mut Node,
    /// The keys for which an index may be asked; `None` if only the executor can tell whether a row
    /// meets the condition.
    pub indexable_keys: Option<IndexableKeys>,
    call: PhantomData<&'c Call>,
}

/// Keys with which a column itself is compared, and not an expression of the column.
pub struct IndexableKeys {
    /// The operator `=` that compares them.
    pub operator: Oid,
    pub collation: Oid,
    /// Without NULLs, of the type that the operator takes.
    pub keys: List<SqlValue>,
}

impl<'c> ColumnCondition<'c> {
    /// Makes the condition `column = key` or `column = ANY (keys)`, as PostgreSQL's parser resolves
    /// it in a query on `parent`, the table that is searched. The column is given by its number.
    /// Argument 2 of the call is the key or the array of keys, as `key_argument` says. `None` if
    /// this argument is NULL. The condition is allocated in the memory of the call.
    ///
    /// Raises PostgreSQL's own errors for types that can't be compared, and for text that is not a
    /// value of the column's type. Fails with 42P18 if the type of the key is unknown, and with
    /// 42P21 if a query would compare it under another collation.
    pub fn from_key_argument(
        call: &'c Call,
        parent: Relation,
        column: i16,
        key_argument: KeyArgument,
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

        // SAFETY: these are the parser's own steps for a WHERE clause with an operator, between a
        // column of the parent and a constant of the argument's type.
        unsafe {
            let state = pg_sys::make_parsestate(null_mut());
            let left = parsed_column(&attribute, column);
            let right: *mut Node = parsed_key(key_type, key).cast();
            let comparison = parsed_equality(state, left, right, key_argument);

            // `parsed_key` gives the parser an empty array in place of an array of texts. Only now
            // is it known of which type its elements must be, so now they are read.
            if key_type == pg_sys::TEXTARRAYOID {
                fill_array(comparison, key);
            }

            let node = finished_condition(state, comparison);
            let indexable_keys = indexable_keys(node);
            Ok(Some(ColumnCondition { node, indexable_keys, call: PhantomData }))
        }
    }

    /// Returns a copy of the condition, allocated in the current memory context, in which only some
    /// keys are left: `may_have` says for each key, in their order, whether the copy has it. With
    /// `None`, and for a condition with one key, the copy has all.
    pub fn on_keys(&self, may_have: Option<&[bool]>) -> *mut Node {
        // SAFETY: the condition is a valid expression. If an index may be asked for its keys, its
        // right side is a constant, and the array of the keys if the condition is about an array.
        unsafe {
            let node: *mut Node = pg_sys::copyObjectImpl(self.node.cast()).cast();
            if let (Some(all), Some(may_have)) = (&self.indexable_keys, may_have)
                && (*node).type_ == NodeTag::T_ScalarArrayOpExpr
            {
                let mut kept_keys = List::new();
                for (&key, &is_kept) in all.keys.iter().zip(may_have) {
                    if is_kept {
                        kept_keys.push(key);
                    }
                }
                let constant: *mut pg_sys::Const =
                    argument(node, 1).expect("an operator has two sides").cast();
                (*constant).constvalue = array::array_of((*constant).consttype, kept_keys);
            }
            node
        }
    }
}

/// Finishes a comparison that the parser has made, as it does for the condition of a WHERE clause,
/// and evaluates the constant parts of it: a cast of a key becomes the key that it results in.
///
/// # Safety
/// The state must be the parser's, and the comparison an expression.
unsafe fn finished_condition(state: *mut pg_sys::ParseState, comparison: *mut Node) -> *mut Node {
    // SAFETY: the caller promises an expression and a state.
    unsafe {
        guard(|| {
            let condition = raw::coerce_to_boolean(state, comparison, c"WHERE".as_ptr());
            raw::assign_expr_collations(state, condition);
            raw::eval_const_expressions(null_mut(), condition)
        })
    }
}

/// Returns the expression of a column as the parser has it in a query on the searched table alone,
/// which is table 1 of that query. `attribute` describes the column, and `number` is its number in
/// the table.
fn parsed_column(attribute: &pg_sys::FormData_pg_attribute, number: i16) -> *mut Node {
    let parent = 1;
    let levels_up = 0;
    // SAFETY: the node is made of the column's own properties.
    let column = unsafe {
        pg_sys::makeVar(
            parent,
            number,
            attribute.atttypid,
            attribute.atttypmod,
            attribute.attcollation,
            levels_up,
        )
    };
    column.cast()
}

/// Returns the expression `left = right`, or `left = ANY (right)` for an array of keys, with the
/// operator and the casts that PostgreSQL's parser chooses by the search_path. `state` is the
/// parser's state. Raises PostgreSQL's errors if there is no such operator.
///
/// # Safety
/// The state must be the parser's, and both sides expressions.
unsafe fn parsed_equality(
    state: *mut pg_sys::ParseState,
    left: *mut Node,
    right: *mut Node,
    key_argument: KeyArgument,
) -> *mut Node {
    let is_any = true;
    let unknown_location = -1;
    // SAFETY: the caller promises expressions and a state. The name of the operator is a list with
    // a string.
    unsafe {
        let equals = pg_sys::makeString(c"=".as_ptr().cast_mut());
        let operator_name = pg_sys::lappend(null_mut(), equals.cast());
        guard(|| match key_argument {
            KeyArgument::OneKey => {
                let no_function_in_from = null_mut();
                raw::make_op(
                    state,
                    operator_name,
                    left,
                    right,
                    no_function_in_from,
                    unknown_location,
                )
                .cast()
            }
            KeyArgument::Array => raw::make_scalar_array_op(
                state,
                operator_name,
                is_any,
                left,
                right,
                unknown_location,
            )
            .cast(),
        })
    }
}

/// Returns a key, or an array of keys, as the constant that the parser would see in a query. A text
/// becomes a literal in quotes, which has no type yet, so that the parser reads it as a value of
/// the column's type. For an array of texts the parser gets the literal of an empty array, `'{}'`,
/// and chooses the type of its elements; [`fill_array`] then reads the texts as values of this
/// type.
///
/// # Safety
/// The datum must be of the type.
unsafe fn parsed_key(value_type: Oid, value: Datum) -> *mut pg_sys::Const {
    // SAFETY: the datum is of the type, as the caller promises; texts are of variable length, as
    // are all types whose length is -1.
    unsafe {
        match value_type {
            pg_sys::TEXTOID => {
                return untyped_literal(Datum::from(c_string(SqlValue { datum: value })));
            }
            pg_sys::TEXTARRAYOID => return untyped_literal(Datum::from(c"{}".as_ptr())),
            _ => {}
        }
        let Storage { len, by_value, .. } = catalog::storage(value_type);
        // A value of variable length (its type has the length -1) may be compressed or out of line.
        // Hashing needs all of it.
        let whole_value = if len == -1 {
            Datum::from(pg_sys::pg_detoast_datum(value.cast_mut_ptr()))
        } else {
            value
        };
        let no_modifier = -1;
        let is_null = false;
        pg_sys::makeConst(
            value_type,
            no_modifier,
            catalog::collation(value_type),
            len.into(),
            whole_value,
            is_null,
            by_value,
        )
    }
}

/// Returns a C string as a literal that the parser has read, before its type is decided.
///
/// # Safety
/// The datum must be a C string, in memory that lasts as long as the call's.
unsafe fn untyped_literal(text: Datum) -> *mut pg_sys::Const {
    // PostgreSQL's length of types whose values are C strings.
    let c_string_length = -2;
    // SAFETY: the datum is a C string, as the caller promises and as a literal has one.
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
unsafe fn c_string(text: SqlValue) -> *mut std::ffi::c_char {
    // SAFETY: the caller promises a text.
    unsafe { pg_sys::text_to_cstring(text.datum.cast_mut_ptr()) }
}

/// Fills the empty array with which a condition compares its column, now that the parser has
/// decided about the type of its elements. Each of the `texts` is read as a literal of this type. A
/// text that is NULL is left out: nothing is equal to NULL. Raises the errors of reading literals.
///
/// A literal of the whole array would not do: whether it can have a NULL depends on the setting
/// `array_nulls`.
///
/// # Safety
/// The condition must be as the parser made it from an array literal, and `texts` an array of
/// texts.
unsafe fn fill_array(condition: *mut Node, texts: Datum) {
    // SAFETY: the second side of the condition is an array, as the caller promises, and a constant,
    // since the parser reads literals at once. Each element is a result of its type's input
    // function.
    unsafe {
        let right = argument(condition, 1).expect("an operator has two sides");
        assert_eq!((*right).type_, NodeTag::T_Const, "the node of a literal");
        let array: *mut pg_sys::Const = right.cast();

        let element_type = catalog::element_type((*array).consttype).expect("a type of arrays");
        let mut input_function = pg_sys::InvalidOid;
        let mut parameter = pg_sys::InvalidOid;
        pg_sys::getTypeInputInfo(element_type, &mut input_function, &mut parameter);

        let mut elements = List::new();
        for text in array::elements_of(texts) {
            interrupt::check_for_interrupts();
            let literal = c_string(text);
            let datum = guard(|| raw::OidInputFunctionCall(input_function, literal, parameter, -1));
            elements.push(SqlValue { datum });
        }
        (*array).constvalue = array::array_of((*array).consttype, elements);
    }
}

/// Returns the keys that a condition compares its column with, and the operator, for looking them
/// up in an index. `None` if the condition compares an expression of the column, or if the keys
/// aren't constants: an index can't be asked then.
///
/// # Safety
/// The node must be an expression.
unsafe fn indexable_keys(node: *mut Node) -> Option<IndexableKeys> {
    // SAFETY: the caller promises an expression, whose nodes are read as the structs of their tags.
    unsafe {
        let Comparison { operator, is_array, left, right, collation } = comparison(node)?;
        if column(left).is_none() || (*right).type_ != NodeTag::T_Const {
            return None;
        }
        let constant: &pg_sys::Const = &*right.cast();
        if constant.constisnull {
            return None;
        }
        let datum = constant.constvalue;
        let keys = if is_array {
            array::elements_of(datum)
        } else {
            List::from([SqlValue { datum }])
        };
        Some(IndexableKeys { operator, collation, keys })
    }
}
