//! The state of a merge that one process passes to another: one filter for each size.
//!
//! ```text
//!  0  u8    0: not a version of a filter, so it can't be taken for one
//!  1  u8    1 union, 2 intersection
//!  2  u16   0
//!  4  u32   filters that follow, at least 1
//!  8  u64   bytes of the largest payload of all filters
//! 16        for each filter: its length (u64), its stored form, zeros up to a multiple of 8
//! ```
//!
//! The filters ascend by block count; the first may have no size. All have one layout, number of
//! hashes, kind and base. Those of an intersection are dense, or they are lists, all empty except
//! the last, which has the common hashes.

use crate::error::{Result, damaged, require};
use crate::filter::view::{Body, View};
use crate::memory;
use crate::sizing::MAX_STORED_BYTES;

/// Bytes before the first filter.
pub(super) const START: usize = 16;
/// The most bytes that all filters together may take: what fits a value of PostgreSQL.
pub(super) const MOST_BYTES: usize = (1 << 30) - 64;

/// How filters are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// The elements of any of them.
    Union = 1,
    /// The elements of all of them.
    Intersection = 2,
}

/// The state from another process, validated.
#[derive(Clone, Debug)]
pub struct PartialMerge<'a> {
    pub operation: Operation,
    /// Bytes of the largest payload so far.
    pub(super) given: u64,
    /// The filters, ascending by block count; at least one.
    pub(super) views: Vec<View<'a>>,
}

/// The next of several filters, and what follows it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let cut_off = || damaged("a filter of a partial state is cut off");
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut_off)?;
    let length = usize::try_from(u64::from_le_bytes(*length))
        .ok()
        .filter(|&n| n <= rest.len())
        .ok_or_else(cut_off)?;
    let (filter, rest) = rest.split_at(length);
    let padding = rest.get(..length.next_multiple_of(8) - length).ok_or_else(cut_off)?;
    require(padding.iter().all(|&byte| byte == 0), || {
        "padding of a partial state is not zero".into()
    })?;
    Ok((filter, &rest[padding.len()..]))
}

impl<'a> PartialMerge<'a> {
    /// Reads what [`super::MergedFilters::to_partial`] wrote. Errors: [`crate::Class::InvalidBinary`]
    /// for anything else.
    pub fn parse(bytes: &'a [u8]) -> Result<PartialMerge<'a>> {
        let (start, filters) = bytes
            .split_first_chunk::<START>()
            .ok_or_else(|| damaged("a partial state is cut off"))?;
        let operation = match start[..4] {
            [0, 1, 0, 0] => Operation::Union,
            [0, 2, 0, 0] => Operation::Intersection,
            _ => return Err(damaged("it is no partial state of a merge")),
        };
        let (count, given) = start[4..].split_at(4);
        let count = u32::from_le_bytes(count.try_into().unwrap_or_default()) as usize;
        let given = u64::from_le_bytes(given.try_into().unwrap_or_default());
        require(count > 0, || "a partial state has no filters".into())?;
        require(given <= MAX_STORED_BYTES, || format!("a filter of {given} bytes was merged"))?;
        let mut parts = PartialMerge { operation, given, views: Vec::new() };
        let mut rest = filters;
        for i in 0..count {
            let filter;
            (filter, rest) = split(rest)?;
            let view = View::parse(filter)?;
            parts.check(&view, i + 1 == count)?;
            memory::push(&mut parts.views, view);
        }
        require(rest.is_empty(), || "a partial state is too long".into())?;
        Ok(parts)
    }

    /// Checks the next filter against the one before.
    fn check(&self, view: &View<'_>, is_last: bool) -> Result<()> {
        let (h, before) = (&view.header, self.views.last());
        if let Some(View { header: b, .. }) = before {
            require(b.blocks < h.blocks, || "the filters of a partial state do not ascend".into())?;
            require(
                b.is_unsized()
                    || (b.layout, b.num_hashes, b.kind, b.base_blocks)
                        == (h.layout, h.num_hashes, h.kind, h.base_blocks),
                || "the filters of a partial state differ".into(),
            )?;
        }
        let hashes = match view.body {
            Body::Sparse(entries) => Some(entries.len()),
            Body::Dense(_) => None,
        };
        let as_before =
            before.is_none_or(|before| matches!(before.body, Body::Sparse(_)) == hashes.is_some());
        require(
            self.operation == Operation::Union
                || (as_before && (is_last || hashes.is_none_or(|n| n == 0)))
                || h.is_unsized(),
            || "an intersection of bits and hashes".into(),
        )
    }
}
