//! Filters that a call site probes, remembered between its calls. Most are stored out of line
//! (TOAST).
//!
//! ```text
//! first probe ──▶ start of the value ──▶ slices with the bits of each element ──▶ the whole value
//!                 (all of a short one)   until they have cost as much as
//! ```
//!
//! Example: a filter of 12 MB is fetched whole by its 3,000th probe or so, since each slice costs
//! as much as 4 kB of the whole. A query that probes the filter for one row reads two slices.
//!
//! A value out of line is known by its TOAST identity: a value that is updated gets another one.
//! Only bytes are kept, in the memory of the call site; a few filters at a time, and of large ones
//! only the last.

use crate::element::Hasher;
use crate::filter_type::{FilterType, Start, Whole};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::{Call, Result, SqlValue};
use crate::pg::memory;
use crate::pg::storage::announce::pages_read_from_disk;
use crate::pg::value::chunks::announce_slices;
use crate::pg::value::toast::{Identity, external, fetch_pieces, is_compressed, slice};
use crate::pg::value::varlena::Value;
use pg_bloom_core::Header;
use pg_bloom_core::filter::slices::START_BYTES;
use pg_bloom_core::memory::List;
use pgrx::pg_sys;

/// How many filters a call site remembers.
const MOST_FILTERS: usize = 4;
/// The most bytes of all filters that a call site remembers. A single one may have more.
const MOST_BYTES: usize = 64 << 20;
/// Values up to this many bytes are fetched whole at once: a slice takes as long.
const SHORT_BYTES: usize = 16 << 10;
/// So many bytes of a whole value take as long to fetch as one slice does: of 12 MB, a slice took
/// 2.4 µs and the whole 4.5 to 7 ms, so 4 to 6.5 kB.
const BYTES_PER_SLICE: usize = 4 << 10;
/// How many elements have the memory for their probes prefetched together, or their pages announced.
const MOST_AT_ONCE: usize = 32;
/// From this size of a filter on, pages are announced. Linux reads 128 kB ahead by itself, so a
/// smaller filter is in its cache after one or two reads.
const LEAST_BYTES_ANNOUNCED: usize = 128 << 10;

/// The filters that a call site remembers.
pub struct FilterCache {
    filter_type: FilterType,
    filters: [Option<CachedFilter>; MOST_FILTERS],
    /// The place of the filter that was probed last.
    last: usize,
}

/// A filter that is stored out of line.
struct CachedFilter {
    identity: Identity,
    /// Bytes of the value.
    length: usize,
    /// The start of the value or, if that is short or compressed, all of it: in the memory of the
    /// call site until it is freed.
    fetched: Value<'static>,
    /// Memory for all of the value, if it is fetched later than its start.
    whole_memory: Option<WholeMemory>,
    /// How many slices were fetched, the start included.
    slices: usize,
    /// What the whole value is: borrowed from the bytes above, which are freed together with it.
    whole: Option<Whole<'static>>,
    /// How elements are hashed for this filter, once that is known.
    hasher: Option<Hasher>,
}

/// Memory in which a filter's bits are aligned to the lines of the processor's cache.
#[derive(Clone, Copy)]
struct WholeMemory {
    /// What was allocated.
    allocated: *mut u8,
    /// The first byte of the value in this memory.
    first: *mut u8,
}

/// A filter that a call probes.
pub enum ProbedFilter<'a> {
    Whole(Whole<'a>),
    Slices(FilterInSlices<'a>),
}

/// A filter of which only the start was fetched.
pub struct FilterInSlices<'a> {
    start: Start<'a>,
    /// The value out of line: an argument of the call.
    value: *mut pg_sys::varlena,
    identity: Identity,
    /// Bytes of the value.
    length: usize,
    /// How many slices were fetched so far, by this call and others.
    slices: &'a mut usize,
    /// Whether the last probe by this call had to read pages from disk.
    is_on_disk: bool,
}

