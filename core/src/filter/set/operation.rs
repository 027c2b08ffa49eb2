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

impl Operation {
    /// The aggregate, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::Union => "bloom_union_agg",
            Operation::Intersection => "bloom_intersection_agg",
        }
    }
}
