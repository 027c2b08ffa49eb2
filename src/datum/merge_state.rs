//! How states of an aggregate merge, travel between processes, and end.
//!
//! An unsized build that is not finished is merged as hashes as long as there are few. A process that has many hands
//! over bits instead: those of a filter with room for what all processes together may bring, which is
//! folded to the size that the elements need in the end. Folding is exact, so nothing is lost by the detour.

use super::call::Call;
use super::expression;
use super::params::Shared;
use super::payload::Payload;
use super::spill::Spill;
use super::state::{State, too_many, with_entries, work_mem};
use super::varlena::{PgBuffer, Value};
use crate::error::{Failure, report_overfull};
use crate::settings;
use pg_bloom_core::build::{from_hashes, oversized, settle, settle_dense};
use pg_bloom_core::merge::{merged_header, or_into};
use pg_bloom_core::{Body, Buffer, Header, MAX_STORED_BYTES, View, estimate, sparse};
use pgrx::pg_sys;

/// Hashes that a process hands over as they are; more take longer to send and to sort than bits.
const MOST_SENT: usize = 1 << 20;
/// Hashes that are added before the next look whether to stop.
const UNCANCELLED: usize = 1 << 16;

impl State {
    /// Merges a filter, or the view of another state, into this one.
    ///
    /// # Errors
    /// Those of a union.
    pub fn absorb(
        &mut self,
        call: &Call,
        shared: &mut Shared,
        view: &View<'_>,
        operation: &str,
    ) -> Result<(), Failure> {
        let other = view.header;
        if self.header().is_to_be_sized() && other.is_to_be_sized() {
            let kind = merged_header(&self.header(), &other, operation)?.kind;
            match view.body {
                Body::Dense(_) if !self.is_dense() => self.go_oversized(call, shared, &Header { kind, ..other })?,
                Body::Sparse(entries) if self.is_dense() => return self.push_oversized(call, shared, entries),
                _ => {}
            }
        }
        let own = self.header();
        let nothing_yet = own.is_unsized() && self.is_empty();
        let merged = merged_header(&own, &view.header, operation)?;
        match view.body {
            Body::Sparse([]) if view.header.is_unsized() => self.set_header(call, shared, &merged),
            Body::Sparse(entries) if !self.is_dense() && (nothing_yet || own.blocks == view.header.blocks) => {
                self.set_header(call, shared, &merged)?;
                self.push_all(call, entries)
            }
            _ if own.is_unsized() && !nothing_yet || view.header.is_unsized() => Err(too_many()),
            Body::Dense(bits) if self.is_empty() && merged.blocks == view.header.blocks => {
                self.set_header(call, shared, &merged)?;
                self.become_dense(Payload::copied_in(shared.context(call)?, bits))
            }
            _ => {
                // A state without a size has no bits to keep: it takes the other's size.
                let blocks = if nothing_yet { merged.blocks } else { own.blocks };
                self.set_header(call, shared, &Header { blocks, ..merged })?;
                self.go_dense(shared.context(call)?, merged.blocks)?;
                self.set_header(call, shared, &merged)?;
                self.flush();
                or_into(&mut self.payload(), merged.blocks, view);
                Ok(())
            }
        }
    }

    /// Makes an unsized build dense, with the blocks of `header` or more, which are more than it will need.
    fn go_oversized(&mut self, call: &Call, shared: &mut Shared, header: &Header<'_>) -> Result<(), Failure> {
        let in_files = self.spill().map_or(0, |spill| spill.written());
        let enough = oversized(header, (in_files + self.head().len as usize) as u64 * expression::processes())?;
        let header = if enough.blocks > header.blocks { &enough } else { header };
        header.check_size(MAX_STORED_BYTES)?;
        let context = call.require_aggregate()?;
        let mut payload = Payload::zeroed_in(context, header.payload_bytes() as usize);
        header.layout.insert_all(&mut payload, header.hashes, header.blocks, self.hashes());
        if let Some(spill) = self.spill() {
            spill.for_each_range(|hashes| {
                header.layout.insert_all(&mut payload, header.hashes, header.blocks, hashes)
            })?;
            spill.close();
        }
        self.head_mut().spill = std::ptr::null_mut();
        self.head_mut().params = shared.params(call, header)?;
        self.head_mut().has_kind = true;
        self.become_dense(payload)
    }

    fn push_all(&mut self, call: &Call, entries: &[[u8; 8]]) -> Result<(), Failure> {
        for entries in entries.chunks(UNCANCELLED) {
            sparse::values(entries).try_for_each(|hash| self.push(call, hash))?;
            super::check_for_interrupts();
        }
        Ok(())
    }

    /// Adds the hashes of another process to an unsized build that is dense, with room for all that may still come.
    fn push_oversized(&mut self, call: &Call, shared: &mut Shared, entries: &[[u8; 8]]) -> Result<(), Failure> {
        let own = self.header();
        let enough = oversized(&own, entries.len() as u64 * expression::processes())?;
        if enough.blocks > own.blocks {
            self.go_dense(shared.context(call)?, enough.blocks)?;
            self.set_header(call, shared, &Header { base_blocks: own.base_blocks, ..enough })?;
        }
        self.push_all(call, entries)
    }

