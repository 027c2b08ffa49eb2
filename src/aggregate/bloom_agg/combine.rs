//! How states of `bloom_agg` travel between processes, merge, and end.
//!
//! While a filter without a capacity is built, no process knows how many elements the others have:
//! workers that were planned may not start, and one process may send many states. So a process
//! sends something exact, whatever the others have: its hashes, or, where these would take more
//! bytes, the bits of the largest filter that is allowed. The process that merges states keeps
//! hashes until it receives bits. In the end, bits are folded to the size that the number of
//! elements needs. Folding gives the same bits as building at the smaller size, so the detour loses
//! nothing.

use super::super::elements::{ElementState, HeaderCache};
use super::super::spill::with_entries;
use super::{BeyondList, BloomHead, BloomState, most_bytes_in_memory, too_many_elements};
use crate::error::During;
use crate::pg::call::{Call, Result};
use crate::pg::value::varlena::PgBuffer;
use crate::settings;
use pg_bloom_core::filter::build::{
    fold_unsized_build, from_hashes, largest_header, size_unsized_build,
};
use pg_bloom_core::filter::merge::{merged_header, or_into};
use pg_bloom_core::filter::{estimate, sparse};
use pg_bloom_core::{Body, Buffer, Header, MAX_STORED_BYTES, View, interrupt, sizing};

