//! Filters that a call site asks, most of them stored out of line (TOAST), remembered between its
//! calls.
//!
//! ```text
//! asked for the first time ──▶ start of the value ──▶ slices, what each element needs ──▶ the whole value
//!                              (or all of it, if short)    until they have cost as much as
//! ```
//!
//! A value out of line is known by its TOAST identity: a value that is updated gets another one.
//! Only bytes are kept, in the memory of the call site; a few filters at a time, and of large ones
//! just the last.

use crate::element::Hasher;
use crate::filter_type::{FilterType, Start, Whole};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::call::{Call, Element, Result};
use crate::pg::memory;
use crate::pg::value::toast::{Identity, fetch_pieces, is_compressed, slice};
use crate::pg::value::varlena::Value;
use pg_bloom_core::Header;
use pg_bloom_core::filter::slices::START_BYTES;
use pg_bloom_core::memory::with_capacity;
use pgrx::pg_sys;

/// Filters that a call site remembers.
const PLACES: usize = 4;
/// Values up to this many bytes are fetched at once: a slice costs as much.
const SHORT_BYTES: usize = 16 << 10;
/// Bytes of a value that take as long to fetch with the rest of it as one slice does alone: of 12
/// MB a slice took 2.4 µs and the whole 4.5 to 7 ms, so 4 to 6.5 kB.
const SLICE_BYTES: usize = 4 << 10;
/// Bytes of filters to remember; one alone may have more.
const MOST_BYTES: usize = 64 << 20;
/// Elements for which memory is prefetched before it is read.
const MOST_AT_ONCE: usize = 32;

pub struct FilterCache {
    filter_type: FilterType,
    places: [Option<CachedFilter>; PLACES],
    /// The place probed last.
    last: usize,
}

/// A filter that is stored out of line.
struct CachedFilter {
    identity: Identity,
    /// Bytes of the value.
    length: usize,
    /// The start of the value or, if that is short or compressed, all of it: in the site's memory
    /// until it is freed.
    value: Value<'static>,
    /// The memory for all of it, once it was fetched later, and its first byte.
    whole: Option<(*mut u8, *mut u8)>,
    slices: usize,
    /// What the whole value is: borrowed from the bytes above, which are freed together with it.
    view: Option<Whole<'static>>,
    /// How elements are read for this filter, once that is known.
    hasher: Option<Hasher>,
}

pub enum Filter<'a> {
    Whole(Whole<'a>),
    /// The start of one out of line, where that is, and the number of slices that were fetched.
    Slices(Start<'a>, *mut pg_sys::varlena, &'a mut usize),
}

impl Filter<'_> {
    #[inline(always)]
    pub fn header(&self) -> &Header<'_> {
        match self {
            Filter::Whole(whole) => whole.header(),
            Filter::Slices(start, ..) => start.header(),
        }
    }

    /// Whether each of these elements may be in it, in turn, up to the first answer that is
    /// `until`. The memory that answers need is prefetched for many elements at once.
    ///
    /// # Safety
    /// The elements must be of the type that the hasher was made for.
    pub unsafe fn contains_each(
        &mut self,
        hasher: &Hasher,
        elements: &[Element],
        until: Option<bool>,
    ) -> Result<Vec<bool>> {
        let mut answers = with_capacity(elements.len());
        for elements in elements.chunks(MOST_AT_ONCE) {
            let mut hashes = [None; MOST_AT_ONCE];
            for (hash, &element) in hashes.iter_mut().zip(elements) {
                // SAFETY: promised by the caller.
                *hash = unsafe { hasher.hash(element) };
                if let (Filter::Whole(whole), Some(hash)) = (&*self, *hash) {
                    whole.prefetch(hash);
                }
            }
            for &hash in &hashes[..elements.len()] {
                check_for_interrupts();
                let answer = self.contains(hash)?;
                answers.push(answer);
                if until == Some(answer) {
                    return Ok(answers);
                }
            }
        }
        Ok(answers)
    }

    /// Whether the element with this hash may be in it; `None` is one that can't. Errors: 22P03 for
    /// a damaged value.
    #[inline(always)]
    pub fn contains(&mut self, hash: Option<u64>) -> Result<bool> {
        let Some(hash) = hash else { return Ok(false) };
        match self {
            Filter::Whole(whole) => Ok(whole.contains(hash)),
            // SAFETY: the pointer is the argument of this call.
            Filter::Slices(start, pointer, slices) => unsafe {
                start.contains(hash, |from, length| read_slice(*pointer, slices, from, length))
            },
        }
    }

    /// Returns how many copies of the element with this hash are in it; `None` is an element that
    /// can't be. Fails for a damaged value (22P03).
    pub fn count(&mut self, hash: Option<u64>) -> Result<u8> {
        let Some(hash) = hash else { return Ok(0) };
        match self {
            Filter::Whole(whole) => Ok(whole.count(hash)),
            // SAFETY: the pointer is the argument of this call.
            Filter::Slices(start, pointer, slices) => unsafe {
                start.count(hash, |from, length| read_slice(*pointer, slices, from, length))
            },
        }
    }
}

/// Reads a slice of a value that is out of line, and counts it.
///
/// # Safety
/// The pointer must be that of a value out of line.
unsafe fn read_slice(
    pointer: *mut pg_sys::varlena,
    slices: &mut usize,
    from: usize,
    length: usize,
) -> Result<Value<'static>> {
    *slices += 1;
    // SAFETY: promised by the caller; the slice is a copy.
    Ok(unsafe { Value::owned(slice(pointer, from, length)?) })
}

