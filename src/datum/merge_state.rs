//! How states of an aggregate merge, travel between processes, and end.
//!
//! An unsized build that is not finished is merged as hashes as long as there are few. A process that has many hands
//! over bits instead: those of a filter with room for what all processes together may bring, which is
//! folded to the size that the elements need in the end. Folding is exact, so nothing is lost by the detour.

use super::call::Call;
use super::state::{Params, Shared, State, too_many};
use super::varlena::{PgBuffer, Value};
use crate::error::{Failure, report_overfull};
use crate::settings;
use pg_bloom_core::build::{from_hashes, oversized, settle_dense};
use pg_bloom_core::merge::{merged_header, or_into};
use pg_bloom_core::{Body, Buffer, Header, MAX_STORED_BYTES, View, estimate, sparse};
use pgrx::pg_sys;

/// Hashes that a process hands over as they are; more take longer to send and to sort than bits.
const MOST_SENT: u32 = 1 << 17;

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
        let own = self.header();
        let nothing_yet = own.is_unsized() && self.is_empty();
        if own.is_to_be_sized() && matches!(view.body, Body::Dense(_)) && view.header.is_to_be_sized() {
            return self.absorb_oversized(call, shared, view, operation);
        }
        if self.is_dense() && own.is_to_be_sized() {
            let Body::Sparse(entries) = view.body else { return Err(too_many()) };
            return sparse::values(entries).try_for_each(|hash| self.push(call, hash));
        }
        let merged = merged_header(&own, &view.header, operation)?;
        match view.body {
            Body::Sparse([]) if view.header.is_unsized() => self.set_header(call, shared, &merged),
            Body::Sparse(entries) if !self.is_dense() && (nothing_yet || own.blocks == view.header.blocks) => {
                self.set_header(call, shared, &merged)?;
                sparse::values(entries).try_for_each(|hash| self.push(call, hash))
            }
            _ if own.is_unsized() && !nothing_yet || view.header.is_unsized() => Err(too_many()),
            Body::Dense(bits) if self.is_empty() && merged.blocks == view.header.blocks => {
                self.set_header(call, shared, &merged)?;
                self.become_dense(PgBuffer::copied_in(shared.context(call)?, merged.prefix_bytes(), bits))
            }
            _ => {
                // A state without a size has no bits to keep: it takes the other's size.
                let blocks = if nothing_yet { merged.blocks } else { own.blocks };
                self.set_header(call, shared, &Header { blocks, ..merged })?;
                self.go_dense(shared.context(call)?, merged.blocks)?;
                self.set_header(call, shared, &merged)?;
                self.flush();
                or_into(&mut self.dense().bytes_mut()[merged.prefix_bytes()..], merged.blocks, view);
                Ok(())
            }
        }
    }

    /// Merges the bits of an unsized build that went dense early: the smaller number of blocks is that of both.
    fn absorb_oversized(
        &mut self,
        call: &Call,
        shared: &mut Shared,
        view: &View<'_>,
        operation: &str,
    ) -> Result<(), Failure> {
        let Body::Dense(bits) = view.body else { return Err(too_many()) };
        let own = self.header();
        let kind = merged_header(&own, &Header { blocks: own.blocks, ..view.header }, operation)?.kind;
        if !self.is_dense() {
            self.go_oversized(call, shared.context(call)?, &Header { kind, ..view.header })?;
        }
        let (own, other) = (self.header(), view.header);
        let blocks = own.blocks.min(other.blocks);
        if blocks < own.blocks {
            self.flush();
            let header = Header { kind, ..other };
            let mut dense = PgBuffer::zeroed_in(shared.context(call)?, header.dense_bytes() as usize);
            let payload = &mut dense.bytes_mut()[header.prefix_bytes()..];
            let old = self.dense();
            own.layout.fold(&old.bytes()[own.prefix_bytes()..], payload, blocks, own.blocks / blocks);
            self.become_dense(dense)?;
            self.set_header(call, shared, &header)?;
        }
        let mut dense = self.dense();
        let payload = &mut dense.bytes_mut()[self.header().prefix_bytes()..];
        other.layout.fold(bits, payload, blocks, other.blocks / blocks);
        Ok(())
    }

    /// Makes an unsized build dense with the blocks of `header`, which are more than it will need.
    fn go_oversized(
        &mut self,
        call: &Call,
        context: pg_sys::MemoryContext,
        header: &Header<'_>,
    ) -> Result<(), Failure> {
        call.require_aggregate()?;
        let mut dense = PgBuffer::zeroed_in(context, header.dense_bytes() as usize);
        let payload = &mut dense.bytes_mut()[header.prefix_bytes()..];
        header.layout.insert_all(payload, header.hashes, header.blocks, self.hashes());
        if let Some(spill) = self.spill() {
            spill.for_each(|hashes| header.layout.insert_all(payload, header.hashes, header.blocks, hashes))?;
        }
        self.head_mut().spill = std::ptr::null_mut();
        self.head_mut().params = Params::allocate(context, header);
        self.head_mut().has_kind = true;
        self.become_dense(dense)
    }

    /// Changes the header; a name for the kind moves the payload of a dense state.
    fn set_header(&mut self, call: &Call, shared: &mut Shared, header: &Header<'_>) -> Result<(), Failure> {
        let own = self.params().header;
        if own == *header || (header.kind.is_none() && own == (Header { kind: own.kind, ..*header })) {
            self.head_mut().has_kind |= !header.kind.is_none();
            return Ok(());
        }
        if self.is_dense() && own.prefix_bytes() != header.prefix_bytes() && own.blocks == header.blocks {
            self.flush();
            let old = self.dense();
            let payload = &old.bytes()[own.prefix_bytes()..];
            let mut new = PgBuffer::zeroed_in(shared.context(call)?, header.prefix_bytes() + payload.len());
            new.bytes_mut()[header.prefix_bytes()..].copy_from_slice(payload);
            self.become_dense(new)?;
        }
        self.head_mut().params = shared.params(call, header)?;
        self.head_mut().has_kind = !header.kind.is_none();
        Ok(())
    }

    /// What another process goes on with, as bytes.
    ///
    /// # Errors
    /// 54000 for too many elements.
    pub fn serialise(&mut self, call: &Call) -> Result<pg_sys::Datum, Failure> {
        let header = self.params().header;
        let in_files = self.spill().map_or(0, |spill| spill.written());
        if header.is_unsized() && (in_files > 0 || self.head().len > MOST_SENT) {
            let elements = in_files + self.head().len as usize;
            let header = oversized_for_all(&header, elements as u64)?;
            self.go_oversized(call, call.require_aggregate()?, &header)?;
        }
        if self.is_dense() {
            return Ok(self.dense_datum());
        }
        self.sort();
        if !self.header().fits_sparse(self.head().len as usize) {
            self.go_dense(call.require_aggregate()?, header.blocks)?;
            return Ok(self.dense_datum());
        }
        Ok(self.with_view(|view| view.to_buffer::<PgBuffer>()).into_datum())
    }

    /// The value of a dense state, in place.
    fn dense_datum(&mut self) -> pg_sys::Datum {
        self.flush();
        let mut dense = self.dense();
        self.header().rewrite_dense(dense.bytes_mut());
        dense.into_datum()
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

    /// Counts the distinct hashes while setting their bits in a filter that has room for all, and folds that if many were
    /// repeated.
    fn finish_from_files(&mut self, call: &Call) -> Result<pg_sys::Datum, Failure> {
        self.spill_hashes(call.require_aggregate()?)?;
        let limit = settings::max_filter_bytes();
        let own = self.header();
        let Some(spill) = self.spill() else { return Err(too_many()) };
        let header = oversized_within(&own, spill.written() as u64, limit)?;
        let mut dense: PgBuffer = header.dense();
        let payload = &mut dense.bytes_mut()[header.prefix_bytes()..];
        let mut distinct = 0;
        spill.for_each(|hashes| {
            distinct += hashes.len() as u64;
            header.layout.insert_all(payload, header.hashes, header.blocks, hashes);
        })?;
        let settled = oversized(&own, distinct)?;
        if settled.blocks > header.blocks {
            settled.check_size(limit)?;
        }
        let filter = settle_dense::<PgBuffer>(&header, payload, distinct, limit)?;
        dense.free();
        Ok(filter.into_datum())
    }
}

