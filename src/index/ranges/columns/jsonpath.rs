//! What a document must have in it for which a jsonpath finds something, or is true.
//!
//! Known are values that a path is compared with: the condition asks for the leaf of that path and
//! value, as `@>` does for `{"a": {"b": 1}}`. Arrays are no part of a leaf's path, and a path through
//! arrays finds what is in them, with `[*]`, with a subscript or, in lax mode, without. So leaves are
//! necessary in lax and in strict mode. What else there is in an expression is left out: a condition
//! may hold for documents that don't match.
//!
//! Example: `$.user ? (@.name == "x" && @.age > 7).roles[*] ? (@ == "a" || @ == "b")`
//!
//! ```text
//! $ .user          the path is user
//! ? ( … )          @ is at user: "x" at user.name; nothing of @.age > 7
//! .roles [*]       the path is user.roles
//! ? ( … )          "a" at user.roles or "b" at user.roles
//! condition        all of these: user.name = "x", any of (user.roles = "a", user.roles = "b")
//! ```

use super::class::Strategy;
use super::json::hash_of_leaf;
use crate::element::jsonb::Scalar;
use crate::pg::call::{Element, interrupt};
use crate::pg::value::jsonpath::{PathExpression, PathItem, PathStep};
use pg_bloom_core::conditions::{Condition, JsonPath, MAX_DEPTH};
use pg_bloom_core::memory;

/// Returns what a document must have in it for which an operator, `@?` or `@@`, holds with this value,
/// in the memory of the call.
///
/// # Safety
/// The value must be a jsonpath.
pub unsafe fn condition(strategy: Strategy, asked: Element) -> Condition {
    // SAFETY: promised by the caller.
    let expression = unsafe { PathExpression::new(asked.datum) };
    if strategy == Strategy::PathExists {
        of_existence(&expression)
    } else {
        of_match(&expression)
    }
}

/// Returns what a document must have in it for which an expression finds something.
fn of_existence(expression: &PathExpression<'_>) -> Condition {
    of_path(PathItem::first(expression), Place::TOP, None)
}

/// Returns what a document must have in it for which an expression is true.
fn of_match(expression: &PathExpression<'_>) -> Condition {
    let first = PathItem::first(expression);
    match first.step() {
        // What is true may be a value of the document.
        PathStep::Root => of_path(first, Place::TOP, Some(&Scalar::Bool(true))),
        _ => of_predicate(first, Place::TOP, false),
    }
}

/// Where in an expression a predicate or a path is.
#[derive(Clone, Copy)]
struct Place {
    /// The path of `@` in a document.
    current: JsonPath,
    /// How deep the condition for it is within that of the expression.
    depth: usize,
}

impl Place {
    const TOP: Place = Place { current: JsonPath::ROOT, depth: 0 };

    fn deeper(self) -> Place {
        Place { depth: self.depth + 1, ..self }
    }
}

/// What must be in a document where a path finds something, equal to a value if one is given.
fn of_path(first: PathItem<'_>, place: Place, value: Option<&Scalar<'_>>) -> Condition {
    let mut path = place.current;
    let mut conditions = Vec::new();
    let mut item = first;
    loop {
        match item.step() {
            PathStep::Root => path = JsonPath::ROOT,
            PathStep::Current | PathStep::Elements => {}
            PathStep::Key(key) => path = path.key(key),
            PathStep::Filter(predicate) => {
                let at_path = Place { current: path, ..place.deeper() };
                memory::push(&mut conditions, of_predicate(predicate, at_path, false));
            }
            // It may lead anywhere, or make another value: what came before must be there all the
            // same.
            _ => return Condition::all(conditions),
        }
        match item.next() {
            Some(next) => item = next,
            None => break,
        }
    }
    if let Some(value) = value {
        memory::push(&mut conditions, Condition::Has(hash_of_leaf(path, value)));
    }
    Condition::all(conditions)
}

/// What must be in a document where a predicate is true, or its negation is.
fn of_predicate(predicate: PathItem<'_>, place: Place, is_negated: bool) -> Condition {
    interrupt::check_stack_depth();
    let is_operand = predicate.next().is_some();
    if is_operand || place.depth > MAX_DEPTH {
        return Condition::Unknown;
    }
    match predicate.step() {
        PathStep::Not(negated) => of_predicate(negated, place, !is_negated),
        // !(a && b) is !a || !b, also where one of them is neither true nor false.
        PathStep::And(..) => of_operands(predicate, place, is_negated, !is_negated),
        PathStep::Or(..) => of_operands(predicate, place, is_negated, is_negated),
        // That nothing equals a value can't be told from what is in a document.
        _ if is_negated => Condition::Unknown,
        PathStep::Exists(path) => of_path(path, place, None),
        PathStep::Equal(left, right) => match (scalar(left), scalar(right)) {
            (Some(value), None) => of_path(right, place, Some(&value)),
            (None, Some(value)) => of_path(left, place, Some(&value)),
            _ => Condition::Unknown,
        },
        _ => Condition::Unknown,
    }
}

/// What must be in a document where all operands of an operator hold, or one of them. Operands of the
/// same operator in it count as its own, so that a long chain isn't deep.
fn of_operands(
    operator: PathItem<'_>,
    place: Place,
    is_negated: bool,
    must_all_hold: bool,
) -> Condition {
    let is_and = must_all_hold != is_negated;
    let mut open = Vec::new();
    let mut conditions = Vec::new();
    memory::push(&mut open, operator);
    while let Some(operand) = open.pop() {
        interrupt::check_for_interrupts();
        let is_whole = operand.next().is_none();
        match operand.step() {
            PathStep::And(left, right) if is_and && is_whole => {
                memory::push(&mut open, right);
                memory::push(&mut open, left);
            }
            PathStep::Or(left, right) if !is_and && is_whole => {
                memory::push(&mut open, right);
                memory::push(&mut open, left);
            }
            _ => {
                let condition = of_predicate(operand, place.deeper(), is_negated);
                memory::push(&mut conditions, condition);
            }
        }
    }
    if must_all_hold {
        Condition::all(conditions)
    } else {
        Condition::any(conditions)
    }
}

/// A literal, unless something is made of it.
fn scalar<'a>(item: PathItem<'a>) -> Option<Scalar<'a>> {
    let scalar = match item.step() {
        PathStep::Null => Scalar::Null,
        PathStep::Bool(is_true) => Scalar::Bool(is_true),
        PathStep::Number(number) => Scalar::Number(number),
        PathStep::String(string) => Scalar::String(string),
        _ => return None,
    };
    item.next().is_none().then_some(scalar)
}
