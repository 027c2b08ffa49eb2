//! The operator classes over parts. The support function of a class says which it is: the function of one of its
//! operators, by which parts are asked for.

use crate::error::unsupported;
use crate::pg::call::error::{Error, info};
use crate::pg::catalog::operators;
use pgrx::pg_sys::{self, Oid};

/// The support function of operator classes over parts.
pub const PARTS: i16 = 3;

/// The most parts of an array or a document that are looked for, all of which a row must have.
pub const MOST_PARTS: usize = 256;

/// Which parts of a value an index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `array_ops`: the members of an array, and the array as a whole.
    Array,
    /// `jsonb_ops`: the values of a document by their paths, and its keys.
    Json,
    /// `tsvector_ops`: the words of a tsvector.
    Words,
    /// `text_ngram_ops`: the windows of a text.
    Text,
}

/// What an operator asks, by its strategy. The numbers are in the catalogs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// `=`
    Equal = 1,
    /// `@>`
    Contains = 3,
    /// `&&`
    Overlaps = 4,
    /// `LIKE`
    Like = 5,
    /// `ILIKE`
    LikeIgnoringCase = 6,
    /// `^@`
    StartsWith = 7,
    /// `@@`
    Matches = 8,
    /// `?`
    HasKey = 9,
    /// `?|`
    HasAnyKey = 10,
    /// `?&`
    HasAllKeys = 11,
    /// `~`
    Regex = 12,
    /// `~*`
    RegexIgnoringCase = 13,
}

pub const MOST_STRATEGIES: i16 = Strategy::RegexIgnoringCase as i16;

impl Class {
    const ALL: [Class; 4] = [Class::Array, Class::Json, Class::Words, Class::Text];

    fn of(support: Oid) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.support() == support.to_u32())
    }

    fn support(self) -> u32 {
        match self {
            Class::Array => pg_sys::F_ARRAYOVERLAP,
            Class::Json => pg_sys::F_JSONB_CONTAINS,
            Class::Words => pg_sys::F_TS_MATCH_VQ,
            Class::Text => pg_sys::F_TEXTLIKE,
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

    /// The class of an operator family with this support function, each of whose operators asks what its strategy says.
    ///
    /// # Errors
    /// 0A000 for an operator class whose operators ask other things.
    pub fn checked(family: Oid, support: Oid) -> Result<Class, Error> {
        let class = Class::of(support).ok_or_else(|| {
            unsupported("support function 3 of the operator class is none that an index can have", HINT)
        })?;
        for operator in &operators::family_operators(family) {
            let function = operators::function_of(operator.operator).to_u32();
            let is_own =
                class.operators().iter().any(|&(strategy, of)| (strategy as i16, of) == (operator.strategy, function));
            if !is_own || !operator.is_for_search {
                let name = operators::display(operator);
                return Err(unsupported(
                    format!("operator {name} does not ask what strategy {} does", operator.strategy),
                    HINT,
                ));
            }
        }
        Ok(class)
    }
}

const HINT: &str = "Use the operator classes of the extension. See docs/index.md.";

/// Whether an operator class over parts, with this support function, is one that an index can have; says what is wrong
/// with it.
pub fn validate(family: Oid, support: Oid) -> bool {
    match Class::checked(family, support) {
        Ok(_) => true,
        Err(error) => {
            info(error);
            false
        }
    }
}