impl FilterCache {
    /// # Safety
    /// A call site must remember it, by [`Call::remembered`], and only calls of that site use it:
    /// what it has is in the memory of the site.
    pub unsafe fn new(filter_type: FilterType) -> Self {
        FilterCache { filter_type, places: std::array::from_fn(|_| None), last: 0 }
    }

    /// Argument `i`, a filter to be probed for `probes` elements; `None` for NULL. Errors: 22P03
    /// for a damaged value.
    pub fn filter<'a>(
        &'a mut self,
        call: &'a Call,
        i: usize,
        probes: usize,
    ) -> Result<Option<Filter<'a>>> {
        let Some(datum) = call.datum(i) else {
            return Ok(None);
        };
        let Some(identity) = call.identity(i) else {
            let Some(value) = call.value(i) else {
                return Ok(None);
            };
            return Ok(Some(Filter::Whole(self.filter_type.whole(value.into_bytes())?)));
        };
        if !self.is_at(self.last, identity) {
            self.find_or_make(call, datum, identity)?;
        }
        let place = self.places[self.last].as_ref().expect("the place was found or made");
        if place.view.is_none() && (probes + place.slices) * SLICE_BYTES >= place.length {
            self.fetch_whole(call, datum)?;
        }
        let place = self.places[self.last].as_mut().expect("the place is there");
        if let Some(whole) = place.view {
            return Ok(Some(Filter::Whole(whole)));
        }
        let start = self.filter_type.start(place.value.bytes(), place.length)?;
        Ok(Some(Filter::Slices(start, datum.cast_mut_ptr(), &mut place.slices)))
    }

    /// Argument `i`, if it is the filter probed last and all of it is there, as for most calls, and
    /// its hasher.
    #[inline(always)]
    pub fn last(&self, call: &Call, i: usize) -> Option<(&Whole<'_>, &Hasher)> {
        let identity = call.identity(i)?;
        let place = self.places[self.last]
            .as_ref()
            .filter(|place| place.identity == identity)?;
        Some((place.view.as_ref()?, place.hasher.as_ref()?))
    }

    pub fn remember_hasher(&mut self, hasher: Hasher) {
        if let Some(place) = self.places[self.last].as_mut() {
            place.hasher = Some(hasher);
        }
    }

    fn is_at(&self, place: usize, identity: Identity) -> bool {
        self.places[place]
            .as_ref()
            .is_some_and(|place| place.identity == identity)
    }

    /// Makes the place of a value the last one probed.
    #[inline(never)]
    fn find_or_make(
        &mut self,
        call: &Call,
        datum: pg_sys::Datum,
        identity: Identity,
    ) -> Result<()> {
        if let Some(found) = (0..PLACES).find(|&place| self.is_at(place, identity)) {
            self.last = found;
            return Ok(());
        }
        self.last = (self.last + 1) % PLACES;
        self.forget(self.last);
        // SAFETY: the datum is a pointer to a value out of line; its raw size includes the length
        // before it.
        let external = unsafe {
            std::ptr::read_unaligned(identity.as_ptr().cast::<pg_sys::varatt_external>())
        };
        let length = (external.va_rawsize as usize).saturating_sub(size_of::<u32>());
        let context = call.site_context()?;
        let is_whole = length <= SHORT_BYTES || is_compressed(&external);
        // SAFETY: as above; the value is copied to the memory of the call site.
        let value = unsafe {
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
        // SAFETY: the view is kept in the place that the value is kept in, and shown no longer than
        // that is.
        let bytes = unsafe { std::slice::from_raw_parts(value.bytes().as_ptr(), value.len()) };
        let of = self.filter_type;
        let view = if is_whole {
            Some(of.whole(bytes)?)
        } else {
            of.start(bytes, length).map(|_| None)?
        };
        let place = CachedFilter {
            identity,
            length,
            value,
            whole: None,
            slices: 1,
            view,
            hasher: None,
        };
        self.places[self.last] = Some(place);
        self.make_room();
        Ok(())
    }

    #[inline(never)]
    fn fetch_whole(&mut self, call: &Call, datum: pg_sys::Datum) -> Result<()> {
        let context = call.site_context()?;
        let Some(place) = self.places[self.last].as_mut() else {
            return Ok(());
        };
        let length = place.length;
        let prefix = self
            .filter_type
            .start(place.value.bytes(), length)?
            .header()
            .prefix_bytes();
        // It is allocated already if an earlier attempt ended in an error that was caught.
        let (_, first) = *place
            .whole
            .get_or_insert_with(|| memory::allocate_aligned(context, length, prefix));
        // SAFETY: the datum is a pointer to the value that the place is for; the bytes live as long
        // as the place.
        let bytes = unsafe {
            fetch_pieces(datum.cast_mut_ptr(), first, length)?;
            std::slice::from_raw_parts(first, length)
        };
        place.view = Some(self.filter_type.whole(bytes)?);
        self.make_room();
        Ok(())
    }

    /// Forgets all but the filter probed last, if they have too many bytes in total.
    fn make_room(&mut self) {
        let bytes = |place: &CachedFilter| {
            if place.whole.is_some() { place.length } else { place.value.len() }
        };
        if self.places.iter().flatten().map(bytes).sum::<usize>() > MOST_BYTES {
            let last = self.last;
            (0..PLACES).filter(|&i| i != last).for_each(|i| self.forget(i));
        }
    }

    fn forget(&mut self, place: usize) {
        if let Some(place) = self.places[place].take() {
            place.value.free();
            if let Some((memory, _)) = place.whole {
                // SAFETY: it came from palloc, and the place that it was for is gone.
                unsafe { pg_sys::pfree(memory.cast()) };
            }
        }
    }
}
