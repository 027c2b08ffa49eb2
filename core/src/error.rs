//! Errors in PostgreSQL's style: a message in lower case without a period, a detail with both values where two
//! disagree, and a hint that says what to do.

/// What went wrong, as a class that the extension turns into an SQLSTATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 22023: a parameter out of its range, or filters that can't be merged.
    InvalidParameter,
    /// 54000: larger than a filter may be.
    TooLarge,
    /// 22P03: bytes that are no stored filter.
    InvalidBinary,
    /// 42804: elements of different key kinds.
    KindMismatch,
}

/// An error: one pointer, so that results are returned in registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Parts>);

/// The parts of an error that PostgreSQL shows separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The class of the error.
    pub code: Code,
    /// The primary message.
    pub message: String,
    /// Both values where two disagree, or what was found.
    pub detail: Option<String>,
    /// What the user can do.
    pub hint: Option<String>,
}

/// A result whose error is an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with a message only.
    #[cold]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error(Box::new(Parts { code, message: message.into(), detail: None, hint: None }))
    }

    /// The parts to show.
    pub fn into_parts(self) -> Parts {
        *self.0
    }

    /// The same error with a detail line.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// The same error with a hint line.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }
}

impl std::ops::Deref for Error {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
