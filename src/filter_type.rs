//! All that tells the type `counting_bloom` from the type `bloom`: for input, probing, warnings,
//! and the planner.

use crate::pg::call::{Call, Result};
use pg_bloom_core::counting::{self, Counting};
use pg_bloom_core::filter::{build, slices};
use pg_bloom_core::{Body, Header, View};
use std::ffi::CStr;
use std::ops::Range;

/// One type of filters or the other.
#[derive(Clone, Copy)]
pub enum FilterType {
    Bloom,
    CountingBloom,
}

impl FilterType {
    /// Returns the name of the type in SQL.
    pub fn name(self) -> &'static CStr {
        match self {
            FilterType::Bloom => c"bloom",
            FilterType::CountingBloom => c"counting_bloom",
        }
    }

    /// Returns the name of the function that probes such filters, for messages.
    pub fn contains(self) -> &'static str {
        match self {
            FilterType::Bloom => "bloom_contains",
            FilterType::CountingBloom => "counting_bloom_contains",
        }
    }

    /// Checks that bytes from outside are a value of the type. Fails with 22P03 if they aren't.
    pub fn check(self, bytes: &[u8]) -> pg_bloom_core::Result<()> {
        match self {
            FilterType::Bloom => View::parse(bytes).map(drop),
            FilterType::CountingBloom => Counting::parse(bytes).map(drop),
        }
    }

    /// Reads a whole value that was stored, and so was checked before. Fails with 22P03 if it is
    /// damaged.
    pub fn whole(self, bytes: &[u8]) -> pg_bloom_core::Result<Whole<'_>> {
        match self {
            FilterType::Bloom => View::parse_trusted(bytes).map(Whole::Bits),
            FilterType::CountingBloom => Counting::parse_trusted(bytes).map(Whole::Counters),
        }
    }

    /// Parses the start of a stored filter, all of which has `length` bytes, so that its bits can
    /// then be read in slices. Fails with 22P03 if it is damaged.
    pub fn start(self, bytes: &[u8], length: usize) -> pg_bloom_core::Result<Start<'_>> {
        match self {
            FilterType::Bloom => slices::FilterStart::parse(bytes, length).map(Start::Bits),
            FilterType::CountingBloom => counting::parse_start(bytes, length).map(Start::Counters),
        }
    }
}

/// A filter, all of which is in memory.
#[derive(Clone, Copy)]
pub enum Whole<'a> {
    Bits(View<'a>),
    Counters(Counting<'a>),
}

impl<'a> Whole<'a> {
    /// Returns the header of the filter.
    #[inline(always)]
    pub fn header(&self) -> &Header<'a> {
        match self {
            Whole::Bits(view) => &view.header,
            Whole::Counters(counting) => &counting.header,
        }
    }

    /// Returns whether the element with this hash may be in the filter.
    #[inline(always)]
    pub fn contains(&self, hash: u64) -> bool {
        match self {
            Whole::Bits(view) => build::contains(view, hash),
            Whole::Counters(counting) => counting.contains(hash),
        }
    }

    /// Returns how many copies of the element with this hash are in it, as
    /// [`Counting::count`] does. Bits count one copy.
    pub fn count(&self, hash: u64) -> u8 {
        match self {
            Whole::Bits(view) => u8::from(build::contains(view, hash)),
            Whole::Counters(counting) => counting.count(hash),
        }
    }

    /// Prefetches the memory that [`Whole::contains`] needs.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        match self {
            Whole::Bits(view) => build::prefetch(view, hash),
            Whole::Counters(counting) => counting.prefetch(hash),
        }
    }

    /// Returns the size of the bits or counters that probes read, each in places of its own; 0 for
    /// a list of hashes, which is searched.
    pub fn probed_bytes(&self) -> usize {
        match self {
            Whole::Bits(View { body: Body::Dense(bits), .. }) => bits.len(),
            Whole::Bits(View { body: Body::Sparse(_), .. }) => 0,
            Whole::Counters(counting) => counting.counters.len(),
        }
    }

    /// Returns what `use_view` returns for the filter, with a bit for each counter that isn't 0.
    pub fn with_bits<T>(&self, use_view: impl FnOnce(&View<'_>) -> T) -> T {
        match self {
            Whole::Bits(view) => use_view(view),
            Whole::Counters(counting) => counting.with_bits(use_view),
        }
    }
}

/// The start of a filter, of which slices are read.
pub enum Start<'a> {
    Bits(slices::FilterStart<'a>),
    Counters(Header<'a>),
}

impl<'a> Start<'a> {
    /// Returns the header of the filter.
    pub fn header(&self) -> &Header<'a> {
        match self {
            Start::Bits(start) => &start.header,
            Start::Counters(header) => header,
        }
    }

    /// Returns whether the element with this hash may be in the filter; `false` is certain. Reads
    /// only the slices of the filter that have the element's bits: `read` returns a slice of the
    /// stored bytes, given its offset and its length.
    ///
    /// Fails with 22P03 if the value is damaged, and if `read` fails.
    pub fn contains<B: AsRef<[u8]>>(
        &self,
        hash: u64,
        read: impl FnMut(usize, usize) -> Result<B>,
    ) -> Result<bool> {
        match self {
            Start::Bits(start) => start.contains(hash, read),
            Start::Counters(header) => counting::contains_in_slices(header, hash, read),
        }
    }

    /// Returns which bytes of the stored filter [`Start::contains`] reads first for an element with
    /// this hash; `None` if it reads nothing.
    pub fn first_slice(&self, hash: u64) -> Option<Range<usize>> {
        let mut first = None;
        let probe = self.contains(hash, |from, length| {
            first = Some(from..from + length);
            Ok([])
        });
        // The probe ends here, as it was given fewer bytes than it wanted.
        drop(probe);
        first
    }

    /// Returns how many copies of the element with this hash are in the filter: at least as many as
    /// were added and not removed; at most 1 if the filter has bits instead of counters. `read`
    /// returns a slice of the stored bytes, given its offset and its length.
    ///
    /// Fails with 22P03 if the value is damaged, and if `read` fails.
    pub fn count<B: AsRef<[u8]>>(
        &self,
        hash: u64,
        read: impl FnMut(usize, usize) -> Result<B>,
    ) -> Result<u8> {
        match self {
            Start::Bits(start) => start.contains(hash, read).map(u8::from),
            Start::Counters(header) => counting::count_in_slices(header, hash, read),
        }
    }
}

/// Returns argument `i`, a `bloom`; `None` for NULL. Fails with 22P03 if the value is damaged.
pub fn bloom(call: &Call, i: usize) -> Result<Option<View<'_>>> {
    Ok(call
        .value(i)
        .map(|value| View::parse_trusted(value.into_bytes()))
        .transpose()?)
}

/// Returns argument `i`, a `counting_bloom`; `None` for NULL. Fails with 22P03 if the value is
/// damaged.
pub fn counting_bloom(call: &Call, i: usize) -> Result<Option<Counting<'_>>> {
    Ok(call
        .value(i)
        .map(|value| Counting::parse_trusted(value.into_bytes()))
        .transpose()?)
}
