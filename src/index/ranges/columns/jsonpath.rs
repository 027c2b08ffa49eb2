//! The keys that a document must have for a jsonpath to find something in it, or to be true for it.
//!
//! Only comparisons of a path with a value, by `==`, give a condition: that the document has the
//! leaf of that path and value, as `@>` asks it for `{"a": {"b": 1}}`. Arrays are no part of a
//! leaf's path, and a path through arrays finds their members, by `[*]`, by a subscript or, in lax
//! mode, without. So the leaf is necessary in lax and in strict mode. Anything else in an
//! expression is left out: the condition may hold for documents that don't match, and PostgreSQL
//! compares them.
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

use super::json::hash_of_leaf;
use crate::element::jsonb::Scalar;
use crate::pg::call::{SqlValue, interrupt};
use crate::pg::value::jsonpath::{PathExpression, PathItem, PathStep};
use pg_bloom_core::conditions::{Condition, JsonPath, MAX_DEPTH};
use pg_bloom_core::memory::List;

/// Returns the condition on a document's keys, the hashes of its values with their paths, that is
/// necessary for `document @? asked` to hold: for the jsonpath `asked` to find something in it.
/// What PostgreSQL allocates for that is in the current memory context.
///
/// # Safety
/// The value must be a jsonpath.
pub unsafe fn of_existence(asked: SqlValue) -> Condition {
    // SAFETY: promised by the caller.
    let expression = unsafe { PathExpression::new(asked.datum) };
    of_path(PathItem::first(&expression), Place::TOP, None)
}

/// Returns the condition on a document's keys, the hashes of its values with their paths, that is
/// necessary for `document @@ asked` to hold: for the jsonpath `asked` to be true for it. What
/// PostgreSQL allocates for that is in the current memory context.
///
/// # Safety
/// The value must be a jsonpath.
pub unsafe fn of_match(asked: SqlValue) -> Condition {
    // SAFETY: promised by the caller.
    let expression = unsafe { PathExpression::new(asked.datum) };
    let first = PathItem::first(&expression);
    match first.step() {
        // The expression is a path: it is true if it leads to the value `true`.
        PathStep::Root => of_path(first, Place::TOP, Some(&Scalar::Bool(true))),
        _ => of_predicate(first, Place::TOP, Truth::True),
    }
}

/// What a predicate is to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Truth {
    True,
    False,
}

impl Truth {
    fn negated(self) -> Truth {
        match self {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
        }
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

/// Returns the condition on a document's keys that is necessary for a path to find something in the
/// document; if `value` is given, for the path to find this value. `first` is the first step of the
/// path, `place` says where in the document `@` is.
///
/// The *keys* of a document are the hashes of its *leaves*, the values without others in them, each
/// with its path. Each filter on the way, `? (…)`, adds a condition. If a step may lead anywhere,
/// such as `.*`, only the filters before it count.
fn of_path(first: PathItem<'_>, place: Place, value: Option<&Scalar<'_>>) -> Condition {
    let mut path = place.current;
    let mut conditions = List::new();
    let mut item = first;
    loop {
        match item.step() {
            PathStep::Root => path = JsonPath::ROOT,
            PathStep::Current | PathStep::Elements => {}
            PathStep::Key(key) => path = path.key(key),
            PathStep::Filter(predicate) => {
                let at_path = Place { current: path, ..place.deeper() };
                conditions.push(of_predicate(predicate, at_path, Truth::True));
            }
            // The step may lead anywhere, or compute another value. The conditions of the filters
            // before it are necessary all the same.
            _ => return Condition::all(conditions),
        }
        match item.next() {
            Some(next) => item = next,
            None => break,
        }
    }
    if let Some(value) = value {
        conditions.push(Condition::Has(hash_of_leaf(path, value)));
    }
    Condition::all(conditions)
}

/// Returns the condition on a document's keys, the hashes of its values with their paths, that is
/// necessary for a predicate of a jsonpath to be true or false, as `truth` says. `place` says where
/// in the document `@` is.
///
/// Only `==` between a path and a literal, `exists`, `&&`, `||` and `!` give a condition. The
/// result is unknown, which restricts nothing, for all others, and for a predicate that is nested
/// too deep. Raises 54001 if the stack is too small.
fn of_predicate(predicate: PathItem<'_>, place: Place, truth: Truth) -> Condition {
    interrupt::check_stack_depth();
    let has_further_steps = predicate.next().is_some();
    if has_further_steps || place.depth > MAX_DEPTH {
        return Condition::Unknown;
    }
    match predicate.step() {
        PathStep::Not(negated) => of_predicate(negated, place, truth.negated()),
        PathStep::And(..) => of_operands(predicate, Connective::And, place, truth),
        PathStep::Or(..) => of_operands(predicate, Connective::Or, place, truth),
        // Keys tell what a document has, not what it lacks.
        _ if truth == Truth::False => Condition::Unknown,
        PathStep::Exists(path) => of_path(path, place, None),
        PathStep::Equal(left, right) => match (scalar(left), scalar(right)) {
            (Some(value), None) => of_path(right, place, Some(&value)),
            (None, Some(value)) => of_path(left, place, Some(&value)),
            _ => Condition::Unknown,
        },
        _ => Condition::Unknown,
    }
}

/// The operator between two predicates of a jsonpath.
#[derive(Clone, Copy, PartialEq)]
enum Connective {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Returns the condition on a document's keys that is necessary for `operator`, an `&&` or `||` as
/// `connective` says, to be true or false, as `truth` says: for `a || b` to be false, both `a` and
/// `b` must be false.
///
/// Operators of the same sort that are operands count as one with this one, so that a long chain,
/// `a || b || c …`, doesn't reach the limit of depth.
fn of_operands(
    operator: PathItem<'_>,
    connective: Connective,
    place: Place,
    truth: Truth,
) -> Condition {
    let is_and = connective == Connective::And;
    let mut operands_left = List::new();
    let mut conditions = List::new();
    operands_left.push(operator);
    while let Some(operand) = operands_left.pop() {
        interrupt::check_for_interrupts();
        let has_further_steps = operand.next().is_some();
        match operand.step() {
            PathStep::And(left, right) if is_and && !has_further_steps => {
                operands_left.push(right);
                operands_left.push(left);
            }
            PathStep::Or(left, right) if !is_and && !has_further_steps => {
                operands_left.push(right);
                operands_left.push(left);
            }
            _ => {
                let condition = of_predicate(operand, place.deeper(), truth);
                conditions.push(condition);
            }
        }
    }
    // By De Morgan's laws `!(a && b)` is `!a || !b`, and `!(a || b)` is `!a && !b`, also where an
    // operand is unknown.
    let must_all_hold = is_and == (truth == Truth::True);
    if must_all_hold {
        Condition::all(conditions)
    } else {
        Condition::any(conditions)
    }
}

/// Returns the value of a literal; `None` for anything else, and for a literal with further steps,
/// such as `"7".double()`.
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
