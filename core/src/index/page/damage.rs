//! What is wrong with a page, and checks of the fields that it stores.
//!
//! Each rule for a field is a call of [`check_field`], [`check_equal`] or [`check_at_most`]: it
//! names the field and compares its value. The page is added to the error by the caller, who knows
//! it.

use std::fmt;

/// The number of a page in the index file; PostgreSQL's block number.
pub type PageNumber = u32;

/// A page that no version of this code wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Damage {
    pub page: PageNumber,
    /// What is wrong with it, in the words of the error.
    pub problem: String,
}

impl Damage {
    #[cold]
    pub fn new(page: PageNumber, problem: impl Into<String>) -> Damage {
        Damage { page, problem: problem.into() }
    }

    /// Returns the damage of a page that is all zero or after the end of the file, but must not be.
    #[cold]
    pub fn empty(page: PageNumber) -> Damage {
        Damage::new(page, "it is empty")
    }

    /// Returns the damage of a page with a field, or a number computed from its records, that is
    /// out of range. `field` is its name in the error: "`field` is `found`".
    #[cold]
    pub fn field(page: PageNumber, field: &'static str, found: impl Into<u64>) -> Damage {
        WrongField::new(field, found).on(page)
    }
}

/// A field of a stored struct that is out of range, before it is known on which page it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongField {
    /// The name of the field, in the words of the error.
    field: &'static str,
    found: u64,
    valid: Valid,
}

/// Which values a field may have, as far as the error says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Valid {
    /// The error says only what was found.
    Unsaid,
    Only(u64),
    UpTo(u64),
}

impl WrongField {
    /// Returns the error "`field` is `found`".
    #[cold]
    pub fn new(field: &'static str, found: impl Into<u64>) -> WrongField {
        WrongField { field, found: found.into(), valid: Valid::Unsaid }
    }

    /// Returns the damage of the page that has the field.
    #[cold]
    pub fn on(self, page: PageNumber) -> Damage {
        Damage::new(page, self.to_string())
    }
}

impl fmt::Display for WrongField {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} is {}", self.field, self.found)?;
        match self.valid {
            Valid::Unsaid => Ok(()),
            Valid::Only(expected) => write!(to, ", but must be {expected}"),
            Valid::UpTo(most) => write!(to, ", but may be {most} at most"),
        }
    }
}

/// Fails with an error that names the field and the value found there, unless the value `is_valid`.
pub(crate) fn check_field(
    field: &'static str,
    found: impl Into<u64>,
    is_valid: bool,
) -> Result<(), WrongField> {
    if is_valid { Ok(()) } else { Err(WrongField::new(field, found)) }
}

/// Checks that a field of a page has the only value that is possible there.
///
/// Fails with an error that names the field and both values, unless they are equal: "`field` is
/// `found`, but must be `expected`".
pub(crate) fn check_equal(
    field: &'static str,
    found: impl Into<u64>,
    expected: impl Into<u64>,
) -> Result<(), WrongField> {
    let found = found.into();
    let expected = expected.into();
    if found == expected {
        Ok(())
    } else {
        Err(WrongField { field, found, valid: Valid::Only(expected) })
    }
}

/// Checks that a field of a page is at most `most`.
///
/// Fails with an error that names the field and both values, if the value found there is greater:
/// "`field` is `found`, but may be `most` at most".
pub(crate) fn check_at_most(
    field: &'static str,
    found: impl Into<u64>,
    most: u64,
) -> Result<(), WrongField> {
    let found = found.into();
    if found <= most {
        Ok(())
    } else {
        Err(WrongField { field, found, valid: Valid::UpTo(most) })
    }
}