/// The header of an unsized build for `elements` elements, or as many as `limit` bytes allow.
fn oversized_within<'a>(header: &Header<'a>, elements: u64, limit: u64) -> Result<Header<'a>, Failure> {
    let mut elements = elements;
    loop {
        let found = oversized(header, elements)?;
        if found.dense_bytes() <= limit || elements <= 1 {
            return Ok(found);
        }
        elements /= 2;
    }
}

/// The header of an unsized build of one of several processes, each of which may bring as many elements.
fn oversized_for_all<'a>(header: &Header<'a>, elements: u64) -> Result<Header<'a>, Failure> {
    // SAFETY: reading a setting of the process. The leader takes part, too.
    let processes = 1 + unsafe { pg_sys::max_parallel_workers_per_gather } as u64;
    oversized_within(header, elements.saturating_mul(processes), MAX_STORED_BYTES)
}

/// The number of elements that a dense filter has at most, by its estimate and four standard errors.
fn most_elements(view: &View<'_>) -> u64 {
    /// More than any filter that can be stored holds.
    const MOST: f64 = 1e12;
    let found = estimate::cardinality(view).min(MOST);
    let h = &view.header;
    (found + 4.0 * estimate::standard_error(h.layout, h.hashes, h.blocks, found)).min(MOST).ceil() as u64
}
