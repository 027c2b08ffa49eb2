//! Union or intersection.

/// How filters are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// The elements of any of them.
    Union = 1,
    /// The elements of all of them.
    Intersection = 2,
}