impl ProbedFilter<'_> {
    /// Returns the header of the filter.
    #[inline(always)]
    pub fn header(&self) -> &Header<'_> {
        match self {
            ProbedFilter::Whole(whole) => whole.header(),
            ProbedFilter::Slices(filter) => filter.start.header(),
        }
    }

    /// Probes the filter for each of these elements, and returns in their order whether it may be
    /// in the filter. If `until` is given, the list ends with the first answer that equals it, as
    /// the caller needs no others.
    ///
    /// Can be cancelled between two elements. Fails with 22P03 for a damaged filter.
    ///
    /// # Safety
    /// The elements must be of the type that the hasher was made for.
    pub unsafe fn contains_each(
        &mut self,
        hasher: &Hasher,
        elements: &[SqlValue],
        until: Option<bool>,
    ) -> Result<List<bool>> {
        let mut answers = List::with_capacity(elements.len());
        for group in elements.chunks(MOST_AT_ONCE) {
            // The processor fetches the memory for all of a group while their probes begin.
            let mut hashes = [None; MOST_AT_ONCE];
            for (hash, &element) in hashes.iter_mut().zip(group) {
                // SAFETY: the caller promises elements of the hasher's type.
                *hash = unsafe { hasher.hash(element) };
                if let (ProbedFilter::Whole(whole), Some(hash)) = (&*self, *hash) {
                    whole.prefetch(hash);
                }
            }

            let hashes = &hashes[..group.len()];
            let mut is_announced = false;
            for (i, &hash) in hashes.iter().enumerate() {
                check_for_interrupts();
                // As soon as one slice had to be read from disk, those of the rest of the group
                // are announced. In memory, that would take time and save none.
                if let ProbedFilter::Slices(filter) = self
                    && filter.is_on_disk
                    && !is_announced
                {
                    filter.announce(&hashes[i..]);
                    is_announced = true;
                }
                let answer = self.contains(hash)?;
                answers.push(answer);
                if until == Some(answer) {
                    return Ok(answers);
                }
            }
        }
        Ok(answers)
    }

    /// Returns whether the element with this hash may be in the filter. `None` is the hash of an
    /// element that no filter of this kind can have, and gives false.
    ///
    /// If only the start of the filter was fetched, this reads the few bytes that it needs from the
    /// TOAST table. Fails with 22P03 for a damaged filter.
    #[inline(always)]
    pub fn contains(&mut self, hash: Option<u64>) -> Result<bool> {
        let Some(hash) = hash else {
            return Ok(false);
        };
        match self {
            ProbedFilter::Whole(whole) => Ok(whole.contains(hash)),
            ProbedFilter::Slices(filter) => filter.contains(hash),
        }
    }

    /// Returns how many copies of the element with this hash are in the filter. `None` is the hash
    /// of an element that no filter of this kind can have, and gives 0.
    ///
    /// If only the start of the filter was fetched, this reads the few bytes that it needs from the
    /// TOAST table. Fails with 22P03 for a damaged filter.
    pub fn count(&mut self, hash: Option<u64>) -> Result<u8> {
        let Some(hash) = hash else {
            return Ok(0);
        };
        match self {
            ProbedFilter::Whole(whole) => Ok(whole.count(hash)),
            ProbedFilter::Slices(FilterInSlices { start, value, slices, .. }) => {
                // SAFETY: the value is out of line.
                start
                    .count(hash, |from, length| unsafe { read_slice(*value, slices, from, length) })
            }
        }
    }
}

impl FilterInSlices<'_> {
    /// Returns whether the element with this hash may be in the filter. Notes whether this has read
    /// from disk. Fails with 22P03 for a damaged filter.
    fn contains(&mut self, hash: u64) -> Result<bool> {
        let FilterInSlices { start, value, slices, .. } = self;
        let read_before = pages_read_from_disk();
        // SAFETY: the value is out of line.
        let answer = start
            .contains(hash, |from, length| unsafe { read_slice(*value, slices, from, length) })?;
        self.is_on_disk = pages_read_from_disk() > read_before;
        Ok(answer)
    }

    /// Announces the slices that probes for these hashes will read: asks the operating system to
    /// read them from disk, all together, since a disk takes as long for several pages as for one.
    /// Where a probe may read several slices, as in layout `classic`, only the first one is
    /// announced. Does nothing for a filter of few pages, and if `effective_io_concurrency` is 0.
    fn announce(&self, hashes: &[Option<u64>]) {
        if self.length >= LEAST_BYTES_ANNOUNCED {
            let slices = hashes
                .iter()
                .flatten()
                .filter_map(|&hash| self.start.first_slice(hash));
            announce_slices(&self.identity, slices);
        }
    }
}

/// Reads `length` bytes, from byte `from` on, of a value in the TOAST table, and adds 1 to
/// `slices`, the number of such reads.
///
/// # Safety
/// The pointer must be that of a value out of line.
unsafe fn read_slice(
    value: *mut pg_sys::varlena,
    slices: &mut usize,
    from: usize,
    length: usize,
) -> Result<Value<'static>> {
    *slices += 1;
    // SAFETY: the caller promises a value out of line; the slice is a copy.
    Ok(unsafe { Value::owned(slice(value, from, length)?) })
}

impl FilterCache {
    /// Makes a cache without filters.
    ///
    /// # Safety
    /// A call site must remember the cache, by [`Call::remembered`], and only calls of that site
    /// use it: its filters are in the memory of the site.
    pub unsafe fn new(filter_type: FilterType) -> Self {
        FilterCache { filter_type, filters: std::array::from_fn(|_| None), last: 0 }
    }

