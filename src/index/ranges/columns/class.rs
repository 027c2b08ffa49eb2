//! The operator classes of indexes that keep several keys of a value: `array_ops`, `jsonb_ops`,
//! `tsvector_ops` and `text_ngram_ops`.
//!
//! Each has a support function with number 3, which is never called: it only tells the classes
//! apart. It is the function of one of the class's own operators.

use crate::error::unsupported;
use crate::pg::call::{Error, Result, SqlState};
use crate::pg::catalog::operators;
use pgrx::pg_sys::{self, Oid};

/// The number of the support function that these operator classes have, and no others.
pub const PARTS: i16 = 3;

/// A lookup asks for at most this many keys that a row must all have, of an array or a document
/// with more. The others are left to PostgreSQL, which compares each row: 256 keys leave next to no
/// other rows.
pub const MOST_PARTS: usize = 256;

/// The support functions of `array_ops`, `jsonb_ops`, `tsvector_ops`, `text_ngram_ops`.
pub const ARRAY: u32 = pg_sys::F_ARRAYOVERLAP;
pub const JSON: u32 = pg_sys::F_JSONB_CONTAINS;
pub const WORDS: u32 = pg_sys::F_TS_MATCH_VQ;
pub const TEXT: u32 = pg_sys::F_TEXTLIKE;

/// What an operator asks, by its strategy, a number in the catalogs: `=`, `@>`, `&&`, `LIKE`,
/// `ILIKE`, `^@`, `@@` of a tsquery, `?`, `?|`, `?&`, `~`, `~*`, `@?` and `@@` of a jsonpath.
#[derive(Clone, Copy, PartialEq)]
pub enum Strategy {
    Equal = 1,
    Contains = 3,
    Overlaps = 4,
    Like = 5,
    LikeIgnoringCase = 6,
    StartsWith = 7,
    Matches = 8,
    HasKey = 9,
    HasAnyKey = 10,
    HasAllKeys = 11,
    Regex = 12,
    RegexIgnoringCase = 13,
    PathExists = 14,
    PathMatches = 15,
}

impl Strategy {
    /// Returns how long PostgreSQL takes to compare a row by the operator, as a multiple of LIKE:
    /// for a line of 130 bytes `LIKE` takes 0.3 µs, `ILIKE` 0.9 µs, and `~` at least 2.3 µs.
    pub fn comparison_time(self) -> usize {
        match self {
            Strategy::LikeIgnoringCase => 3,
            Strategy::Regex | Strategy::RegexIgnoringCase => 7,
            _ => 1,
        }
    }

    /// Returns whether the operator's right side is a jsonpath.
    pub fn is_of_jsonpath(self) -> bool {
        matches!(self, Strategy::PathExists | Strategy::PathMatches)
    }
}

/// The greatest number of a strategy.
pub const MOST_STRATEGIES: i16 = Strategy::PathMatches as i16;

/// Returns the operators that an index can be asked by, for the operator class with this support
/// function: each as its strategy (its number in the class) and the function that evaluates it.
/// Returns none for a function that isn't one of these four.
fn operators_of(support: Oid) -> &'static [(Strategy, u32)] {
    match support.to_u32() {
        ARRAY => &[
            (Strategy::Equal, pg_sys::F_ARRAY_EQ),
            (Strategy::Contains, pg_sys::F_ARRAYCONTAINS),
            (Strategy::Overlaps, pg_sys::F_ARRAYOVERLAP),
        ],
        JSON => &[
            (Strategy::Equal, pg_sys::F_JSONB_EQ),
            (Strategy::Contains, pg_sys::F_JSONB_CONTAINS),
            (Strategy::HasKey, pg_sys::F_JSONB_EXISTS),
            (Strategy::HasAnyKey, pg_sys::F_JSONB_EXISTS_ANY),
            (Strategy::HasAllKeys, pg_sys::F_JSONB_EXISTS_ALL),
            (Strategy::PathExists, pg_sys::F_JSONB_PATH_EXISTS_OPR),
            (Strategy::PathMatches, pg_sys::F_JSONB_PATH_MATCH_OPR),
        ],
        WORDS => &[(Strategy::Matches, pg_sys::F_TS_MATCH_VQ)],
        TEXT => &[
            (Strategy::Equal, pg_sys::F_TEXTEQ),
            (Strategy::Like, pg_sys::F_TEXTLIKE),
            (Strategy::LikeIgnoringCase, pg_sys::F_TEXTICLIKE),
            (Strategy::StartsWith, pg_sys::F_STARTS_WITH),
            (Strategy::Regex, pg_sys::F_TEXTREGEXEQ),
            (Strategy::RegexIgnoringCase, pg_sys::F_TEXTICREGEXEQ),
        ],
        _ => &[],
    }
}

/// Returns the strategy with a number, for an operator class with this support function. Fails with
/// XX000 if the class has no such strategy.
pub fn strategy(support: Oid, number: i16) -> Result<Strategy> {
    let mut strategies = operators_of(support).iter().map(|&(strategy, _)| strategy);
    strategies.find(|&strategy| strategy as i16 == number).ok_or_else(|| {
        let message = format!("strategy {number} is none of the operator class");
        Error::new(SqlState::ERRCODE_INTERNAL_ERROR, message)
    })
}

/// Checks that an operator family has only operators that an index can be asked by. `support` is
/// support function 3 of its operator class, which says what the index keeps: parts of arrays,
/// jsonb, tsvector or text. Fails with 0A000 if the function is another one, or if an operator has
/// another function than its strategy (its number in the class) should have.
pub fn check(family: Oid, support: Oid) -> Result<()> {
    let refused = |message| {
        unsupported(message, "Use the operator classes of the extension. See docs/index.md.")
    };
    let allowed = operators_of(support);
    if allowed.is_empty() {
        return Err(refused(
            "support function 3 of the operator class is none that an index can have".to_owned(),
        ));
    }
    for operator in &operators::family_operators(family) {
        let function_of_operator = operators::function_of(operator.amopopr).to_u32();
        let is_allowed = allowed.iter().any(|&(strategy, function)| {
            strategy as i16 == operator.amopstrategy && function == function_of_operator
        });
        if !is_allowed || !operators::is_for_search(operator) {
            let (name, strategy) = (operators::display(operator), operator.amopstrategy);
            return Err(refused(format!(
                "operator {name} does not ask what strategy {strategy} does"
            )));
        }
    }
    Ok(())
}