impl BloomState<'_> {
    /// Adds the elements of another state of `bloom_agg`, which a parallel worker has sent as
    /// bytes, to this state. Both must have the same parameters. Each state has either a list of
    /// hashes (it is *sparse*) or the bits of a filter (it is *dense*), and the result has bits if
    /// one of them does.
    ///
    /// Without a capacity, a filter's final size isn't known before the end: it is *to be sized*.
    /// As a list such a state has no size at all, it is *unsized*; if it is dense, it has the bits
    /// of a large filter, which are folded to the final size in the end.
    ///
    /// `header_cache` has the header that the states of this call share. Fails with 42804 if the
    /// kinds of elements differ, with 54000 if the result would be too large, and with 58030 if a
    /// temporary file can't be read or written.
    pub fn absorb(
        &mut self,
        call: &Call,
        header_cache: &mut HeaderCache,
        other: &View<'_>,
    ) -> Result<()> {
        let other_header = other.header;
        let other_is_dense = matches!(other.body, Body::Dense(_));
        if other_is_dense && other_header.is_to_be_sized() && !self.is_dense() {
            // The other state's hashes are gone, so this one must have bits, too. They are folded
            // to the final size in the end.
            self.become_dense_before_sizing(call, header_cache, &other_header)?;
        }

        let own_header = self.present_header();
        let merged = merged_header(&own_header, &other_header).during(BloomHead::NAME)?;
        match other.body {
            // The hashes of an unsized state go into the bits of this one, whatever its size.
            Body::Sparse(entries) if self.is_dense() && other_header.is_unsized() => {
                self.add_all(call, entries)
            }
            // Both are lists of hashes, and the result has the same size.
            Body::Sparse(entries)
                if !self.is_dense() && own_header.blocks == other_header.blocks =>
            {
                self.set_header(call, header_cache, &merged)?;
                self.add_all(call, entries)
            }
            // The result has bits, for one of three reasons: the other state has bits; it has
            // hashes, and this one has bits of the final size; or both have hashes, for filters of
            // different sizes.
            _ => {
                if !self.is_dense() || own_header.blocks < merged.blocks {
                    self.become_dense(call, &merged)?;
                }
                self.set_header(call, header_cache, &merged)?;
                // Sets the bits that the other state has, or the bits of its hashes.
                or_into(self.flush_batch(), merged.blocks, other);
                Ok(())
            }
        }
    }

    /// Replaces the list of hashes of this state by the bits of a filter, before the size of the
    /// filter is known: another state, with `other_header`, has bits already, and both are merged.
    /// This state gets as many blocks of bits as the other one, or as many as the largest filter
    /// may have, if these are more. The bits are folded to their final size in the end.
    ///
    /// Fails with 42804 if the kinds of elements differ, with 54000 if the bits are too many, and
    /// with 58030 if the temporary file can't be read.
    fn become_dense_before_sizing(
        &mut self,
        call: &Call,
        header_cache: &mut HeaderCache,
        other_header: &Header<'_>,
    ) -> Result<()> {
        let own_header = self.present_header();
        let kind = merged_header(&own_header, other_header).during(BloomHead::NAME)?.kind;
        let size_of_other = Header { kind, ..*other_header };
        let largest_size = largest_header(&size_of_other, settings::max_filter_bytes())?;
        let header = if largest_size.blocks > size_of_other.blocks {
            &largest_size
        } else {
            &size_of_other
        };
        self.become_dense(call, header)?;
        self.set_header(call, header_cache, header)
    }

    /// Sets the bits of all hashes of a state that isn't dense, those in its list and in its
    /// temporary file, in `payload`: the bits of a filter with this header, all of which are 0.
    /// Fails with 58030 if the file can't be read.
    pub fn set_bits(&mut self, header: &Header<'_>, payload: &mut [u8]) -> Result<()> {
        let shape = header.shape();
        match self.file_and_list() {
            Some((spill, list)) => spill.for_each_batch(list, |hashes| {
                shape.insert_all(payload, hashes);
                Ok(())
            }),
            None => {
                shape.insert_all(payload, self.list());
                Ok(())
            }
        }
    }

    /// Adds all hashes of another state, which are ascending, each in eight little-endian bytes.
    /// Many hashes of an unsized state, which has no size yet, go to the temporary file at once.
    /// Fails with 54000 if the state can't become larger, and with 58030 if a file can't be read or
    /// written.
    fn add_all(&mut self, call: &Call, entries: &[[u8; 8]]) -> Result<()> {
        let is_unsized_list = self.header.is_unsized() && !self.is_dense();
        if is_unsized_list && size_of_val(entries) > most_bytes_in_memory() {
            // They would fill the memory and then go to the file.
            return self.file(call)?.write(entries);
        }
        for hash in interrupt::cancellable(sparse::hashes_in(entries)) {
            BloomHead::add(self, call, hash)?;
        }
        Ok(())
    }

    /// Replaces the state's header by the one that merging with another state results in. Fails
    /// with 55000 outside an aggregate.
    fn set_header(
        &mut self,
        call: &Call,
        header_cache: &mut HeaderCache,
        merged: &Header<'_>,
    ) -> Result<()> {
        let own_header = self.header;
        self.head().header = header_cache.merged_header_in_memory(call, own_header, merged)?;
        Ok(())
    }

    /// Returns the state as bytes, for another process of a parallel query: a list of hashes, or
    /// the bits of a filter if these take fewer bytes. If the filter has no size yet, the bits are
    /// those of the largest filter that is allowed. The state can still be used.
    ///
    /// Fails with 54000 for too many elements, and with 58030 if the temporary file can't be read.
    pub fn serialise(&mut self) -> Result<PgBuffer> {
        let header = self.present_header();
        // A list for a filter that has no size yet.
        if header.is_unsized() {
            let hashes_bytes = (self.num_hashes() * size_of::<u64>()) as u64;
            // For a very low rate there may be no filter of an allowed size: then only hashes can
            // be sent.
            return match largest_header(&header, settings::max_filter_bytes()) {
                Ok(largest) if hashes_bytes > largest.payload_bytes() => {
                    self.finish_dense(&largest)
                }
                _ => self.finish_sparse(&header),
            };
        }
        if self.is_dense() {
            return Ok(self.dense_view().to_buffer());
        }
        self.sort_and_drop_repetitions();
        if header.fits_sparse(self.len as usize) {
            self.finish_sparse(&header)
        } else {
            self.finish_dense(&header)
        }
    }

    /// Calls `visit` with all hashes of a state that isn't dense, in ascending order and each once,
    /// many at a time. If the state has a temporary file, hashes are read from there and from its
    /// list. Fails with 58030 if the file can't be read, and if `visit` fails.
    fn each_distinct(&mut self, mut visit: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
        match self.file_and_list() {
            Some((spill, list)) => spill.for_each_batch(list, |hashes| {
                let num_distinct = sparse::sort_distinct(hashes, 0);
                visit(&hashes[..num_distinct])
            }),
            None => {
                self.sort_and_drop_repetitions();
                visit(self.list())
            }
        }
    }

    /// Returns the hashes of a state that isn't dense as a stored filter in sparse form: this
    /// header, and the distinct hashes in ascending order.
    ///
    /// Fails with 54000 if that would exceed what a value can have, and with 58030 if the temporary
    /// file can't be read.
    fn finish_sparse(&mut self, header: &Header<'_>) -> Result<PgBuffer> {
        let most_hashes = self.num_hashes();
        let most_bytes = header.prefix_bytes() as u64 + most_hashes as u64 * 8;
        if most_bytes > MAX_STORED_BYTES {
            return Err(too_many_elements());
        }

        let mut value: PgBuffer = header.sparse(most_hashes);
        let mut end = header.prefix_bytes();
        self.each_distinct(|hashes| {
            let start = end;
            end = start + size_of_val(hashes);
            let written = &mut value.bytes_mut()[start..end];
            with_entries(hashes, |entries| interrupt::copy(written, entries.as_flattened()));
            Ok(())
        })?;
        // Repeated hashes were counted, but not written.
        value.truncate(end);
        Ok(value)
    }

    /// Returns the bits of all hashes of a state that isn't dense, as a dense value with this
    /// header. Fails with 58030 if the file can't be read.
    fn finish_dense(&mut self, header: &Header<'_>) -> Result<PgBuffer> {
        let mut value: PgBuffer = header.dense();
        let payload = &mut value.bytes_mut()[header.prefix_bytes()..];
        self.set_bits(header, payload)?;
        Ok(value)
    }

    /// Returns the filter of all elements that the state has. They are in its list of hashes, in a
    /// temporary file, or, in a dense state, in the bits that it has set. A filter without a given
    /// capacity gets its size now, by the number of its elements. The state can still be used, as
    /// window functions do.
    ///
    /// Fails with 54000 if the filter would be too large, and with 58030 if the file can't be read.
    pub fn finish(&mut self) -> Result<PgBuffer> {
        let limit = settings::max_filter_bytes();
        let header = self.present_header();
        match self.beyond_list {
            // The bits of a large filter: they are folded to the size that the elements need.
            BeyondList::Bits(_) if header.is_to_be_sized() => {
                let elements = most_elements(&self.dense_view());
                Ok(fold_unsized_build(&header, self.flush_batch(), elements, limit)?)
            }
            // The filter has had its size from the beginning.
            BeyondList::Bits(_) => Ok(self.dense_view().to_buffer()),
            BeyondList::File(_) => self.finish_spilled(),
            BeyondList::Nothing => {
                self.sort_and_drop_repetitions();
                Ok(from_hashes(&header, self.list(), limit)?)
            }
        }
    }

    /// Returns the finished filter of a state whose hashes are in a temporary file. The file is
    /// read twice: first to count the distinct hashes, so that the filter can be allocated with its
    /// final size. Fails with 54000 if the filter would be too large, and with 58030 if the file
    /// can't be read.
    fn finish_spilled(&mut self) -> Result<PgBuffer> {
        let mut num_distinct = 0;
        self.each_distinct(|hashes| {
            num_distinct += hashes.len();
            Ok(())
        })?;

        let header =
            size_unsized_build(&self.present_header(), num_distinct, settings::max_filter_bytes())?;
        if header.fits_sparse(num_distinct) {
            self.finish_sparse(&header)
        } else {
            self.finish_dense(&header)
        }
    }
}

/// Returns how many elements a filter should be sized for, if only its bits are known: at least as
/// many as it has, almost certainly.
///
/// That is the estimate from its bits plus four standard errors, a margin. If the estimate is
/// within the capacity, the most elements that this filter holds at its rate, so is the result: the
/// filter is the largest one that is allowed, and a filter for more elements could not be built.
fn most_elements(view: &View<'_>) -> u64 {
    /// More than any filter that can be stored holds. The estimate of a full filter is infinite.
    const MORE_THAN_ANY_HOLDS: f64 = 1e12;
    let header = &view.header;
    let estimated = estimate::elements_by_fill(view).min(MORE_THAN_ANY_HOLDS);
    let standard_error = estimate::standard_error(header.shape(), estimated);
    let with_margin = (estimated + 4.0 * standard_error).min(MORE_THAN_ANY_HOLDS);
    let with_margin = with_margin.ceil() as u64;

    let capacity = sizing::capacity_of(header.shape(), header.fpr);
    if estimated <= capacity as f64 {
        with_margin.min(capacity)
    } else {
        with_margin
    }
}
