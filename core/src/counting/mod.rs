//! Counting filters: counters in place of bits, so that elements can be removed.
//!
//! A counting filter is a multiset. Every bit of a `blocked` filter becomes a counter of four bits:
//! the number of copies of elements, added and not yet removed, that have this position.
//!
//! ```text
//! add x      +1 at each of x's positions            the positions are those of the blocked layout
//! remove x   -1 at each of x's positions            no change if one of them is 0: x is not there
//! a + b      counter by counter, up to 15
//! bits       counter > 0  ──▶  1                    the dense payload of the filter of what is left
//! ```
//!
//! **15 means 15 or more.** Such a counter is never decremented, as its true value is not known. So
//! elements may stay forever, but none is lost. As long as no counter is saturated, adding and
//! removing is exact, and a filter from which everything was removed is the empty one again.
//!
//! No counting filter can detect the removal of an element that was never added but is a false
//! positive. This takes away counts of other elements, which may be missed afterwards. Users must
//! remove only what they added.
//!
//! **Always dense.** There is no list of hashes for small sets, since saturation would then depend
//! on when the list becomes counters. A filter takes its 4 bits per counter from the start.
//!
//! The stored form is that of a `blocked` filter ([`mod@crate::filter::header`]) with
//! representation 2, and counters for bits. A filter has a key kind if and only if a counter is not
//! zero, so a value has one canonical form here too. A filter of no size is the identity of `+`;
//! elements can't be added to it, as their number is not known.
//!
//! The counters of a payload are in [`counters`].

pub mod counters;

use crate::error::{Error, InvalidParameter, Mismatch, Result, damaged, require};
use crate::filter::build::{Request, unify_with_element};
use crate::filter::estimate;
use crate::filter::header::{Header, Representation, ValueType, parse_header, payload_mut};
use crate::filter::merge::{cannot_merge, merged_header};
use crate::filter::view::{Body, View, check_is_whole};
use crate::kind::Kind;
use crate::layout::Layout;
use crate::memory::{Buffer, List};
use crate::{interrupt, sizing};
use counters::{BLOCK_BYTES, BLOCK_COUNTERS, Tally};

/// A stored counting filter that was validated, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counting<'a> {
    /// Its header; the layout is `blocked`.
    pub header: Header<'a>,
    /// Its counters, two in a byte.
    pub counters: &'a [u8],
}

/// Figures of a counting filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountingInfo {
    /// How many counters the filter has.
    pub num_counters: u64,
    /// How many of them are not zero, how many are saturated, and their sum.
    pub tally: Tally,
    /// Estimated distinct elements; infinite if no counter is zero.
    pub cardinality: f64,
    /// Estimated copies of elements; `None` if a counter is saturated.
    pub copies: Option<f64>,
    /// The estimated false positive rate with these elements.
    pub current_fpr: f64,
}

/// Returns how many bytes a counting filter with this header has, its header included.
pub fn stored_bytes(header: &Header<'_>) -> u64 {
    header.prefix_bytes() as u64 + header.blocks * BLOCK_BYTES as u64
}

/// Returns a capacity that was given. Fails if none was, or one below 1
/// ([`InvalidParameter::CountingCapacity`]).
pub fn check_capacity(capacity: Option<i64>) -> Result<u64> {
    match capacity {
        Some(given) if given > 0 => Ok(given as u64),
        _ => Err(InvalidParameter::CountingCapacity(capacity).into()),
    }
}

/// Returns the header of a filter for `capacity` distinct elements at a time, without a kind.
///
/// Fails as [`sizing::size_for_capacity`] does, and if the filter would have more than `limit`
/// bytes ([`crate::Class::TooLarge`]).
pub fn sized_header(capacity: u64, fpr: f64, limit: u64) -> Result<Header<'static>> {
    let size = sizing::size_for_capacity(Layout::Blocked, capacity, fpr)?;
    let header = Header::with_size(size, Kind::NONE);
    header.check_bytes(stored_bytes(&header), limit)?;
    Ok(header)
}

/// Returns the header of a counting filter of no size. Fails as [`sizing::check_fpr`] does.
pub fn unsized_header(fpr: f64) -> Result<Header<'static>> {
    Request { capacity: None, fpr, layout: Layout::Blocked }.header(u64::MAX)
}

