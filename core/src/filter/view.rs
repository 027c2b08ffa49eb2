//! A stored filter, or the state of a build, read in place.
//!
//! All values from outside come through here. Each is checked: its length, every field of its
//! header ([`super::header`]), and what follows from the fields for the payload.

use super::header::payload_mut;
use super::header::{Capacity, Header, ParsedHeader, Representation, ValueType, parse_header};
use super::sparse;
use crate::error::{Result, damaged, require};
use crate::interrupt;
use crate::memory::Buffer;
use crate::sizing::density;

/// The elements of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// Their hashes, eight little-endian bytes each, ascending.
    Sparse(&'a [[u8; 8]]),
    /// Their bits.
    Dense(&'a [u8]),
}

/// A stored filter that was validated, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View<'a> {
    pub header: Header<'a>,
    pub body: Body<'a>,
}

/// A stored filter of which only the start was read: everything before the payload.
#[derive(Clone, Copy, Debug)]
pub struct FilterStart<'a> {
    pub header: Header<'a>,
    /// How many hashes the payload has; `None` if it has bits.
    pub hashes: Option<usize>,
}

impl<'a> View<'a> {
    /// Reads and checks a stored filter, without copying it: the header, and then all of its hashes
    /// or bits.
    ///
    /// Fails with [`crate::Class::InvalidBinary`] if the bytes are not what this crate writes for
    /// some filter.
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = View::parse_trusted(bytes)?;
        check_payload(&view)?;
        Ok(view)
    }

    /// Reads a filter whose bytes [`View::parse`] accepted before, and skips the checks that take
    /// time in proportion to the payload: that the hashes of a sparse filter ascend, and that a
    /// filter without a key kind has no bits set.
    ///
    /// For other bytes the result may answer wrongly, but does nothing worse. Fails as
    /// [`View::parse`], except for these two checks.
    #[inline]
    pub fn parse_trusted(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = read(bytes)?;
        check_is_whole(&view.header, matches!(view.body, Body::Sparse([])))?;
        Ok(view)
    }

    /// Reads the state of a build that one process passes to another: a filter in its stored form,
    /// or one of two forms that no stored value has.
    ///
    /// ```text
    /// blocks  capacity  payload
    /// 0       0         hashes      an unsized build, exact
    /// 2^e     0         bits        an unsized build with more blocks than it will need, to be folded in the end
    /// ```
    ///
    /// Fails with [`crate::Class::InvalidBinary`] if it is a value that no build writes.
    pub fn parse_partial(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = read(bytes)?;
        check_payload(&view)?;

        match (view.header.capacity, view.body) {
            (Capacity::ToBeFolded, _) => check_foldable(&view.header)?,
            (Capacity::Unsized, Body::Sparse([])) => require(view.header.kind.is_none(), || {
                "a filter of no size has a key kind but no elements".into()
            })?,
            _ => {}
        }
        Ok(view)
    }

    /// Returns how many bytes the payload has as stored.
    pub fn payload_bytes(&self) -> usize {
        match self.body {
            Body::Sparse(hashes) => size_of_val(hashes),
            Body::Dense(bits) => bits.len(),
        }
    }

    /// Returns how many bytes the whole filter has as stored.
    pub fn stored_bytes(&self) -> usize {
        self.header.prefix_bytes() + self.payload_bytes()
    }

    /// Returns a copy of the stored form.
    pub fn to_buffer<B: Buffer>(&self) -> B {
        let (representation, payload) = match self.body {
            Body::Sparse(hashes) => (Representation::Sparse, hashes.as_flattened()),
            Body::Dense(bits) => (Representation::Dense, bits),
        };
        let mut value: B = self.header.allocate(representation, payload.len());
        interrupt::copy(payload_mut(&mut value, &self.header), payload);
        value
    }
}

/// Reads a stored filter, or the state of a build that one process passes to another. Which of the
/// two it is isn't checked, nor what takes time in proportion to the payload ([`check_payload`]).
///
/// Fails if the header is invalid, if the payload hasn't the size that follows from it, or if bits
/// are set behind the last block, which may end within a byte.
#[inline]
fn read(bytes: &[u8]) -> Result<View<'_>> {
    let FilterStart { header, hashes } = parse_start(bytes, bytes.len())?;
    let payload = &bytes[header.prefix_bytes()..];
    if hashes.is_some() {
        let (hashes, _) = payload.as_chunks::<8>();
        return Ok(View { header, body: Body::Sparse(hashes) });
    }

    // In `classic` the bits may end within the last byte, whose highest bits are then unused.
    let bits = header.blocks * header.layout.block_bits();
    let unused_bits = payload.len() as u64 * 8 - bits;
    let are_unused_bits_clear = payload
        .last()
        .is_some_and(|last| u64::from(last.leading_zeros()) >= unused_bits);
    require(are_unused_bits_clear, || "bits are set after the last".into())?;
    Ok(View { header, body: Body::Dense(payload) })
}

