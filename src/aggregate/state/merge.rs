//! How states of `bloom_agg` merge, travel between processes, and end.
//!
//! Nobody knows how many processes an unsized build has, or how many elements they have in total: workers that were
//! planned may not start, and one process may hand over many states. So what a process hands over is exact, regardless
//! of what the others have: its hashes, or, where they would take more bytes, the bits of the largest filter that may
//! be made. The process that combines states keeps hashes until it is given bits; those are folded to the size that the
//! elements need in the end. Folding is exact, so nothing is lost by the detour.

use super::super::memory::Payload;
use super::super::parameters::SharedParams;
use super::super::site::ElementState;
use super::super::spill::with_entries;
use super::{BloomState, most_in_memory, too_many};
use crate::error::During;
use crate::filter_type::Bloom;
use crate::overfull;
use crate::pg::call::Call;
use crate::pg::call::error::Result;
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::value::varlena::{PgBuffer, Value};
use crate::settings;
use pg_bloom_core::filter::build::{from_hashes, largest, settle, settle_dense};
use pg_bloom_core::filter::merge::{merged_header, or_into};
use pg_bloom_core::filter::{estimate, sparse};
use pg_bloom_core::{Body, Buffer, Header, MAX_STORED_BYTES, View, interrupt, sizing};
use pgrx::pg_sys;

/// Hashes that are added between two checks for interrupts.
const UNCANCELLED: usize = 1 << 16;

