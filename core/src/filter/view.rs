//! A stored filter, or the state of a build, read in place.

use super::check::{check_foldable, check_is_whole, check_unused, invalid, parse_start, require};
use super::header::{Capacity, Header, payload_mut};
use super::sparse;
use crate::error::Result;
use crate::interrupt;
use crate::memory::Buffer;

/// The elements of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// Their hashes, eight bytes each, ascending.
    Sparse(&'a [[u8; 8]]),
    /// Their bits.
    Dense(&'a [u8]),
}

/// A stored filter that was validated, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View<'a> {
    /// Its header.
    pub header: Header<'a>,
    /// Its elements.
    pub body: Body<'a>,
}

impl<'a> View<'a> {
    /// Reads a stored filter.
    ///
    /// # Errors
    /// [`crate::Class::InvalidBinary`] for a value that no operation of this crate writes.
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = View::parse_trusted(bytes)?;
        check_contents(&view)?;
        Ok(view)
    }

    /// Reads a value whose bytes [`View::parse`] accepted before. Checks everything except the order of a sparse
    /// filter's hashes and the zeros of a filter without a kind, which takes time that grows with the filter. Other
    /// bytes can give wrong answers, but nothing worse.
    ///
    /// # Errors
    /// As [`View::parse`].
    #[inline]
    pub fn parse_trusted(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = read(bytes)?;
        check_is_whole(&view.header, matches!(view.body, Body::Sparse([])))?;
        Ok(view)
    }

    /// How many bytes the payload has as stored.
    pub fn payload_bytes(&self) -> usize {
        match self.body {
            Body::Sparse(hashes) => hashes.len() * 8,
            Body::Dense(bits) => bits.len(),
        }
    }

    /// How many bytes the stored form has.
    pub fn stored_bytes(&self) -> usize {
        self.header.prefix_bytes() + self.payload_bytes()
    }

    /// A copy of the stored form.
    pub fn to_buffer<B: Buffer>(&self) -> B {
        let (mut value, payload): (B, _) = match self.body {
            Body::Sparse(hashes) => (self.header.sparse(hashes.len()), hashes.as_flattened()),
            Body::Dense(bits) => (self.header.dense(), bits),
        };
        interrupt::copy(payload_mut(&mut value, &self.header), payload);
        value
    }
}

/// The state of a build that one process passes to another, validated, read in place: a filter in its stored form, or
/// one of two forms that no stored value has.
///
/// ```text
/// blocks  capacity  payload
/// 0       0         hashes      an unsized build, exact
/// 2^e     0         bits        an unsized build with more blocks than it will need, to be folded in the end
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partial<'a>(View<'a>);

impl<'a> Partial<'a> {
    /// Reads a partial state.
    ///
    /// # Errors
    /// [`crate::Class::InvalidBinary`] for a value that no aggregate writes.
    pub fn parse(bytes: &'a [u8]) -> Result<Partial<'a>> {
        let view = read(bytes)?;
        check_contents(&view)?;
        match (view.header.capacity, view.body) {
            (Capacity::ToBeFolded, _) => check_foldable(&view.header)?,
            (Capacity::Unsized, Body::Sparse([])) if !view.header.kind.is_none() => {
                return Err(invalid("a filter of no size has a key kind but no elements"));
            }
            _ => {}
        }
        Ok(Partial(view))
    }

    /// Reads a value whose bytes [`Partial::parse`] accepted before, as [`View::parse_trusted`] does.
    ///
    /// # Errors
    /// As [`Partial::parse`].
    pub fn parse_trusted(bytes: &'a [u8]) -> Result<Partial<'a>> {
        Ok(Partial(read(bytes)?))
    }

    /// Header and elements. A view of no size may have hashes here.
    pub fn view(&self) -> &View<'a> {
        &self.0
    }
}

/// Reads a filter or a partial state, with the checks common to both. Checks that take time that grows with the payload
/// are left out.
#[inline]
fn read(bytes: &[u8]) -> Result<View<'_>> {
    let (header, hashes) = parse_start(bytes, bytes.len())?;
    let payload = &bytes[header.prefix_bytes()..];
    if hashes.is_some() {
        return Ok(View { header, body: Body::Sparse(payload.as_chunks::<8>().0) });
    }
    check_unused(&header, payload)?;
    Ok(View { header, body: Body::Dense(payload) })
}

/// Checks the rest: hashes ascend, and a filter without a kind has no bits set. Two empty filters of different sizes
/// merge to one that is dense and has no kind yet.
fn check_contents(view: &View<'_>) -> Result<()> {
    match view.body {
        Body::Sparse(hashes) => require(sparse::is_ascending(hashes), || "hashes are not in ascending order".into()),
        Body::Dense(bits) => require(!view.header.kind.is_none() || interrupt::is_zero(bits), || {
            "bits of elements without a key kind are set".into()
        }),
    }
}

#[cfg(test)]
pub(crate) mod tests;