/// Returns a filter without elements, and so without a kind, that is otherwise as this header says.
pub fn empty<B: Buffer>(header: &Header<'_>) -> B {
    zeroed(&Header { kind: Kind::NONE, ..*header })
}

/// Returns a filter with this header, all of whose counters are zero.
fn zeroed<B: Buffer>(header: &Header<'_>) -> B {
    header.allocate(Representation::Counters, header.blocks as usize * BLOCK_BYTES)
}

/// Reads and checks the header of a stored counting filter. `bytes` are the first bytes of the
/// stored value, at least its header with the name of the key kind, and `length` is how many bytes
/// the value has in all. The counters are not looked at.
///
/// Fails if no counting filter has such a header and length ([`crate::Class::InvalidBinary`]).
pub fn parse_start(bytes: &[u8], length: usize) -> Result<Header<'_>> {
    let header = parse_header(bytes, ValueType::CountingFilter)?.header;
    require(header.layout == Layout::Blocked, || {
        format!("counters in layout \"{}\"", header.layout.name())
    })?;
    // Counting filters of several sizes can't be merged, so each keeps the blocks that it began
    // with.
    require(header.base_blocks == header.blocks, || {
        format!("{} base blocks of {} blocks of counters", header.base_blocks, header.blocks)
    })?;
    // A filter of no size has no blocks, and so no counters of elements.
    let has_no_elements_if_unsized = true;
    check_is_whole(&header, has_no_elements_if_unsized)?;
    require(stored_bytes(&header) == length as u64, || {
        format!(
            "{length} bytes where a filter of {} blocks of counters has {}",
            header.blocks,
            stored_bytes(&header)
        )
    })?;
    Ok(header)
}

/// Returns whether the element with this hash may be in a stored filter, of which only the bytes
/// that are needed are read: `read(from, length)` returns `length` bytes of it, from offset `from`
/// on.
///
/// Fails if `read` does, or if it returns too few bytes ([`crate::Class::InvalidBinary`]).
pub fn contains_in_slices<E: From<Error>, B: AsRef<[u8]>>(
    header: &Header<'_>,
    hash: u64,
    read: impl FnMut(usize, usize) -> std::result::Result<B, E>,
) -> std::result::Result<bool, E> {
    ask_block(header, hash, read, |block| counters::block_contains(block, header.shape(), hash))
}

/// Returns how many copies of the element with this hash are in a stored filter, as
/// [`Counting::count`] does. Only the bytes that are needed are read: `read(from, length)` returns
/// `length` bytes of the filter, from offset `from` on.
///
/// Fails if `read` does, or if it returns too few bytes ([`crate::Class::InvalidBinary`]).
pub fn count_in_slices<E: From<Error>, B: AsRef<[u8]>>(
    header: &Header<'_>,
    hash: u64,
    read: impl FnMut(usize, usize) -> std::result::Result<B, E>,
) -> std::result::Result<u8, E> {
    ask_block(header, hash, read, |block| counters::block_count(block, header.shape(), hash))
}

/// Reads the one block of a stored counting filter that has all counters of the element with this
/// hash, and returns what `ask` returns for the block. A filter of no size has no elements and no
/// blocks: then nothing is read, and the result is the default, false or 0.
///
/// `read(from, length)` must return `length` bytes of the stored filter, from offset `from` on.
///
/// Fails if `read` does, or if it returns too few bytes ([`crate::Class::InvalidBinary`]).
fn ask_block<T: Default, E: From<Error>, B: AsRef<[u8]>>(
    header: &Header<'_>,
    hash: u64,
    mut read: impl FnMut(usize, usize) -> std::result::Result<B, E>,
    ask: impl FnOnce(&[u8; BLOCK_BYTES]) -> T,
) -> std::result::Result<T, E> {
    if header.is_unsized() {
        return Ok(T::default());
    }
    let block_number = header.shape().block_of(hash) as usize;
    let from = header.prefix_bytes() + block_number * BLOCK_BYTES;
    let bytes = read(from, BLOCK_BYTES)?;
    let block = bytes.as_ref().try_into().map_err(|_| damaged("it is cut off"))?;
    Ok(ask(block))
}

