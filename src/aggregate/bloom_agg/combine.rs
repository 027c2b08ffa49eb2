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
use crate::error::WithFunctionName;
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
    /// Adds the elements of another state of `bloom_agg` to this state. `other` is that state as a
    /// parallel worker has sent it, in the form of a stored filter: either a list of hashes (it is
    /// *sparse*), or bits (it is *dense*). This state has one of these forms, too.
    ///
    /// | this state | the other one | result |
    /// |---|---|---|
    /// | list | list, for a filter of the same size | list |
    /// | list | list, for a filter of another size | bits |
    /// | list | bits | bits |
    /// | bits | either | bits |
    ///
    /// Both must have the same parameters. `header_cache` has the header that the states of this
    /// call share. Fails with 42804 if the kinds of elements differ, with 54000 if the result would
    /// be too large, and with 58030 if a temporary file can't be read or written.
    pub fn absorb(
        &mut self,
        call: &Call,
        header_cache: &mut HeaderCache,
        other: &View<'_>,
    ) -> Result<()> {
        match other.body {
            Body::Sparse(hashes) => self.absorb_hashes(call, header_cache, other, hashes),
            Body::Dense(_) => self.absorb_bits(call, header_cache, other),
        }
    }

    /// Adds the elements of another state, which is a list of hashes, to this one: see
    /// [`BloomState::absorb`]. `other_hashes` is that list, ascending, each hash in eight
    /// little-endian bytes.
    fn absorb_hashes(
        &mut self,
        call: &Call,
        header_cache: &mut HeaderCache,
        other: &View<'_>,
        other_hashes: &[[u8; 8]],
    ) -> Result<()> {
        let merged = self.header_merged_with(&other.header)?;

        let have_same_size = self.header.blocks == other.header.blocks;
        if self.is_dense() {
            // If no capacity was given, the hashes can be added to bits of any size: the bits are
            // brought to the final size in the end.
            if other.header.is_unsized() {
                return self.add_all(call, other_hashes);
            }
        } else if have_same_size {
            self.set_header(call, header_cache, &merged)?;
            return self.add_all(call, other_hashes);
        }
        // The filters have sizes, and these may differ: the hashes become bits.
        self.merge_as_bits(call, header_cache, &merged, other)
    }

    /// Adds the elements of another state, of which only the bits are known, to this one: see
    /// [`BloomState::absorb`].
    fn absorb_bits(
        &mut self,
        call: &Call,
        header_cache: &mut HeaderCache,
        other: &View<'_>,
    ) -> Result<()> {
        // If no capacity was given, a list has no size, unlike the bits of the other state.
        if other.header.is_to_be_sized() && !self.is_dense() {
            self.become_dense_before_sizing(call, header_cache, &other.header)?;
        }
        let merged = self.header_merged_with(&other.header)?;
        self.merge_as_bits(call, header_cache, &merged, other)
    }

    /// Returns the header of the filter that this state and another one make together. Fails with
    /// 42804 if the kinds of their elements differ.
    fn header_merged_with<'a>(&self, other_header: &Header<'a>) -> Result<Header<'a>> {
        merged_header(&self.present_header(), other_header).with_function_name(BloomHead::SQL_NAME)
    }

    /// Makes this state one of bits with the header `merged`, unless it is already, and sets in it
    /// the bits of another state: those that it has, or those of its hashes.
    ///
    /// Fails with 54000 if the bits are too many, and with 58030 if the temporary file of this
    /// state can't be read.
    fn merge_as_bits(
        &mut self,
        call: &Call,
        header_cache: &mut HeaderCache,
        merged: &Header<'_>,
        other: &View<'_>,
    ) -> Result<()> {
        if !self.is_dense() || self.header.blocks < merged.blocks {
            self.become_dense(call, merged)?;
        }
        self.set_header(call, header_cache, merged)?;
        or_into(self.flush_batch(), merged.blocks, other);
        Ok(())
    }

    /// Replaces the list of hashes of this state by bits, before it is known how large the filter
    /// will be: another state, with `other_header`, has only bits left, and both are to be merged.
    ///
    /// The size follows from the number of elements, in the end; then the bits are *folded*, each
    /// onto the bit that it has in the smaller filter. Bits can be folded but not unfolded, so this
    /// state gets as many blocks of bits as the final filter can have at most: those of the largest
    /// filter that is allowed, or those of the other state, if that has more.
    ///
    /// Fails with 42804 if the kinds of elements differ, with 54000 if the bits are too many, and
    /// with 58030 if the temporary file can't be read.
    fn become_dense_before_sizing(
        &mut self,
        call: &Call,
        header_cache: &mut HeaderCache,
        other_header: &Header<'_>,
    ) -> Result<()> {
        let kind = self.header_merged_with(other_header)?.kind;
        let as_large_as_other = Header { kind, ..*other_header };
        let largest_allowed = largest_header(&as_large_as_other, settings::max_filter_bytes())?;
        let header = if largest_allowed.blocks > as_large_as_other.blocks {
            &largest_allowed
        } else {
            &as_large_as_other
        };
        self.become_dense(call, header)?;
        self.set_header(call, header_cache, header)
    }

    /// Sets in `payload`, the bits of a filter with this header, the bits of all hashes of a state
    /// that isn't dense: those in its list and in its temporary file. All bits must be 0 before.
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

    /// Adds all hashes of another state, which are ascending, each in eight little-endian bytes. If
    /// they are too many for memory, and the filter has no size yet, they go to this state's
    /// temporary file at once.
    /// Fails with 54000 if the state can't become larger, and with 58030 if a file can't be read or
    /// written.
    fn add_all(&mut self, call: &Call, entries: &[[u8; 8]]) -> Result<()> {
        // A state whose filter has no size yet can't set bits, so it keeps all hashes.
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

    /// Returns the finished filter of a state whose hashes are in a temporary file. A state has one
    /// only if no capacity was given, so that the size of the filter follows from the number of its
    /// distinct hashes. The file is read twice: to count these, and to write the filter.
    ///
    /// Fails with 54000 if the filter would be too large, and with 58030 if the file can't be read.
    fn finish_spilled(&mut self) -> Result<PgBuffer> {
        let mut num_distinct = 0;
        self.each_distinct(|hashes| {
            num_distinct += hashes.len();
            Ok(())
        })?;

        let header_without_size = self.present_header();
        let limit = settings::max_filter_bytes();
        let header = size_unsized_build(&header_without_size, num_distinct, limit)?;

        // A filter is stored as the sorted list of its hashes as long as that takes no more bytes
        // than its bits.
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
