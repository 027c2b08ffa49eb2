//! All that tells the type `counting_bloom` from the type `bloom`: for input, asking, warnings, and the planner.

use crate::pg::call::{Call, Result};
use pg_bloom_core::counting::{self, Counting};
use pg_bloom_core::filter::build;
use pg_bloom_core::filter::slices::Start;
use pg_bloom_core::{Header, View};
use std::ffi::CStr;

/// What tells one type of filters from the other.
pub trait FilterType: 'static {
    /// Its SQL name.
    const NAME: &'static CStr;
    /// The function that asks it, for messages.
    const CONTAINS: &'static str;
    type Whole<'a>: Copy;
    type Start<'a>: Copy;

    /// Checks that bytes from outside are a value. Errors: 22P03 for others.
    fn check(bytes: &[u8]) -> pg_bloom_core::Result<()>;

    /// Reads a whole value that was stored, and so was checked before. Errors: 22P03 for a damaged one.
    fn whole(bytes: &[u8]) -> pg_bloom_core::Result<Self::Whole<'_>>;

    /// Reads the start of a value of `length` bytes. Errors: 22P03 for a damaged one.
    fn start(bytes: &[u8], length: usize) -> pg_bloom_core::Result<Self::Start<'_>>;

    /// The same value for as long as it is borrowed.
    fn shorter<'s, 'l: 's>(whole: &'s Self::Whole<'l>) -> &'s Self::Whole<'s>;

    fn header<'v>(whole: &'v Self::Whole<'_>) -> &'v Header<'v>;

    fn start_header<'v>(start: &'v Self::Start<'_>) -> &'v Header<'v>;

    /// Whether the element with this hash may be in a whole value.
    fn contains(whole: &Self::Whole<'_>, hash: u64) -> bool;

    /// Prefetches the memory that [`FilterType::contains`] needs.
    fn prefetch(whole: &Self::Whole<'_>, hash: u64);

    /// Whether the element may be in a value of which `read` reads slices. Errors: 22P03 for a damaged value.
    fn contains_in_slices<B: AsRef<[u8]>>(
        start: &Self::Start<'_>,
        hash: u64,
        read: impl FnMut(usize, usize) -> Result<B>,
    ) -> Result<bool>;

    /// What `use_view` makes of the bits of its elements.
    fn with_bits<T>(whole: &Self::Whole<'_>, use_view: impl FnOnce(&View<'_>) -> T) -> T;
}

pub enum Bloom {}

impl FilterType for Bloom {
    const NAME: &'static CStr = c"bloom";
    const CONTAINS: &'static str = "bloom_contains";
    type Whole<'a> = View<'a>;
    type Start<'a> = Start<'a>;

    fn check(bytes: &[u8]) -> pg_bloom_core::Result<()> {
        View::parse(bytes).map(drop)
    }

    fn whole(bytes: &[u8]) -> pg_bloom_core::Result<View<'_>> {
        View::parse_trusted(bytes)
    }

    fn start(bytes: &[u8], length: usize) -> pg_bloom_core::Result<Start<'_>> {
        Start::parse(bytes, length)
    }

    #[inline(always)]
    fn shorter<'s, 'l: 's>(whole: &'s View<'l>) -> &'s View<'s> {
        whole
    }

    #[inline(always)]
    fn header<'v>(whole: &'v View<'_>) -> &'v Header<'v> {
        &whole.header
    }

    fn start_header<'v>(start: &'v Start<'_>) -> &'v Header<'v> {
        &start.header
    }

    #[inline(always)]
    fn contains(whole: &View<'_>, hash: u64) -> bool {
        build::contains(whole, hash)
    }

    #[inline(always)]
    fn prefetch(whole: &View<'_>, hash: u64) {
        build::prefetch(whole, hash);
    }

    fn contains_in_slices<B: AsRef<[u8]>>(
        start: &Start<'_>,
        hash: u64,
        read: impl FnMut(usize, usize) -> Result<B>,
    ) -> Result<bool> {
        start.contains(hash, read)
    }

    fn with_bits<T>(whole: &View<'_>, use_view: impl FnOnce(&View<'_>) -> T) -> T {
        use_view(whole)
    }
}

pub enum CountingBloom {}

impl FilterType for CountingBloom {
    const NAME: &'static CStr = c"counting_bloom";
    const CONTAINS: &'static str = "counting_bloom_contains";
    type Whole<'a> = Counting<'a>;
    type Start<'a> = Header<'a>;

    fn check(bytes: &[u8]) -> pg_bloom_core::Result<()> {
        Counting::parse(bytes).map(drop)
    }

    fn whole(bytes: &[u8]) -> pg_bloom_core::Result<Counting<'_>> {
        Counting::parse_trusted(bytes)
    }

    fn start(bytes: &[u8], length: usize) -> pg_bloom_core::Result<Header<'_>> {
        counting::parse_start(bytes, length)
    }

    #[inline(always)]
    fn shorter<'s, 'l: 's>(whole: &'s Counting<'l>) -> &'s Counting<'s> {
        whole
    }

    fn header<'v>(whole: &'v Counting<'_>) -> &'v Header<'v> {
        &whole.header
    }

    fn start_header<'v>(start: &'v Header<'_>) -> &'v Header<'v> {
        start
    }

    fn contains(whole: &Counting<'_>, hash: u64) -> bool {
        whole.contains(hash)
    }

    fn prefetch(whole: &Counting<'_>, hash: u64) {
        whole.prefetch(hash);
    }

    fn contains_in_slices<B: AsRef<[u8]>>(
        start: &Header<'_>,
        hash: u64,
        read: impl FnMut(usize, usize) -> Result<B>,
    ) -> Result<bool> {
        counting::contains_in_slices(start, hash, read)
    }

    fn with_bits<T>(whole: &Counting<'_>, use_view: impl FnOnce(&View<'_>) -> T) -> T {
        whole.with_bits(use_view)
    }
}

/// Argument `i`, a filter, whole; `None` when it is NULL. Errors: 22P03 for a damaged one.
#[inline(always)]
pub fn argument<T: FilterType>(call: &Call, i: usize) -> Result<Option<T::Whole<'_>>> {
    Ok(call.value(i).map(|value| T::whole(value.into_bytes())).transpose()?)
}
