//! How states of `bloom_agg` merge, travel between processes, and end.
//!
//! Nobody knows how many processes an unsized build has, or how many elements they have in total:
//! workers that were planned may not start, and one process may hand over many states. So what a
//! process hands over is exact, regardless of what the others have: its hashes, or, where they
//! would take more bytes, the bits of the largest filter that may be made. The process that
//! combines states keeps hashes until it is given bits; those are folded to the size that the
//! elements need in the end. Folding is exact, so nothing is lost by the detour.

use super::super::site::{ElementHead, SharedParams};
use super::super::spill::with_entries;
use super::{BloomHead, BloomState, Others, most_in_memory, too_many};
use crate::error::During;
use crate::pg::call::{Call, Result};
use crate::pg::value::varlena::PgBuffer;
use crate::settings;
use pg_bloom_core::filter::build::{from_hashes, largest, settle, settle_dense};
use pg_bloom_core::filter::merge::{merged_header, or_into};
use pg_bloom_core::filter::{estimate, sparse};
use pg_bloom_core::{Body, Buffer, Header, MAX_STORED_BYTES, View, interrupt, sizing};

impl BloomState<'_> {
    /// Adds the elements of another process, which has the same parameters.
    pub fn absorb(
        &mut self,
        call: &Call,
        shared: &mut SharedParams,
        view: &View<'_>,
    ) -> Result<()> {
        let other = view.header;
        if matches!(view.body, Body::Dense(_)) && other.is_to_be_sized() && !self.is_dense() {
            self.go_oversized(call, shared, &other)?;
        }
        let own = self.header();
        let merged = merged_header(&own, &other).during("bloom_agg")?;
        match view.body {
            Body::Sparse(entries) if self.is_dense() && other.is_unsized() => {
                self.push_all(call, entries)
            }
            Body::Sparse(entries) if !self.is_dense() && own.blocks == other.blocks => {
                self.set_header(call, shared, &merged)?;
                self.push_all(call, entries)
            }
            _ => {
                if !self.is_dense() || own.blocks < merged.blocks {
                    self.go_dense(call, &merged)?;
                }
                self.set_header(call, shared, &merged)?;
                or_into(self.flush(), merged.blocks, view);
                Ok(())
            }
        }
    }

    /// Makes an unsized build dense, with the blocks of another or as many as a filter may have.
    fn go_oversized(
        &mut self,
        call: &Call,
        shared: &mut SharedParams,
        other: &Header<'_>,
    ) -> Result<()> {
        let kind = merged_header(&self.header(), other).during("bloom_agg")?.kind;
        let other = Header { kind, ..*other };
        let largest = largest(&other, settings::max_filter_bytes())?;
        let header = if largest.blocks > other.blocks { &largest } else { &other };
        self.go_dense(call, header)?;
        self.set_header(call, shared, header)
    }

    /// Sets the bits of all hashes, those in a file included, in a payload of this size.
    pub fn set_bits(&mut self, header: &Header<'_>, payload: &mut [u8]) -> Result<()> {
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
        let is_list = self.params.is_unsized() && !self.is_dense();
        if is_list && size_of_val(entries) > most_in_memory() {
            // Hashes that would fill the memory go straight to the file.
            return self.spill_to(call)?.write(entries);
        }
        interrupt::each(sparse::values(entries))
            .try_for_each(|hash| BloomHead::push(self, call, hash))
    }

    fn set_header(
        &mut self,
        call: &Call,
        shared: &mut SharedParams,
        header: &Header<'_>,
    ) -> Result<()> {
        self.head().params = shared.in_place_of(call, self.params, header)?;
        Ok(())
    }

    /// The state, which can still be read, as bytes, for another process. Errors: 54000 for too
    /// many elements.
    pub fn serialise(&mut self) -> Result<PgBuffer> {
        let header = self.header();
        if header.is_unsized() {
            let largest = largest(&header, settings::max_filter_bytes()).ok();
            match largest.filter(|largest| self.count() as u64 * 8 > largest.payload_bytes()) {
                Some(largest) => self.bits(&largest),
                None => self.list(&header),
            }
        } else if self.is_dense() {
            Ok(self.dense_view().to_buffer())
        } else {
            self.sort();
            if header.fits_sparse(self.len as usize) {
                self.list(&header)
            } else {
                self.bits(&header)
            }
        }
    }

    /// Calls `visit` with the hashes, those in a file included, many at a time: ascending, and each
    /// once.
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
            with_entries(hashes, |entries| {
                interrupt::copy(&mut value.bytes_mut()[bytes], entries.as_flattened())
            });
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

    /// The finished filter. The state stays, its hashes perhaps sorted. Errors: 54000 for one that
    /// is too large.
    pub fn finish(&mut self) -> Result<PgBuffer> {
        let limit = settings::max_filter_bytes();
        let header = self.header();
        match self.others {
            Others::Dense(_) if header.is_to_be_sized() => {
                let most = most_elements(&self.dense_view());
                Ok(settle_dense(&header, self.flush(), most, limit)?)
            }
            Others::Dense(_) => Ok(self.dense_view().to_buffer()),
            Others::Spilled(_) => self.value_from_file(),
            Others::None => {
                self.sort();
                Ok(from_hashes(&header, self.hashes(), limit)?)
            }
        }
    }

    /// Counts the distinct hashes first: then the filter needs no more memory than it has in the
    /// end.
    fn value_from_file(&mut self) -> Result<PgBuffer> {
        let mut distinct = 0;
        self.each_distinct(|hashes| {
            distinct += hashes.len();
            Ok(())
        })?;
        let header = settle(&self.header(), distinct, settings::max_filter_bytes())?;
        if header.fits_sparse(distinct) {
            self.list(&header)
        } else {
            self.bits(&header)
        }
    }
}

/// The most elements that a dense filter may hold: its estimate plus four standard errors, but no
/// more than its capacity if the estimate is within that, since it is as large as a filter may be.
fn most_elements(view: &View<'_>) -> u64 {
    /// More than any filter that can be stored holds.
    const MOST: f64 = 1e12;
    let found = estimate::present(view).min(MOST);
    let h = &view.header;
    let most = (found + 4.0 * estimate::standard_error(h.layout, h.num_hashes, h.blocks, found))
        .min(MOST)
        .ceil() as u64;
    let capacity = sizing::capacity_of(h.layout, h.num_hashes, h.blocks, h.fpr);
    if found <= capacity as f64 { most.min(capacity) } else { most }
}
