//! The operator classes over parts. The support function of a class, that of one of its operators, says which it is.

use crate::error::unsupported;
use crate::pg::call::error::{Error, info};
use crate::pg::catalog::operators;
use pgrx::pg_sys::{self, Oid};

/// The support function of these operator classes.
pub const PARTS: i16 = 3;

/// The most parts of an array or a document that are looked for, all of which a row must have.
pub const MOST_PARTS: usize = 256;

/// `array_ops`, `jsonb_ops`, `tsvector_ops`, `text_ngram_ops`.
#[derive(Clone, Copy)]
pub enum Class {
    Array,
    Json,
    Words,
    Text,
}

/// What an operator asks, by its strategy, a number in the catalogs: `=`, `@>`, `&&`, `LIKE`, `ILIKE`, `^@`, `@@`, `?`,
/// `?|`, `?&`, `~`, `~*`.
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
}

pub const MOST_STRATEGIES: i16 = Strategy::RegexIgnoringCase as i16;

impl Class {
    fn of(support: Oid) -> Option<Class> {
        match support.to_u32() {
            pg_sys::F_ARRAYOVERLAP => Some(Class::Array),
            pg_sys::F_JSONB_CONTAINS => Some(Class::Json),
            pg_sys::F_TS_MATCH_VQ => Some(Class::Words),
            pg_sys::F_TEXTLIKE => Some(Class::Text),
            _ => None,
        }
    }

    /// Its strategies, with the functions of their operators.
    fn operators(self) -> &'static [(Strategy, u32)] {
        match self {
            Class::Array => &[
                (Strategy::Equal, pg_sys::F_ARRAY_EQ),
                (Strategy::Contains, pg_sys::F_ARRAYCONTAINS),
                (Strategy::Overlaps, pg_sys::F_ARRAYOVERLAP),
            ],
            Class::Json => &[
                (Strategy::Equal, pg_sys::F_JSONB_EQ),
                (Strategy::Contains, pg_sys::F_JSONB_CONTAINS),
                (Strategy::HasKey, pg_sys::F_JSONB_EXISTS),
                (Strategy::HasAnyKey, pg_sys::F_JSONB_EXISTS_ANY),
                (Strategy::HasAllKeys, pg_sys::F_JSONB_EXISTS_ALL),
            ],
            Class::Words => &[(Strategy::Matches, pg_sys::F_TS_MATCH_VQ)],
            Class::Text => &[
                (Strategy::Equal, pg_sys::F_TEXTEQ),
                (Strategy::Like, pg_sys::F_TEXTLIKE),
                (Strategy::LikeIgnoringCase, pg_sys::F_TEXTICLIKE),
                (Strategy::StartsWith, pg_sys::F_STARTS_WITH),
                (Strategy::Regex, pg_sys::F_TEXTREGEXEQ),
                (Strategy::RegexIgnoringCase, pg_sys::F_TEXTICREGEXEQ),
            ],
        }
    }

    pub fn strategy(self, number: i16) -> Option<Strategy> {
        self.operators().iter().map(|&(strategy, _)| strategy).find(|&strategy| strategy as i16 == number)
    }

    /// The class of an operator family with this support function: 0A000 if one of its operators doesn't ask what its
    /// strategy says.
    pub fn checked(family: Oid, support: Oid) -> Result<Class, Error> {
        let refused = |message| unsupported(message, "Use the operator classes of the extension. See docs/index.md.");
        let class = Class::of(support).ok_or_else(|| {
            refused("support function 3 of the operator class is none that an index can have".to_owned())
        })?;
        for operator in &operators::family_operators(family) {
            let asked = (operator.amopstrategy, operators::function_of(operator.amopopr).to_u32());
            let is_own = class.operators().iter().any(|&(strategy, function)| (strategy as i16, function) == asked);
            if !is_own || !operators::is_for_search(operator) {
                let (name, strategy) = (operators::display(operator), operator.amopstrategy);
                return Err(refused(format!("operator {name} does not ask what strategy {strategy} does")));
            }
        }
        Ok(class)
    }
}

/// Whether an operator class with this support function is one that an index can have; says what is wrong with it.
pub fn validate(family: Oid, support: Oid) -> bool {
    Class::checked(family, support).map_err(info).is_ok()
}