    /// Returns the filter in argument `i` of the call, which the caller will probe `num_probes`
    /// times; `None` if the argument is NULL.
    ///
    /// A filter that is stored out of line (TOAST) is either fetched whole, and kept in this cache,
    /// or only its start is fetched, and each probe reads a *slice*, the few bytes that it needs.
    /// It is fetched whole as soon as its slices, those of earlier calls included, would take as
    /// long as the whole.
    ///
    /// Fails with 22P03 for a damaged filter.
    pub fn filter<'a>(
        &'a mut self,
        call: &'a Call,
        i: usize,
        num_probes: usize,
    ) -> Result<Option<ProbedFilter<'a>>> {
        let Some(datum) = call.datum(i) else {
            return Ok(None);
        };
        // Only a value that is stored out of line has an identity. All of any other value is in the
        // argument already, so there is nothing to fetch or to keep.
        let Some(identity) = call.identity(i) else {
            return self.filter_in_argument(call, i);
        };

        // From here on, this filter is the last one of the cache.
        if !self.has_at(self.last, identity) {
            self.make_last(call, datum, identity)?;
        }
        if self.last_cached().is_worth_fetching_whole(num_probes) {
            self.fetch_whole(call, datum)?;
        }

        let filter_type = self.filter_type;
        let cached = self.last_cached();
        if let Some(whole) = cached.whole {
            return Ok(Some(ProbedFilter::Whole(whole)));
        }
        Ok(Some(ProbedFilter::Slices(FilterInSlices {
            start: filter_type.start(cached.fetched.bytes(), cached.length)?,
            value: datum.cast_mut_ptr(),
            identity,
            length: cached.length,
            slices: &mut cached.slices,
            is_on_disk: false,
        })))
    }

    /// Returns the filter in argument `i` of the call, a value that isn't stored out of line.
    /// `None` if the argument is NULL. Fails with 22P03 for a damaged filter.
    fn filter_in_argument<'a>(&self, call: &'a Call, i: usize) -> Result<Option<ProbedFilter<'a>>> {
        let Some(value) = call.value(i) else {
            return Ok(None);
        };
        let whole = self.filter_type.whole(value.into_bytes())?;
        Ok(Some(ProbedFilter::Whole(whole)))
    }

    /// Returns the filter in argument `i` and how elements are hashed for it, if nothing must be
    /// fetched or found out: the filter was probed last, is in this cache as a whole, and
    /// [`FilterCache::remember_hasher`] was called for it. This holds for most rows of a scan.
    /// `None` if the caller must use [`FilterCache::filter`].
    #[inline(always)]
    pub fn last_whole(&self, call: &Call, i: usize) -> Option<(&Whole<'_>, &Hasher)> {
        let identity = call.identity(i)?;
        let cached = self.filters[self.last]
            .as_ref()
            .filter(|cached| cached.identity == identity)?;
        Some((cached.whole.as_ref()?, cached.hasher.as_ref()?))
    }

    /// Remembers how elements are hashed for the filter that was probed last.
    pub fn remember_hasher(&mut self, hasher: Hasher) {
        if let Some(cached) = self.filters[self.last].as_mut() {
            cached.hasher = Some(hasher);
        }
    }

    /// Returns the filter that was probed last. Panics if no filter was.
    fn last_cached(&mut self) -> &mut CachedFilter {
        self.filters[self.last].as_mut().expect("the last filter is there")
    }

    /// Returns whether the filter with this identity is at a place of the cache.
    fn has_at(&self, place: usize, identity: Identity) -> bool {
        self.filters[place]
            .as_ref()
            .is_some_and(|cached| cached.identity == identity)
    }

    /// Makes the filter in `datum`, which is out of line and has this identity, the last one of the
    /// cache. If the cache doesn't have the filter, fetches its start, or all of a short filter,
    /// and keeps it in place of another one: the places of the cache are used in turn.
    ///
    /// Fails with 22P03 for a damaged filter.
    #[inline(never)]
    fn make_last(&mut self, call: &Call, datum: pg_sys::Datum, identity: Identity) -> Result<()> {
        if let Some(found) = (0..MOST_FILTERS).find(|&place| self.has_at(place, identity)) {
            self.last = found;
            return Ok(());
        }
        self.last = (self.last + 1) % MOST_FILTERS;
        self.forget(self.last);
        // SAFETY: the datum is a value out of line, as it has an identity.
        let cached = unsafe { CachedFilter::fetch(call, self.filter_type, datum, identity)? };
        self.filters[self.last] = Some(cached);
        self.make_room();
        Ok(())
    }

    /// Fetches all bytes of the filter that was probed last, of which only the start was fetched
    /// before, and keeps them for later calls of the call site. `datum` is the filter, stored out
    /// of line. Other filters may be dropped from the cache to make room.
    ///
    /// Fails with 22P03 for a damaged filter.
    #[inline(never)]
    fn fetch_whole(&mut self, call: &Call, datum: pg_sys::Datum) -> Result<()> {
        let context = call.site_context()?;
        let filter_type = self.filter_type;
        let cached = self.last_cached();
        let length = cached.length;
        let start = filter_type.start(cached.fetched.bytes(), length)?;
        let bytes_before_bits = start.header().prefix_bytes();

        // The memory is there already if an earlier attempt ended in an error that was caught.
        let memory = *cached.whole_memory.get_or_insert_with(|| {
            let (allocated, first) = memory::allocate_aligned(context, length, bytes_before_bits);
            WholeMemory { allocated, first }
        });
        // SAFETY: the datum is the value whose start was fetched, so it has `length` bytes. The
        // memory is freed together with the reference that is kept.
        let bytes = unsafe {
            fetch_pieces(datum.cast_mut_ptr(), memory.first, length)?;
            std::slice::from_raw_parts(memory.first, length)
        };
        cached.whole = Some(filter_type.whole(bytes)?);
        self.make_room();
        Ok(())
    }

    /// Forgets all filters except the one that was probed last, if all of them together take more
    /// than [`MOST_BYTES`] of memory.
    fn make_room(&mut self) {
        let bytes: usize = self.filters.iter().flatten().map(CachedFilter::bytes).sum();
        if bytes <= MOST_BYTES {
            return;
        }
        for place in 0..MOST_FILTERS {
            if place != self.last {
                self.forget(place);
            }
        }
    }

    /// Removes the filter at a place of the cache, if there is one, and frees its memory.
    fn forget(&mut self, place: usize) {
        if let Some(cached) = self.filters[place].take() {
            cached.fetched.free();
            if let Some(memory) = cached.whole_memory {
                // SAFETY: it came from palloc, and the filter that it was for is gone.
                unsafe { pg_sys::pfree(memory.allocated.cast()) };
            }
        }
    }
}