/// Reads and checks everything before the payload of a stored filter, or of the state of a build:
/// the header, and the name of the key kind. The value has `value_bytes` bytes in all, of which
/// `bytes` are the first ones: at least all of those before the payload.
///
/// Fails if the header is invalid, or if a value with this header can't have so many bytes.
pub(super) fn parse_start(bytes: &[u8], value_bytes: usize) -> Result<FilterStart<'_>> {
    let ParsedHeader { header, representation } = parse_header(bytes, ValueType::BitFilter)?;
    let payload_bytes = value_bytes
        .checked_sub(header.prefix_bytes())
        .ok_or_else(|| damaged("it is cut off"))?;

    if representation == Representation::Sparse {
        check_list(&header, payload_bytes)?;
        return Ok(FilterStart { header, hashes: Some(payload_bytes / 8) });
    }
    check_bits(&header, payload_bytes)?;
    Ok(FilterStart { header, hashes: None })
}

/// Checks that a filter with this header may be *sparse*, that is, have a list of the hashes of its
/// elements instead of bits, and that the list may have `payload_bytes` bytes. A hash has 8 bytes.
/// The hashes themselves are not looked at.
///
/// Fails if the bytes aren't a whole number of hashes; if there are so many hashes that bits would
/// take fewer bytes; if there are hashes, but no kind of elements; or if the capacity is stored as
/// 0 though the filter has a size, which only the state of a build has, and that has bits.
fn check_list(header: &Header<'_>, payload_bytes: usize) -> Result<()> {
    require(payload_bytes.is_multiple_of(8), || {
        format!("{payload_bytes} bytes of hashes are no multiple of 8")
    })?;
    // A build that has set bits is stored with capacity 0: its bits are yet to be folded.
    require(header.capacity != Capacity::ToBeFolded, || "a sparse filter has capacity 0".into())?;

    let num_hashes = payload_bytes / 8;
    require(header.fits_sparse(num_hashes), || {
        format!("{num_hashes} hashes are more than a sparse filter of {} blocks has", header.blocks)
    })?;

    // The first element that is added decides the kind.
    require(!header.kind.is_none() || num_hashes == 0, || "elements have no key kind".into())
}

/// Checks that a filter with this header may have a payload of `payload_bytes` bytes of bits.
fn check_bits(header: &Header<'_>, payload_bytes: usize) -> Result<()> {
    require(!header.is_unsized(), || "a filter of no size is dense".into())?;
    require(payload_bytes as u64 == header.payload_bytes(), || {
        format!(
            "{payload_bytes} bytes of bits where {} blocks have {}",
            header.blocks,
            header.payload_bytes()
        )
    })
}

/// Checks the hashes or bits of a filter as they were stored, in time proportional to their number.
/// The hashes of a sparse filter must be in ascending order. In a dense filter that has no key
/// kind, all bits must be clear: it gets its kind from its first element, so it never had one.
///
/// Fails if they are not.
fn check_payload(view: &View<'_>) -> Result<()> {
    match view.body {
        Body::Sparse(hashes) => {
            require(sparse::is_ascending(hashes), || "hashes are not in ascending order".into())
        }
        // A dense filter may be empty: two empty filters of different sizes merge to one.
        Body::Dense(bits) => {
            let has_kind = !view.header.kind.is_none();
            require(has_kind || interrupt::all_are_zero(bits), || {
                "bits of elements without a key kind are set".into()
            })
        }
    }
}

/// Checks that a header is that of a stored filter, not of a partial state. `has_no_elements` says
/// whether the payload can have no elements, as an empty list. It matters only if the filter has no
/// size.
///
/// Fails if the capacity is not known although the filter has elements or a key kind.
pub(crate) fn check_is_whole(header: &Header<'_>, has_no_elements: bool) -> Result<()> {
    match header.capacity {
        Capacity::Elements(_) => Ok(()),
        Capacity::ToBeFolded => Err(damaged("capacity is 0")),
        Capacity::Unsized => {
            require(has_no_elements, || "a filter of no size holds elements".into())?;
            require(header.kind.is_none(), || "a filter of no size has a key kind".into())
        }
    }
}

/// Checks that a partial state can be folded to any smaller size without losing elements: its
/// blocks are a power of two, and its elements have the number of hashes that every size has at
/// this rate.
fn check_foldable(header: &Header<'_>) -> Result<()> {
    require(header.blocks.is_power_of_two(), || {
        format!("{} blocks of a filter to be folded are no power of two", header.blocks)
    })?;

    let density = density(header.layout, header.fpr).map_err(|error| damaged(error.to_string()))?;
    require(header.num_hashes == density.num_hashes, || {
        format!("{} hashes at a rate that has {}", header.num_hashes, density.num_hashes)
    })
}

#[cfg(test)]
pub(crate) mod tests;