impl<'a> Counting<'a> {
    /// Reads a stored filter, and checks all of its counters.
    ///
    /// Fails if this module writes no such value ([`crate::Class::InvalidBinary`]).
    pub fn parse(bytes: &'a [u8]) -> Result<Counting<'a>> {
        let filter = Counting::parse_trusted(bytes)?;
        let is_empty = interrupt::all_are_zero(filter.counters);
        require(is_empty || !filter.header.kind.is_none(), || {
            "counters without a key kind are not 0".into()
        })?;
        require(!is_empty || filter.header.kind.is_none(), || {
            "all counters are 0, but there is a key kind".into()
        })?;
        Ok(filter)
    }

    /// Reads a stored filter that [`Counting::parse`] accepted before, without the check of all its
    /// counters, which takes time that grows with the filter.
    ///
    /// Other bytes can give wrong answers, but nothing worse. Fails as [`parse_start`] does.
    pub fn parse_trusted(bytes: &'a [u8]) -> Result<Counting<'a>> {
        let header = parse_start(bytes, bytes.len())?;
        Ok(Counting { header, counters: &bytes[header.prefix_bytes()..] })
    }

    /// Returns whether the element with this hash may be in the filter.
    #[inline]
    pub fn contains(&self, hash: u64) -> bool {
        !self.header.is_unsized() && counters::contains(self.counters, self.header.shape(), hash)
    }

    /// Returns how many copies of the element with this hash are in the filter: at least as many as
    /// were added and not removed. A counter has four bits, so 15 stands for 15 or more.
    ///
    /// The number may be too high, since other elements share counters with this one. The
    /// probability of that is about the false positive rate of the filter.
    pub fn count(&self, hash: u64) -> u8 {
        if self.header.is_unsized() {
            return 0;
        }
        counters::count(self.counters, self.header.shape(), hash)
    }

    /// Requests the memory that [`Counting::contains`] reads for this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if !self.header.is_unsized() {
            counters::prefetch(self.counters, self.header.shape(), hash);
        }
    }

    /// Returns the stored form of the filter with one more copy of each of these elements, given by
    /// their hashes and their kind. Without elements it is a copy of the filter, and the kind is
    /// ignored.
    ///
    /// Fails if the filter has elements of another kind ([`crate::Class::KindMismatch`]), and if it
    /// has no size ([`InvalidParameter::NoCountersYet`]).
    pub fn add<B: Buffer>(&self, kind: Kind<'_>, hashes: &[u64]) -> Result<B> {
        if hashes.is_empty() {
            return Ok(self.to_buffer());
        }

        let kind = unify_with_element(self.header.kind, kind)?;
        let header = Header { kind, ..self.header };
        if header.is_unsized() {
            return Err(InvalidParameter::NoCountersYet.into());
        }
        let mut value: B = self.copy(&header);
        add_all(payload_mut(&mut value, &header), &header, hashes);
        Ok(value)
    }

    /// Returns the stored form of the filter with one copy less of each of these elements, given by
    /// their hashes. Returns `None` if it has none of them, so that nothing changes.
    ///
    /// Elements are removed one after the other, and each only if it seems to be in the filter by
    /// then. If nothing is left, the result is an empty filter without a key kind.
    pub fn remove<B: Buffer>(&self, hashes: &[u64]) -> Option<B> {
        // Removing lowers counters. So if none of the elements is in the filter now, none will be
        // after others are removed.
        if !hashes.iter().any(|&hash| self.contains(hash)) {
            return None;
        }
        let header = &self.header;
        let mut value: B = self.copy(header);
        let payload = payload_mut(&mut value, header);
        for &hash in interrupt::cancellable(hashes.iter()) {
            counters::remove(payload, header.shape(), hash);
        }

        let is_empty = interrupt::all_are_zero(payload);
        // A filter without elements has no kind.
        Some(if is_empty { empty(header) } else { value })
    }

    /// Returns a copy of the stored form.
    pub fn to_buffer<B: Buffer>(&self) -> B {
        self.copy(&self.header)
    }

    /// Returns the same counters in a value with another header, which must have the same number of
    /// blocks.
    fn copy<B: Buffer>(&self, header: &Header<'_>) -> B {
        let mut value: B = zeroed(header);
        interrupt::copy(payload_mut(&mut value, header), self.counters);
        value
    }