impl CachedFilter {
    /// Fetches the start of a filter that is stored out of line, or all of one that is short or
    /// compressed, into the memory of the call site, and returns it as an entry of the cache. Of a
    /// compressed value no part can be fetched alone.
    ///
    /// Fails with 22P03 for a damaged filter.
    ///
    /// # Safety
    /// The datum must be a value out of line with this identity. The result must be kept no longer
    /// than what the call site remembers.
    unsafe fn fetch(
        call: &Call,
        filter_type: FilterType,
        datum: pg_sys::Datum,
        identity: Identity,
    ) -> Result<CachedFilter> {
        let external = external(&identity);
        // The raw size includes the length before the value.
        let length = (external.va_rawsize as usize).saturating_sub(size_of::<u32>());
        let is_whole = length <= SHORT_BYTES || is_compressed(&external);

        let context = call.site_context()?;
        // SAFETY: the caller promises a value out of line, and keeps the result no longer than the
        // call site; the value is copied to the memory of the call site.
        let fetched = unsafe {
            let copy = memory::in_context(context, || {
                let pointer = datum.cast_mut_ptr();
                if is_whole {
                    Ok(pg_sys::pg_detoast_datum(pointer))
                } else {
                    slice(pointer, 0, START_BYTES)
                }
            });
            Value::owned(copy?)
        };

        // SAFETY: what is made of the bytes is kept with the value that has them, and shown no
        // longer than the value is there.
        let bytes = unsafe { std::slice::from_raw_parts(fetched.bytes().as_ptr(), fetched.len()) };
        let whole = if is_whole {
            Some(filter_type.whole(bytes)?)
        } else {
            // A damaged start is reported now.
            filter_type.start(bytes, length)?;
            None
        };
        Ok(CachedFilter {
            identity,
            length,
            fetched,
            whole_memory: None,
            slices: 1,
            whole,
            hasher: None,
        })
    }

    /// Returns whether the whole filter is to be fetched now: it wasn't yet, and the slices, parts
    /// that were fetched for single probes, have taken as long as the whole would. One slice more
    /// is expected for each of the `probes` to come.
    fn is_worth_fetching_whole(&self, probes: usize) -> bool {
        let bytes_for_slices = (probes + self.slices) * BYTES_PER_SLICE;
        self.whole.is_none() && bytes_for_slices >= self.length
    }

    /// Returns how many bytes of memory the filter takes.
    fn bytes(&self) -> usize {
        if self.whole_memory.is_some() { self.length } else { self.fetched.len() }
    }
}