    /// Changes the header.
    fn set_header(&mut self, call: &Call, shared: &mut Shared, header: &Header<'_>) -> Result<(), Failure> {
        let own = self.params().header;
        if own == *header || (header.kind.is_none() && own == (Header { kind: own.kind, ..*header })) {
            self.head_mut().has_kind |= !header.kind.is_none();
            return Ok(());
        }
        self.head_mut().params = shared.params(call, header)?;
        self.head_mut().has_kind = !header.kind.is_none();
        Ok(())
    }

    /// What another process goes on with, as bytes.
    ///
    /// # Errors
    /// 54000 for too many elements.
    pub fn serialise(&mut self, call: &Call, shared: &mut Shared) -> Result<pg_sys::Datum, Failure> {
        let header = self.params().header;
        if header.is_unsized() {
            let in_files = self.spill().map_or(0, |spill| spill.written());
            let hashes = in_files + self.head().len as usize;
            if let Some(header) = worth_of_bits(call, &header, hashes)? {
                self.go_oversized(call, shared, &header)?;
            } else if in_files > 0 {
                self.spill_hashes(call)?;
                let all = self.spill().map_or(Ok(Vec::new()), Spill::distinct_hashes)?;
                return sparse_datum(&self.header(), &all);
            }
        }
        if self.is_dense() {
            return Ok(self.dense_datum());
        }
        self.sort();
        if !self.header().fits_sparse(self.head().len as usize) {
            self.go_dense(call.require_aggregate()?, header.blocks)?;
            return Ok(self.dense_datum());
        }
        let header = self.header();
        sparse_datum(&header, self.hashes())
    }

    /// The value of a dense state.
    fn dense_datum(&mut self) -> pg_sys::Datum {
        self.flush();
        View { header: self.header(), body: Body::Dense(&self.payload()) }.to_buffer::<PgBuffer>().into_datum()
    }

    /// The finished filter. The state stays what it is, though its hashes may be sorted or moved to files.
    ///
    /// # Errors
    /// 54000 for one that is too large; 22023 for one that is overfull, if the setting says so.
    pub fn finish(&mut self, call: &Call) -> Result<pg_sys::Datum, Failure> {
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
        } else if self.spill().is_some() {
            self.finish_from_files(call)?
        } else {
            self.sort();
            from_hashes::<PgBuffer>(&header, self.hashes(), limit)?.into_datum()
        };
        // SAFETY: a value of variable length that was just made.
        let value = unsafe { Value::detoast(datum) };
        if let Some(over) = estimate::overfull(&View::parse_trusted(&value)?) {
            report_overfull(over)?;
        }
        Ok(datum)
    }

    /// Counts the distinct hashes first: then the filter needs no more memory than it has in the end.
    fn finish_from_files(&mut self, call: &Call) -> Result<pg_sys::Datum, Failure> {
        self.spill_hashes(call)?;
        let limit = settings::max_filter_bytes();
        let own = self.header();
        let Some(spill) = self.spill() else { return Err(too_many()) };
        let mut distinct = 0;
        spill.for_each_range(|hashes| distinct += sparse::sort_distinct(hashes, 0))?;
        let header = settle(&own, distinct, limit)?;
        if header.fits_sparse(distinct) {
            let all = spill.distinct_hashes()?;
            return Ok(from_hashes::<PgBuffer>(&header, &all, limit)?.into_datum());
        }
        let mut dense: PgBuffer = header.dense();
        let payload = &mut dense.bytes_mut()[header.prefix_bytes()..];
        spill.for_each_range(|hashes| header.layout.insert_all(payload, header.hashes, header.blocks, hashes))?;
        Ok(dense.into_datum())
    }
}

/// A filter's hashes, ascending and distinct, as the value that another process goes on with.
fn sparse_datum(header: &Header<'static>, hashes: &[u64]) -> Result<pg_sys::Datum, Failure> {
    if (header.prefix_bytes() + size_of_val(hashes)) as u64 > MAX_STORED_BYTES {
        return Err(too_many());
    }
    let value = |entries: &[[u8; 8]]| View { header: *header, body: Body::Sparse(entries) }.to_buffer::<PgBuffer>();
    Ok(with_entries(hashes, value).into_datum())
}

/// The header of the dense filter that a process hands over instead of this many hashes of an unsized build, if it may.
///
/// With room for what all processes of the plan may bring, filters of different sizes can be merged: an element of one
/// process sets as many bits in the largest as there are blocks of it to one of its own, but the processes with smaller
/// filters have fewer elements by that factor, so all together they fill the largest no more than it can take.
fn worth_of_bits<'a>(call: &Call, header: &Header<'a>, hashes: usize) -> Result<Option<Header<'a>>, Failure> {
    if hashes <= MOST_SENT.min(work_mem() / 8) {
        return Ok(None);
    }
    // Of several partial aggregates in one plan each process hands over as many states, which none of them can count.
    if !expression::is_only_aggregate(call) {
        return Ok(None);
    }
    let oversized = oversized(header, hashes as u64 * expression::processes())?;
    let is_less = oversized.dense_bytes() < (hashes as u64 * 8).min(MAX_STORED_BYTES);
    Ok(is_less.then_some(oversized))
}

/// The number of elements that a dense filter is as full as, by its estimate and four standard errors.
fn most_elements(view: &View<'_>) -> u64 {
    /// More than any filter that can be stored holds.
    const MOST: f64 = 1e12;
    let found = estimate::present(view).min(MOST);
    let h = &view.header;
    (found + 4.0 * estimate::standard_error(h.layout, h.hashes, h.blocks, found)).min(MOST).ceil() as u64
}