    /// Calls `use_view` with the `bloom` filter of the elements, and returns its result. That
    /// filter is sparse if there are none.
    pub fn with_bits<T>(&self, use_view: impl FnOnce(&View<'_>) -> T) -> T {
        if self.header.kind.is_none() {
            return use_view(&View { header: self.header, body: Body::Sparse(&[]) });
        }
        let mut bits = List::zeroed(self.header.payload_bytes() as usize);
        counters::to_bits(self.counters, &mut bits);
        use_view(&View { header: self.header, body: Body::Dense(&bits) })
    }

    /// Returns the `bloom` filter of the elements: dense, and equal to one built from them, unless
    /// a counter is saturated. Without elements it is the empty filter, which is sparse.
    pub fn to_bloom<B: Buffer>(&self) -> B {
        self.with_bits(|view| view.to_buffer())
    }

    /// Returns the estimated number of distinct elements; infinite if no counter is zero.
    pub fn cardinality(&self) -> f64 {
        self.with_bits(estimate::cardinality)
    }

    /// Returns figures that describe the filter: counts of its counters, and estimates of its
    /// elements, of their copies, and of its false positive rate. Reads all counters.
    pub fn info(&self) -> CountingInfo {
        let tally = counters::tally(self.counters);
        let (cardinality, current_fpr) =
            self.with_bits(|view| (estimate::cardinality(view), estimate::current_fpr(view)));
        // A copy of an element adds one to each of its counters, unless a counter is saturated.
        let copies = match tally {
            Tally { total: 0, .. } => Some(0.0),
            Tally { saturated: 0, total, .. } => Some(total as f64 / self.counters_of_element()),
            _ => None,
        };
        CountingInfo {
            num_counters: self.header.blocks * BLOCK_COUNTERS,
            tally,
            cardinality,
            copies,
            current_fpr,
        }
    }

    /// Returns the mean number of different counters that an element has.
    ///
    /// Each of its k hashes chooses one of the 512 counters of a block. A counter is chosen by none
    /// of them with a probability of (1 − 1/512)^k, so the mean is 512 · (1 − (1 − 1/512)^k). The
    /// power is computed as an exponential, which loses no digits near 1.
    fn counters_of_element(&self) -> f64 {
        let counters_of_block = BLOCK_COUNTERS as f64;
        let logarithm = f64::from(self.header.num_hashes) * (-1.0 / counters_of_block).ln_1p();
        counters_of_block * -logarithm.exp_m1()
    }
}

/// Adds one more copy of each of these elements to the counters of a filter with this header, which
/// has a size.
pub fn add_all(payload: &mut [u8], header: &Header<'_>, hashes: &[u64]) {
    for &hash in interrupt::cancellable(hashes.iter()) {
        counters::add(payload, header.shape(), hash);
    }
}

/// Returns the header of the sum of two counting filters, which has all copies of the elements of
/// both. Counters can only be added one by one, so both filters must have equally many, or one of
/// them has no size, and so no elements.
///
/// Fails if they have elements of different kinds ([`crate::Class::KindMismatch`]), and if they
/// have different numbers of hashes or counters ([`InvalidParameter::Mismatch`]).
pub fn summed_header<'a>(a: &Header<'a>, b: &Header<'a>) -> Result<Header<'a>> {
    let sizes_differ = a.blocks != b.blocks && !a.is_unsized() && !b.is_unsized();
    if sizes_differ && a.num_hashes == b.num_hashes && a.kind.unify(b.kind).is_some() {
        return Err(cannot_merge(a, b, Mismatch::Counters));
    }
    let merged = merged_header(a, b)?;
    // Counters are never folded or spread, so the base blocks of a counting filter are all blocks.
    Ok(Header { base_blocks: merged.blocks, ..merged })
}

/// Returns the sum of two filters, which has all copies of the elements of both. Fails as
/// [`summed_header`] does.
pub fn sum<B: Buffer>(a: &Counting<'_>, b: &Counting<'_>) -> Result<B> {
    let header = summed_header(&a.header, &b.header)?;
    let mut value: B = zeroed(&header);
    let payload = payload_mut(&mut value, &header);
    counters::sum_into(payload, a.counters);
    counters::sum_into(payload, b.counters);
    Ok(value)
}

#[cfg(test)]
mod tests;
