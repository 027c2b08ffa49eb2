//! What tells the type `counting_bloom` from the type `bloom`.

use crate::pg::error::Result;
use pg_bloom_core::counting::{self, Counting};
use pg_bloom_core::filter::build;
use pg_bloom_core::filter::slices::Start;
use pg_bloom_core::{Header, View};

/// What tells one type of filters from the other.
pub trait FilterType {
    /// What asks it, for messages.
    const OPERATION: &'static str;
    /// A whole value.
    type Whole<'a>: Copy;
    /// The start of a value.
    type Start<'a>: Copy;

    /// Reads a whole value.
    ///
    /// # Errors
    /// 22P03 for a damaged one.
    fn whole(bytes: &[u8]) -> pg_bloom_core::Result<Self::Whole<'_>>;

    /// Reads the start of a value of `length` bytes.
    ///
    /// # Errors
    /// 22P03 for a damaged one.
    fn start(bytes: &[u8], length: usize) -> pg_bloom_core::Result<Self::Start<'_>>;

    /// What a whole value is.
    fn header<'v>(whole: &'v Self::Whole<'_>) -> &'v Header<'v>;

    /// What a value is by its start.
    fn start_header<'v>(start: &'v Self::Start<'_>) -> &'v Header<'v>;

    /// Whether the element with this hash may be in a whole value.
    fn contains(whole: &Self::Whole<'_>, hash: u64) -> bool;

    /// Asks for the memory that [`FilterType::contains`] needs.
    fn prefetch(whole: &Self::Whole<'_>, hash: u64);

    /// Whether the element may be in a value of which `read` reads slices.
    ///
    /// # Errors
    /// 22P03 for a damaged value.
    fn contains_in_slices<B: AsRef<[u8]>>(
        start: &Self::Start<'_>,
        hash: u64,
        read: impl FnMut(usize, usize) -> Result<B>,
    ) -> Result<bool>;
}

/// Values of type `bloom`.
pub enum Bloom {}

impl FilterType for Bloom {
    const OPERATION: &'static str = "bloom_contains";
    type Whole<'a> = View<'a>;
    type Start<'a> = Start<'a>;

    fn whole(bytes: &[u8]) -> pg_bloom_core::Result<View<'_>> {
        View::parse_trusted(bytes)
    }

    fn start(bytes: &[u8], length: usize) -> pg_bloom_core::Result<Start<'_>> {
        Start::parse(bytes, length)
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
}

/// Values of type `counting_bloom`.
pub enum CountingBloom {}

impl FilterType for CountingBloom {
    const OPERATION: &'static str = "counting_bloom_contains";
    type Whole<'a> = Counting<'a>;
    type Start<'a> = Header<'a>;

    fn whole(bytes: &[u8]) -> pg_bloom_core::Result<Counting<'_>> {
        Counting::parse_trusted(bytes)
    }

    fn start(bytes: &[u8], length: usize) -> pg_bloom_core::Result<Header<'_>> {
        counting::parse_start(bytes, length)
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
}
