//! Expressions of the type `jsonpath`, as PostgreSQL's own functions walk through them.
//!
//! An expression is a tree of items. Those of a path follow each other: `$.a ? (@.b == 1)` is `$`,
//! then the key `a`, then a filter, whose argument is an item of its own.

use super::varlena::Value;
use pgrx::pg_sys;
use std::ffi::c_char;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The types of items, by their numbers: `JsonPathItemType`. Stored expressions have these, so they
/// are the same in all versions of PostgreSQL.
mod item_type {
    pub const NULL: u32 = 0;
    pub const STRING: u32 = 1;
    pub const NUMERIC: u32 = 2;
    pub const BOOL: u32 = 3;
    pub const AND: u32 = 4;
    pub const OR: u32 = 5;
    pub const NOT: u32 = 6;
    pub const EQUAL: u32 = 8;
    pub const ANY_ARRAY: u32 = 21;
    pub const INDEX_ARRAY: u32 = 23;
    pub const KEY: u32 = 25;
    pub const CURRENT: u32 = 26;
    pub const ROOT: u32 = 27;
    pub const FILTER: u32 = 29;
    pub const EXISTS: u32 = 30;
}

/// `JsonPathItem`, which pgrx doesn't declare. What follows the type is for PostgreSQL's functions
/// alone; here is room for twice as much as any version has.
#[derive(Clone, Copy)]
#[repr(C)]
struct RawItem {
    item_type: u32,
    rest: [u64; 8],
}

// SAFETY: as utils/jsonpath.h declares them.
unsafe extern "C-unwind" {
    fn jspInit(item: *mut RawItem, path: *mut pg_sys::varlena);
    fn jspGetArg(item: *mut RawItem, argument: *mut RawItem);
    fn jspGetLeftArg(item: *mut RawItem, argument: *mut RawItem);
    fn jspGetRightArg(item: *mut RawItem, argument: *mut RawItem);
    fn jspGetNext(item: *mut RawItem, next: *mut RawItem) -> bool;
    fn jspGetNumeric(item: *mut RawItem) -> *mut pg_sys::varlena;
    fn jspGetBool(item: *mut RawItem) -> bool;
    fn jspGetString(item: *mut RawItem, length: *mut i32) -> *const c_char;
}

/// An item of an expression that is there for `'a'`.
#[derive(Clone, Copy)]
pub struct PathItem<'a> {
    raw: RawItem,
    expression: PhantomData<&'a [u8]>,
}

/// What an item is.
pub enum PathStep<'a> {
    Null,
    Bool(bool),
    /// A number as PostgreSQL stores a `numeric`, without the length before it.
    Number(&'a [u8]),
    /// In the encoding of the database.
    String(&'a [u8]),
    /// Predicates: `a && b`, `a || b`, `!a`, `a == b`, `exists(a)`.
    And(PathItem<'a>, PathItem<'a>),
    Or(PathItem<'a>, PathItem<'a>),
    Not(PathItem<'a>),
    Equal(PathItem<'a>, PathItem<'a>),
    Exists(PathItem<'a>),
    /// `$`, the whole document.
    Root,
    /// `@`, what the nearest filter is looking at.
    Current,
    /// `.key`
    Key(&'a [u8]),
    /// `[*]`, `[1]`, `[0 to last]`
    Elements,
    /// `? (predicate)`
    Filter(PathItem<'a>),
    /// Anything else.
    Other,
}

impl<'a> PathItem<'a> {
    /// Returns the first item of an expression.
    pub fn first(expression: &'a PathExpression<'_>) -> PathItem<'a> {
        let path = expression.0.pointer();
        // SAFETY: a whole, aligned value of the type; the function fills the item in.
        unsafe { PathItem::filled(|item| guarded!(jspInit(item, path))) }
    }

    /// Returns the item that follows this one in a path, as `.b` follows `.a` in `$.a.b`; `None` if
    /// this is the last one.
    pub fn next(&self) -> Option<PathItem<'a>> {
        let mut raw = self.raw;
        // SAFETY: the item is one of a valid expression. Without a place for the next one the
        // function only says whether there is one.
        unsafe {
            guarded!(jspGetNext(&mut raw, null_mut())).then(|| {
                PathItem::filled(|next| {
                    guarded!(jspGetNext(&mut raw, next));
                })
            })
        }
    }

    /// Returns what this item of a jsonpath is, with its arguments if it has some. An item is a
    /// step of a path (`$`, `.key`, `? (…)`), an operator or a literal. What isn't told apart is
    /// `Other`.
    pub fn step(&self) -> PathStep<'a> {
        let mut raw = self.raw;
        let item = &raw mut raw;
        // SAFETY: each function is called for the types of items that it is for. What they point to
        // is part of the expression.
        unsafe {
            let argument = || PathItem::filled(|argument| guarded!(jspGetArg(item, argument)));
            let left = || PathItem::filled(|argument| guarded!(jspGetLeftArg(item, argument)));
            let right = || PathItem::filled(|argument| guarded!(jspGetRightArg(item, argument)));
            match self.raw.item_type {
                item_type::NULL => PathStep::Null,
                item_type::BOOL => PathStep::Bool(guarded!(jspGetBool(item))),
                item_type::NUMERIC => {
                    let number = pg_sys::Datum::from(guarded!(jspGetNumeric(item)));
                    PathStep::Number(Value::detoast(number).into_bytes())
                }
                item_type::STRING => PathStep::String(string(item)),
                item_type::AND => PathStep::And(left(), right()),
                item_type::OR => PathStep::Or(left(), right()),
                item_type::NOT => PathStep::Not(argument()),
                item_type::EQUAL => PathStep::Equal(left(), right()),
                item_type::EXISTS => PathStep::Exists(argument()),
                item_type::ROOT => PathStep::Root,
                item_type::CURRENT => PathStep::Current,
                item_type::KEY => PathStep::Key(string(item)),
                item_type::ANY_ARRAY | item_type::INDEX_ARRAY => PathStep::Elements,
                item_type::FILTER => PathStep::Filter(argument()),
                _ => PathStep::Other,
            }
        }
    }

    /// Returns the item that `fill` reads from an expression into PostgreSQL's struct.
    ///
    /// # Safety
    /// `fill` must write an item of a valid expression that exists for `'a`.
    unsafe fn filled(fill: impl FnOnce(*mut RawItem)) -> PathItem<'a> {
        let mut raw = MaybeUninit::<RawItem>::zeroed();
        fill(raw.as_mut_ptr());
        // SAFETY: the struct has numbers and pointers only, which may be zero.
        PathItem { raw: unsafe { raw.assume_init() }, expression: PhantomData }
    }
}

/// Returns the bytes of an item that is a string or a key.
///
/// # Safety
/// The item must be a string or a key of a valid expression that exists for `'a`.
unsafe fn string<'a>(item: *mut RawItem) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller promises a string or a key; the function says how many bytes there are.
    unsafe {
        let bytes = guarded!(jspGetString(item, &mut length));
        std::slice::from_raw_parts(bytes.cast(), length as usize)
    }
}

/// An expression of the type `jsonpath`.
pub struct PathExpression<'a>(Value<'a>);

impl PathExpression<'_> {
    /// Reads a value of type `jsonpath`.
    ///
    /// # Safety
    /// The datum must be a jsonpath, and stay valid as long as the result.
    pub unsafe fn new(datum: pg_sys::Datum) -> Self {
        // SAFETY: the caller promises a jsonpath, which is of variable length.
        PathExpression(unsafe { Value::detoast_aligned(datum) })
    }
}
