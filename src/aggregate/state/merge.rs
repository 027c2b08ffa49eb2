//! How states of `bloom_agg` merge, travel between processes, and end.
//!
//! Nobody knows how many processes an unsized build has, or how many elements they have in total: workers that were
//! planned may not start, and one process may hand over many states. So what a process hands over is exact, regardless
//! of what the others have: its hashes, or, where they would take more bytes, the bits of the largest filter that may
//! be made. The process that combines states keeps hashes until it is given bits; those are folded to the size that the
//! elements need in the end. Folding is exact, so nothing is lost by the detour.

use super::super::memory::Payload;
use super::super::site::{ElementHead, SharedParams};
use super::super::spill::with_entries;
use super::{BloomHead, BloomState, Others, most_in_memory, too_many};
use crate::error::During;
use crate::filter_type::Bloom;
use crate::overfull;
use crate::pg::call::{Call, Result};
use crate::pg::value::varlena::PgBuffer;
use crate::settings;
use pg_bloom_core::filter::build::{from_hashes, largest, settle, settle_dense};
use pg_bloom_core::filter::merge::{merged_header, or_into};
use pg_bloom_core::filter::{estimate, sparse};
use pg_bloom_core::{Body, Buffer, Header, MAX_STORED_BYTES, View, interrupt, sizing};
use pgrx::pg_sys;

impl BloomState<'_> {
    /// Adds the elements of another state of the same parameters.
    pub fn absorb_state(&mut self, call: &Call, shared: &mut SharedParams, mut other: BloomState<'_>) -> Result<()> {
        if !matches!(other.others, Others::Spilled(_)) {
            return other.with_view(|view| self.absorb(call, shared, view));
        }
        let header = other.header();
        other.each_distinct(|hashes| {
            with_entries(hashes, |entries| self.absorb(call, shared, &View { header, body: Body::Sparse(entries) }))
        })
    }

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
        let merged = merged_header(&own, &other).during("bloom_agg")?;
        match view.body {
            Body::Sparse([]) if other.is_unsized() => self.set_header(call, shared, &merged),
            Body::Sparse(entries) if !self.is_dense() && (nothing_yet || own.blocks == other.blocks) => {
                self.set_header(call, shared, &merged)?;
                self.push_all(call, entries)
            }
            _ if own.is_unsized() && !nothing_yet || other.is_unsized() => Err(too_many()),
            Body::Dense(bits) if self.is_empty() && merged.blocks == other.blocks => {
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
        self.head().params = shared.params(call, header)?;
        self.become_dense(payload)
    }

    /// Sets the bits of all hashes, those in a file included, in a payload of this size.
    fn set_bits(&mut self, header: &Header<'_>, payload: &mut [u8]) -> Result<()> {
        let mut insert = |hashes: &mut [u64]| {
            header.shape().insert_all(payload, hashes);
            Ok(())
        };
        match self.spilled() {
            Some((spill, own)) => spill.for_each_batch(own, insert),
            None => insert(self.hashes()),
        }
    }

    fn push_all(&mut self, call: &Call, entries: &[[u8; 8]]) -> Result<()> {
        let is_list = self.params().is_unsized() && !self.is_dense();
        if is_list && size_of_val(entries) > most_in_memory() {
            // Hashes that would fill the memory go straight to the file.
            return self.spill_to(call)?.write(entries);
        }
        interrupt::each(sparse::values(entries)).try_for_each(|hash| BloomHead::push(self, call, hash))
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
        self.head().params = shared.in_place_of(call, self.own_params(), header)?;
        Ok(())
    }

    /// The state, which can still be read, as bytes, for another process. Errors: 54000 for too many elements.
    pub fn serialise(&mut self) -> Result<pg_sys::Datum> {
        if let Others::Borrowed(value) = self.others {
            return Ok(value.into());
        }
        let header = self.header();
        let value = if header.is_unsized() {
            let largest = largest(&header, settings::max_filter_bytes()).ok();
            match largest.filter(|largest| self.count() as u64 * 8 > largest.payload_bytes()) {
                Some(largest) => self.bits(&largest)?,
                None => self.list(&header)?,
            }
        } else if self.is_dense() {
            self.dense_value()
        } else {
            self.sort();
            if header.fits_sparse(self.len as usize) { self.list(&header)? } else { self.bits(&header)? }
        };
        Ok(value.into_datum())
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

    fn dense_value(&mut self) -> PgBuffer {
        self.flush();
        View { header: self.header(), body: Body::Dense(self.payload()) }.to_buffer()
    }

    /// The finished filter. The state stays as it is, except that its hashes may be sorted. Errors: 54000 for one that
    /// is too large; 22023 for one that is overfull, if the setting says so.
    pub fn finish(&mut self, call: &Call) -> Result<pg_sys::Datum> {
        let limit = settings::max_filter_bytes();
        let header = self.header();
        let value: PgBuffer = if self.is_dense() && header.is_to_be_sized() {
            self.with_view(|view| {
                let Body::Dense(bits) = view.body else { return Err(too_many()) };
                Ok(settle_dense(&header, bits, most_elements(view), limit)?)
            })?
        } else if self.is_dense() {
            self.dense_value()
        } else if matches!(self.others, Others::Spilled(_)) {
            self.value_from_file()?
        } else {
            self.sort();
            from_hashes(&header, self.hashes(), limit)?
        };
        // An unsized build has the size that its hashes need.
        if !header.is_to_be_sized() || self.is_dense() {
            overfull::check::<Bloom>(call, overfull::BUILT, &View::parse_trusted(value.bytes())?)?;
        }
        Ok(value.into_datum())
    }

    /// Counts the distinct hashes first: then the filter needs no more memory than it has in the end.
    fn value_from_file(&mut self) -> Result<PgBuffer> {
        let mut distinct = 0;
        self.each_distinct(|hashes| {
            distinct += hashes.len();
            Ok(())
        })?;
        let header = settle(&self.header(), distinct, settings::max_filter_bytes())?;
        if header.fits_sparse(distinct) { self.list(&header) } else { self.bits(&header) }
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
