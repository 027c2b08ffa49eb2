//! Random expressions of jsonpath.

use crate::common::Random;

const KEYS: [&str; 6] = ["a", "b", "cat", "\"é\"", "\"a\"", "x"];
/// Numbers of equal value among them, and values that no document has.
const VALUES: [&str; 13] = [
    "0", "1", "1.0", "1e2", "100.00", "-1", "\"ab\"", "\"ba\"", "\"1\"", "\"x\"", "null", "true",
    "false",
];

/// An expression for `@?` or for `@@`. Most are of the kind that the operator is for.
pub fn expression(random: &mut Random, operator: &str) -> String {
    let mode = *random.pick(&["", "", "", "lax ", "strict ", "strict "]);
    let is_predicate = (operator == "@@") == (random.below(8) > 0);
    let expression = if is_predicate { predicate(random, "$", 3) } else { path(random, "$", 3) };
    format!("{mode}{expression}")
}

/// A path from `$`, or from `@`. In a filter it may begin at `$` again.
fn path(random: &mut Random, from: &str, depth: usize) -> String {
    let from = if random.below(8) == 0 { "$" } else { from };
    let steps: String = (0..random.below(4)).map(|_| step(random, depth)).collect();
    format!("{from}{steps}")
}

fn step(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 14 } else { 20 }) {
        0..7 => format!(".{}", random.pick(&KEYS)),
        7..9 => "[*]".to_owned(),
        9 => {
            let subscripts = [
                "[0]",
                "[1]",
                "[last]",
                "[0 to 1]",
                "[0, last]",
                "[$.a]",
                "[last - 1]",
            ];
            (*random.pick(&subscripts)).to_owned()
        }
        10 => (*random.pick(&[".*", ".**", ".**{1}", ".**{1 to last}"])).to_owned(),
        11 => {
            let methods = [
                ".type()",
                ".size()",
                ".double()",
                ".abs()",
                ".floor()",
                ".keyvalue()",
            ];
            (*random.pick(&methods)).to_owned()
        }
        12..14 => String::new(),
        _ => format!(" ? ({})", predicate(random, "@", depth - 1)),
    }
}

fn predicate(random: &mut Random, from: &str, depth: usize) -> String {
    match random.below(if depth == 0 { 9 } else { 20 }) {
        0..7 => comparison(random, from, depth),
        7 => format!("{} starts with \"a\"", path(random, from, depth.min(1))),
        8 => format!("{} like_regex \"^[ab1]\"", path(random, from, depth.min(1))),
        9..12 => format!("exists({})", path(random, from, depth - 1)),
        12..14 => format!("!({})", predicate(random, from, depth - 1)),
        14 => format!("({}) is unknown", predicate(random, from, depth - 1)),
        15..18 => format!(
            "({} && {})",
            predicate(random, from, depth - 1),
            predicate(random, from, depth - 1)
        ),
        _ => format!(
            "({} || {})",
            predicate(random, from, depth - 1),
            predicate(random, from, depth - 1)
        ),
    }
}

/// Mostly a path that equals a value.
fn comparison(random: &mut Random, from: &str, depth: usize) -> String {
    let operator = *random.pick(&["==", "==", "==", "==", "==", "==", "!=", "<", ">=", "<>"]);
    let left = operand(random, from, depth, 1);
    let right = operand(random, from, depth, 7);
    if random.below(4) == 0 {
        format!("{right} {operator} {left}")
    } else {
        format!("{left} {operator} {right}")
    }
}

/// A value in so many of ten cases, else a path, or what is made of one.
fn operand(random: &mut Random, from: &str, depth: usize, values: usize) -> String {
    if random.below(10) < values {
        let value = *random.pick(&VALUES);
        return match random.below(12) {
            0 if !value.starts_with('-') => format!("({value}).type()"),
            1 if value.ends_with(|c: char| c.is_ascii_digit()) => format!("({value} + 0)"),
            _ => value.to_owned(),
        };
    }
    let path = path(random, from, depth.min(1));
    match random.below(16) {
        0 => format!("({path} + 1)"),
        1 => format!("(-{path})"),
        2 => format!("({path} == 1).type()"),
        _ => path,
    }
}
