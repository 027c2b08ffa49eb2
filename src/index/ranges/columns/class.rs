//! The operator classes of indexes that keep several keys of a value: `array_ops`, `jsonb_ops`,
//! `tsvector_ops` and `text_ngram_ops`.
//!
//! An index is given an operator class by whoever creates it, and PostgreSQL lets superusers declare
//! further classes. So the index must recognise its own ones, whatever their names are. Each of the
//! four has a *support function* with number 3, an entry of the class that names a function. The
//! function is that of one of the class's operators, such as `arrayoverlap`, the function of `&&`,
//! for `array_ops`. It is never called: its identifier, which is the same in every database, says
//! which class this is. `operators_of` then says which operators the class may have.

use crate::error::unsupported;
use crate::pg::call::{Error, Result, SqlState};
use crate::pg::catalog::{self, operators};
use pgrx::pg_sys::{self, Oid};

/// The number of the support function by which the index tells these operator classes from each
/// other, and from all others, which have none.
pub const PARTS_CLASS_FUNCTION: i16 = 3;

/// A lookup asks for at most this many keys that a row must all have, of an array or a document
/// with more. The others are left to PostgreSQL, which compares each row: 256 keys leave next to no
/// other rows.
pub const MOST_PARTS: usize = 256;

/// The functions that are support function 3 of `array_ops`, `jsonb_ops`, `tsvector_ops` and
/// `text_ngram_ops`.
pub const ARRAY_OPS: u32 = pg_sys::F_ARRAYOVERLAP;
pub const JSONB_OPS: u32 = pg_sys::F_JSONB_CONTAINS;
pub const TSVECTOR_OPS: u32 = pg_sys::F_TS_MATCH_VQ;
pub const TEXT_NGRAM_OPS: u32 = pg_sys::F_TEXTLIKE;

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
}

/// The greatest number of a strategy.
pub const MOST_STRATEGIES: i16 = Strategy::PathMatches as i16;

/// Returns the operators that an index can be asked by, for the operator class with this support
/// function: each as its strategy (its number in the class) and the function that evaluates it.
/// Returns none for a function that isn't one of these four.
fn operators_of(support: Oid) -> &'static [(Strategy, u32)] {
    match support.to_u32() {
        ARRAY_OPS => &[
            (Strategy::Equal, pg_sys::F_ARRAY_EQ),
            (Strategy::Contains, pg_sys::F_ARRAYCONTAINS),
            (Strategy::Overlaps, pg_sys::F_ARRAYOVERLAP),
        ],
        JSONB_OPS => &[
            (Strategy::Equal, pg_sys::F_JSONB_EQ),
            (Strategy::Contains, pg_sys::F_JSONB_CONTAINS),
            (Strategy::HasKey, pg_sys::F_JSONB_EXISTS),
            (Strategy::HasAnyKey, pg_sys::F_JSONB_EXISTS_ANY),
            (Strategy::HasAllKeys, pg_sys::F_JSONB_EXISTS_ALL),
            (Strategy::PathExists, pg_sys::F_JSONB_PATH_EXISTS_OPR),
            (Strategy::PathMatches, pg_sys::F_JSONB_PATH_MATCH_OPR),
        ],
        TSVECTOR_OPS => &[(Strategy::Matches, pg_sys::F_TS_MATCH_VQ)],
        TEXT_NGRAM_OPS => &[
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
    strategies
        .find(|&strategy| strategy as i16 == number)
        .ok_or_else(|| unknown_strategy(number))
}

/// Returns the error for the number of a strategy for which the column of an index has no
/// condition: the operator class doesn't have it, or a new operator lacks its branch. A wrong
/// condition would lose rows.
pub fn unknown_strategy(number: i16) -> Error {
    let message = format!("strategy {number} is none of the operator class");
    Error::new(SqlState::ERRCODE_INTERNAL_ERROR, message)
}

/// Returns the error for an operator class with another support function 3 than the four.
pub fn unknown_class() -> Error {
    refused("support function 3 of the operator class is none that an index can have".to_owned())
}

fn refused(message: String) -> Error {
    unsupported(message, "Use the operator classes of the extension. See docs/index.md.")
}

/// Returns the type as whose values the index reads those of its column, for the operator class
/// with this support function; `None` for a function that isn't one of the four.
fn type_read_by(support: Oid) -> Option<Oid> {
    match support.to_u32() {
        ARRAY_OPS => Some(pg_sys::ANYARRAYOID),
        JSONB_OPS => Some(pg_sys::JSONBOID),
        TSVECTOR_OPS => Some(pg_sys::TSVECTOROID),
        TEXT_NGRAM_OPS => Some(pg_sys::TEXTOID),
        _ => None,
    }
}

/// Checks that an index can have an operator class, given by its family, the type that it is
/// declared for, and its support function 3. The function says what the index keeps: parts of
/// arrays, jsonb, tsvector or text.
///
/// Fails with 0A000 if the function is another one, if values of the type aren't stored as those
/// that the function is for, or if an operator of the family has another function than its strategy
/// (its number in the family) should have.
pub fn check(family: Oid, declared: Oid, support: Oid) -> Result<()> {
    let read_as = type_read_by(support).ok_or_else(unknown_class)?;
    if !catalog::is_stored_as(declared, read_as) {
        return Err(refused(format!(
            "support function 3 of the operator class does not read type {}",
            catalog::display_name(declared)
        )));
    }
    let allowed = operators_of(support);
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