impl<'c> BloomState<'c> {
    /// Combines two states of the same parameters. The second must not be used afterwards.
    ///
    /// # Errors
    /// Those of a union.
    pub fn combine(
        call: &'c Call,
        shared: &mut SharedParams,
        first: Option<BloomState<'c>>,
        mut second: BloomState<'c>,
    ) -> Result<BloomState<'c>> {
        let mut state = match first {
            Some(state) => state,
            None => BloomState::with_header(call, shared, &second.header())?,
        };
        let header = second.header();
        match second.spilled() {
            None => second.with_view(|view| state.absorb(call, shared, view))?,
            Some((spill, own)) => spill.for_each_batch(own, |hashes| {
                let distinct = sparse::sort_distinct(hashes, 0);
                with_entries(&hashes[..distinct], |entries| {
                    state.absorb(call, shared, &View { header, body: Body::Sparse(entries) })
                })
            })?,
        }
        Ok(state)
    }

    /// Merges the view of another state of the same parameters into this one.
    ///
    /// # Errors
    /// Those of a union.
    fn absorb(&mut self, call: &Call, shared: &mut SharedParams, view: &View<'_>) -> Result<()> {
        let other = view.header;
        if self.header().is_to_be_sized() && other.is_to_be_sized() {
            let kind = merged_header(&self.header(), &other).during("bloom_agg")?.kind;
            match view.body {
                Body::Dense(_) if !self.is_dense() => self.go_oversized(call, shared, &Header { kind, ..other })?,
                Body::Sparse(entries) if self.is_dense() => return self.push_oversized(call, shared, entries),
                _ => {}
            }
        }
        let own = self.header();
        let nothing_yet = own.is_unsized() && self.is_empty();
        let merged = merged_header(&own, &view.header).during("bloom_agg")?;
        match view.body {
            Body::Sparse([]) if view.header.is_unsized() => self.set_header(call, shared, &merged),
            Body::Sparse(entries) if !self.is_dense() && (nothing_yet || own.blocks == view.header.blocks) => {
                self.set_header(call, shared, &merged)?;
                self.push_all(call, entries)
            }
            _ if own.is_unsized() && !nothing_yet || view.header.is_unsized() => Err(too_many()),
            Body::Dense(bits) if self.is_empty() && merged.blocks == view.header.blocks => {
                self.set_header(call, shared, &merged)?;
                // SAFETY: kept with the state, in the aggregate's memory.
                self.become_dense(unsafe { Payload::copied_in(call.require_aggregate()?, bits) })
            }
            _ => {
                // A state without a size has no bits to keep: it takes the other's size.
                let blocks = if nothing_yet { merged.blocks } else { own.blocks };
                self.set_header(call, shared, &Header { blocks, ..merged })?;
                self.go_dense(call.require_aggregate()?, merged.blocks)?;
                self.set_header(call, shared, &merged)?;
                self.flush();
                or_into(self.payload_mut(), merged.blocks, view);
                Ok(())
            }
        }
    }

    /// Makes an unsized build dense, with the blocks of `header` or as many as a filter may have.
    fn go_oversized(&mut self, call: &Call, shared: &mut SharedParams, header: &Header<'_>) -> Result<()> {
        let largest = largest(header, settings::max_filter_bytes())?;
        let header = if largest.blocks > header.blocks { &largest } else { header };
        header.check_size(MAX_STORED_BYTES)?;
        let context = call.require_aggregate()?;
        // SAFETY: kept with the state, in the aggregate's memory.
        let mut payload = unsafe { Payload::zeroed_in(context, header.payload_bytes() as usize) };
        self.set_bits(header, &mut payload)?;
        let params = shared.params(call, header)?;
        let head = self.head();
        (head.spill, head.params, head.has_kind) = (std::ptr::null_mut(), params, true);
        self.become_dense(payload)
    }

    /// Sets the bits of all hashes, those in a file included, in a payload of this size.
    fn set_bits(&mut self, header: &Header<'_>, payload: &mut [u8]) -> Result<()> {
        let insert = |payload: &mut [u8], hashes: &[u64]| {
            header.shape().insert_all(payload, hashes);
        };
        match self.spilled() {
            Some((spill, own)) => spill.for_each_batch(own, |hashes| {
                insert(payload, hashes);
                Ok(())
            })?,
            None => insert(payload, self.hashes()),
        }
        Ok(())
    }

    fn push_all(&mut self, call: &Call, entries: &[[u8; 8]]) -> Result<()> {
        let is_list = self.own_params().is_unsized() && !self.is_dense();
        if is_list && size_of_val(entries) > most_in_memory() {
            // Hashes that would fill the memory go straight to the file.
            return self.spill_to(call)?.write(entries);
        }
        for entries in entries.chunks(UNCANCELLED) {
            sparse::values(entries).try_for_each(|hash| self.push(call, hash))?;
            check_for_interrupts();
        }
        Ok(())
    }

    /// Adds the hashes of another process to an unsized build that is dense, as large as a filter may be.
    fn push_oversized(&mut self, call: &Call, shared: &mut SharedParams, entries: &[[u8; 8]]) -> Result<()> {
        let own = self.header();
        let enough = largest(&own, settings::max_filter_bytes())?;
        if enough.blocks > own.blocks {
            self.go_dense(call.require_aggregate()?, enough.blocks)?;
            self.set_header(call, shared, &Header { base_blocks: own.base_blocks, ..enough })?;
        }
        self.push_all(call, entries)
    }

    fn set_header(&mut self, call: &Call, shared: &mut SharedParams, header: &Header<'_>) -> Result<()> {
        let own = *self.own_params();
        if own == *header || (header.kind.is_none() && own == (Header { kind: own.kind, ..*header })) {
            self.head().has_kind |= !header.kind.is_none();
            return Ok(());
        }
        let params = shared.params(call, header)?;
        let head = self.head();
        (head.params, head.has_kind) = (params, !header.kind.is_none());
        Ok(())
    }

    /// The state as bytes, for an aggregate that combines states. The state can still be read.
    ///
    /// # Errors
    /// 54000 for too many elements.
    pub fn serialise(&mut self) -> Result<pg_sys::Datum> {
        if self.is_borrowed {
            return Ok(self.dense.into());
        }
        let header = *self.own_params();
        if header.is_unsized() {
            return self.serialise_unsized();
        }
        if !self.is_dense() {
            self.sort();
            if self.header().fits_sparse(self.len as usize) {
                return self.list(&self.header()).map(PgBuffer::into_datum);
            }
            return self.bits(&self.header()).map(PgBuffer::into_datum);
        }
        Ok(self.dense_datum())
    }

    fn serialise_unsized(&mut self) -> Result<pg_sys::Datum> {
        let header = self.header();
        if let Ok(largest) = largest(&header, settings::max_filter_bytes())
            && self.count() as u64 * 8 > largest.payload_bytes()
        {
            return self.bits(&largest).map(PgBuffer::into_datum);
        }
        self.list(&header).map(PgBuffer::into_datum)
    }

    /// Calls `visit` with the hashes, those in a file included, many at a time: ascending, and each once.
    fn each_distinct(&mut self, mut visit: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
        match self.spilled() {
            Some((spill, own)) => spill.for_each_batch(own, |hashes| {
                let distinct = sparse::sort_distinct(hashes, 0);
                visit(&hashes[..distinct])
            }),
            None => {
                self.sort();
                visit(self.hashes())
            }
        }
    }

    /// The hashes, ascending and distinct, as a sparse value with this header.
    fn list(&mut self, header: &Header<'_>) -> Result<PgBuffer> {
        let most = self.count();
        if header.prefix_bytes() as u64 + most as u64 * 8 > MAX_STORED_BYTES {
            return Err(too_many());
        }
        let mut value: PgBuffer = header.sparse(most);
        let mut end = header.prefix_bytes();
        self.each_distinct(|hashes| {
            let bytes = end..end + size_of_val(hashes);
            end = bytes.end;
            with_entries(hashes, |entries| interrupt::copy(&mut value.bytes_mut()[bytes], entries.as_flattened()));
            Ok(())
        })?;
        value.truncate(end);
        Ok(value)
    }

    /// The bits of all hashes as a dense value with this header.
    fn bits(&mut self, header: &Header<'_>) -> Result<PgBuffer> {
        let mut value: PgBuffer = header.dense();
        self.set_bits(header, &mut value.bytes_mut()[header.prefix_bytes()..])?;
        Ok(value)
    }

    fn dense_datum(&mut self) -> pg_sys::Datum {
        self.flush();
        View { header: self.header(), body: Body::Dense(self.payload()) }.to_buffer::<PgBuffer>().into_datum()
    }

    /// # Errors
    /// As [`ElementState::finish`].
    pub(super) fn finished(&mut self, call: &Call) -> Result<pg_sys::Datum> {
        let limit = settings::max_filter_bytes();
        let header = self.header();
        let datum = if self.is_dense() && header.is_to_be_sized() {
            self.with_view(|view| {
                let Body::Dense(bits) = view.body else { return Err(too_many()) };
                let elements = most_elements(view);
                Ok(settle_dense::<PgBuffer>(&header, bits, elements, limit)?.into_datum())
            })?
        } else if self.is_dense() {
            self.dense_datum()
        } else if !self.spill.is_null() {
            self.finish_from_file()?
        } else {
            self.sort();
            from_hashes::<PgBuffer>(&header, self.hashes(), limit)?.into_datum()
        };
        // An unsized build has the size that its hashes need.
        if !header.is_to_be_sized() || self.is_dense() {
            // SAFETY: a value of variable length that was just made.
            let value = unsafe { Value::detoast(datum) };
            overfull::check::<Bloom>(call, overfull::BUILT, &View::parse_trusted(&value)?)?;
        }
        Ok(datum)
    }

    /// Counts the distinct hashes first: then the filter needs no more memory than it has in the end.
    fn finish_from_file(&mut self) -> Result<pg_sys::Datum> {
        let own = self.header();
        let mut distinct = 0;
        self.each_distinct(|hashes| {
            distinct += hashes.len();
            Ok(())
        })?;
        let header = settle(&own, distinct, settings::max_filter_bytes())?;
        let value = if header.fits_sparse(distinct) { self.list(&header)? } else { self.bits(&header)? };
        Ok(value.into_datum())
    }
}

/// The most elements that a dense filter may hold: its estimate plus four standard errors, but no more than its
/// capacity if the estimate is within that, since it is as large as a filter may be.
fn most_elements(view: &View<'_>) -> u64 {
    /// More than any filter that can be stored holds.
    const MOST: f64 = 1e12;
    let found = estimate::present(view).min(MOST);
    let h = &view.header;
    let most =
        (found + 4.0 * estimate::standard_error(h.layout, h.num_hashes, h.blocks, found)).min(MOST).ceil() as u64;
    let capacity = sizing::capacity_of(h.layout, h.num_hashes, h.blocks, h.fpr);
    if found <= capacity as f64 { most.min(capacity) } else { most }
}
