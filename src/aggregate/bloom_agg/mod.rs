//! `bloom_agg`: how its state grows. [`combine`] has how states merge and end.
//!
//! ```text
//! rows ──transition──▶ state ──serialise──▶ bytes ──combine──▶ state ──final──▶ bloom
//! ```
//!
//! A state is a head and, behind it, a list of hashes. It is in one of three forms:
//!
//! ```text
//! list     | head | h0 h1 h2 … |                 all hashes
//! spilled  | head | h0 h1 h2 … | + file          the newest hashes; a file has the others
//! dense    | head | h0 h1 h2 … | + payload       a batch, whose bits are not set yet; the payload
//!                                                has the bits of the others
//! ```
//!
//! A group begins as a list with room for a few hashes, which doubles as it grows. When it is full,
//! repeated hashes are dropped first. Once the distinct hashes take more bytes than the payload of
//! the filter, the state becomes dense. Without a capacity, the payload's size isn't known before
//! the end; such a state is spilled once its list would exceed half of `work_mem`
//! ([`super::spill`]).
//!
//! A dense state prefetches the memory that a hash needs when the hash arrives, and sets the bits
//! of a whole batch later, when that memory has arrived, too.

mod combine;

use super::elements::{
    BuildHeader, ElementSite, ElementState, HeaderCache, parameters_of, require_same_parameters,
    transition,
};
use super::memory::{Payload, aggregate_memory};
use super::pointer::{self, AggregateState, StateHead, StateTag, deserialise, with_state};
use super::spill::{Spill, with_entries};
use crate::arguments::{FilterArguments, empty_bloom};
use crate::pg::call::{Call, Error, Outcome, Result, SqlState};
use crate::pg::value::varlena::PgBuffer;
use crate::{overfull, settings};
use pg_bloom_core::filter::merge::or_into;
use pg_bloom_core::filter::sparse;
use pg_bloom_core::{Body, Header, Kind, MAX_STORED_BYTES, View};
use pgrx::pg_sys::{self, Datum};

/// The bytes of a new state: most groups of a large GROUP BY have only a few elements.
const INITIAL_BYTES: usize = 64;
/// The bytes of a dense state's head and batch. The memory prefetched for so few hashes is still in
/// the processor's fastest cache when their bits are set.
const DENSE_STATE_BYTES: usize = 1024;
/// The bytes of hashes that a state may always keep in memory. For fewer, a file and its buffer of
/// 8 kB would cost more than they save.
const MIN_BYTES_IN_MEMORY: usize = 128 << 10;

/// The head of a state. The list of hashes follows it in memory.
#[repr(C)]
struct BloomHead {
    tag: StateTag,
    /// How many hashes the list has room for.
    room: u32,
    /// The header of the filter that is being built.
    header: BuildHeader,
    beyond_list: BeyondList,
    /// How many hashes the list has.
    len: u32,
    /// How many hashes from the first one on are strictly ascending.
    sorted_len: u32,
}

/// Where the elements are whose hashes aren't in the list.
enum BeyondList {
    /// There are none.
    Nothing,
    /// Their hashes are in a file, which lives as long as the aggregate.
    File(*mut Spill),
    /// Their bits are set in the payload of the filter.
    Bits(Payload),
}

// SAFETY: the struct is repr(C), and its first field is a tag, which is only ever set to TAG.
unsafe impl StateHead for BloomHead {
    const TAG: StateTag = StateTag::Bloom;
    const INITIAL_BYTES: usize = INITIAL_BYTES;
}

type BloomState<'c> = AggregateState<'c, BloomHead>;

impl ElementState for BloomHead {
    const SQL_NAME: &'static str = "bloom_agg";

    fn requested_header(arguments: &FilterArguments) -> Result<Header<'static>> {
        Ok(arguments.request()?.header(settings::max_filter_bytes())?)
    }

    fn empty(header: BuildHeader) -> BloomHead {
        BloomHead {
            tag: StateTag::Bloom,
            room: room_in(INITIAL_BYTES),
            header,
            beyond_list: BeyondList::Nothing,
            len: 0,
            sorted_len: 0,
        }
    }

    #[inline(always)]
    fn header(&self) -> &Header<'_> {
        self.header
    }

    #[inline(always)]
    fn add(state: &mut BloomState<'_>, call: &Call, hash: u64) -> Result<()> {
        if !state.add_if_room(hash) {
            state.make_room(call)?;
            assert!(state.add_if_room(hash), "make_room must make room");
        }
        Ok(())
    }
}

impl BloomState<'_> {
    #[inline(always)]
    fn head(&mut self) -> &mut BloomHead {
        // SAFETY: only this file and `combine` use the head. They set `len` to hashes that are
        // written, and `room` to what is allocated.
        unsafe { self.head_mut() }
    }

    /// Returns the list of hashes.
    fn list(&mut self) -> &mut [u64] {
        let len = self.len as usize;
        // SAFETY: the first `len` hashes behind the head were written.
        unsafe { std::slice::from_raw_parts_mut(self.behind_head().cast(), len) }
    }

    /// Returns whether the state has a payload, in which bits are set.
    fn is_dense(&self) -> bool {
        matches!(self.beyond_list, BeyondList::Bits(_))
    }

    /// Returns the temporary file of a state that has one, and the state's list of those hashes
    /// that aren't in the file, ascending and each once. `None` for a state without a file.
    fn file_and_list(&mut self) -> Option<(&mut Spill, &[u64])> {
        let BeyondList::File(spill) = self.beyond_list else {
            return None;
        };
        self.sort_and_drop_repetitions();
        // SAFETY: the file lives as long as the state, which alone points to it. It is apart from
        // the list, so both can be borrowed.
        let spill = unsafe { &mut *spill };
        Some((spill, self.list()))
    }

    /// Returns how many hashes a state that isn't dense has, in its list and in its temporary file,
    /// repeated ones included.
    fn num_hashes(&self) -> usize {
        let hashes_in_file = match self.beyond_list {
            // SAFETY: the file lives as long as the state.
            BeyondList::File(spill) => unsafe { &*spill }.num_hashes(),
            _ => 0,
        };
        hashes_in_file + self.len as usize
    }

    /// Returns the header of the filter as it is now. It has no key kind as long as the state has
    /// no elements.
    fn present_header(&self) -> Header<'static> {
        let is_empty = self.len == 0 && matches!(self.beyond_list, BeyondList::Nothing);
        if is_empty {
            Header { kind: Kind::NONE, ..*self.header }
        } else {
            *self.header
        }
    }

    /// Appends a hash to the list behind the state's head if there is room, and returns whether
    /// there was. In a dense state, which has the bits of a filter, the list is a batch whose bits
    /// are set later: the memory that they need is prefetched now. Neither fails nor calls
    /// PostgreSQL.
    #[inline(always)]
    fn add_if_room(&mut self, hash: u64) -> bool {
        let len = self.len;
        if len >= self.room {
            return false;
        }
        if let BeyondList::Bits(payload) = &self.beyond_list {
            self.header.shape().prefetch(payload, hash);
        }
        let end_of_list = self.behind_head().cast::<u64>().wrapping_add(len as usize);
        // SAFETY: the list has room for a hash after the first `len`.
        unsafe { end_of_list.write(hash) };
        self.head().len = len + 1;
        true
    }

    /// Sets the bits of all hashes in the list of a dense state, which are a batch, and empties the
    /// list. Returns the filter's bits. Panics if the state isn't dense.
    fn flush_batch(&mut self) -> &mut [u8] {
        let shape = self.header.shape();
        let batch: *const [u64] = self.list();
        let head = self.head();
        head.len = 0;
        let BeyondList::Bits(payload) = &mut head.beyond_list else {
            unreachable!("only a dense state has a batch")
        };
        // SAFETY: the hashes are behind the head, apart from the payload, and stay there unchanged.
        shape.insert_all(payload, unsafe { &*batch });
        payload
    }

    /// Makes room for at least one more hash in the list of a state. Depending on its form and on
    /// the number of hashes, the list gets longer, repeated hashes are dropped, hashes go to a
    /// temporary file, or their bits are set in the filter.
    ///
    /// Fails with 54000 if the state can't become larger, and with 58030 if a file can't be read or
    /// written.
    #[inline(never)]
    fn make_room(&mut self, call: &Call) -> Result<()> {
        if self.is_dense() {
            self.flush_batch();
        } else if self.header.is_unsized() {
            self.grow_unsized(call)?;
        } else {
            self.grow_sized(call)?;
        }

        // A state that has just become dense has no room for a batch of hashes. It gets room only
        // here, for its next hash, since many groups get none.
        if self.room == 0 {
            self.resize(DENSE_STATE_BYTES)?;
        }
        Ok(())
    }

    /// Makes room in the list of a state whose filter has a known size. If the list would take more
    /// bytes than the bits of the filter, the state becomes dense: the bits replace the list. Fails
    /// with 54000 if the filter is too large.
    fn grow_sized(&mut self, call: &Call) -> Result<()> {
        // A longer list takes more bytes than the filter's bits, its payload.
        let most_hashes = self.header.payload_bytes() as usize / size_of::<u64>();

        if self.len as usize > most_hashes {
            self.sort_and_drop_repetitions();
            if self.len as usize > most_hashes {
                self.become_dense(call, self.header)?;
            }
        } else if self.drop_repetitions_and_check_full() {
            // There is some room above the limit. Otherwise a state that is just below it would
            // sort its list for every few repeated hashes.
            let most_room = most_hashes + most_hashes / 8 + 64;
            let most_room = u32::try_from(most_room).unwrap_or(u32::MAX);
            let doubled_bytes = bytes_with_room(self.room) * 2;
            self.resize(doubled_bytes.min(bytes_with_room(most_room)))?;
        }
        Ok(())
    }

    /// Makes room in the list of a state whose filter has no size yet: repeated hashes are dropped,
    /// the list grows, up to half of `work_mem`, or its hashes go to a temporary file. Fails with
    /// 54000 if the list has more hashes than can be counted, and with 58030 if the file can't be
    /// read or written.
    fn grow_unsized(&mut self, call: &Call) -> Result<()> {
        if !self.drop_repetitions_and_check_full() {
            return Ok(());
        }
        let doubled_bytes = bytes_with_room(self.room) * 2;
        if doubled_bytes <= most_bytes_in_memory() {
            return self.resize(doubled_bytes);
        }

        let spill: *mut Spill = self.file(call)?;
        with_entries(self.list(), |entries| {
            // SAFETY: the file lives as long as the state, and is apart from the list.
            unsafe { &mut *spill }.write(entries)
        })?;
        self.empty_list();
        Ok(())
    }

    /// Drops repeated hashes from a full list, and returns whether more than half of it is still
    /// used: then it should get more room.
    fn drop_repetitions_and_check_full(&mut self) -> bool {
        self.sort_and_drop_repetitions();
        self.len > self.room / 2
    }

    /// Empties the list, after its hashes went to the file or their bits were set.
    fn empty_list(&mut self) {
        let head = self.head();
        head.len = 0;
        head.sorted_len = 0;
    }

    /// Returns the temporary file of a state that isn't dense, which is created if there is none
    /// yet. Fails with 55000 outside an aggregate.
    fn file(&mut self, call: &Call) -> Result<&mut Spill> {
        let spill = match self.beyond_list {
            BeyondList::File(spill) => spill,
            _ => Spill::new(call)?,
        };
        self.head().beyond_list = BeyondList::File(spill);
        // SAFETY: the file lives as long as the state, which alone points to it.
        Ok(unsafe { &mut *spill })
    }

    /// Sorts the list and drops repeated hashes.
    fn sort_and_drop_repetitions(&mut self) {
        let sorted_len = self.sorted_len as usize;
        let num_distinct = sparse::sort_distinct(self.list(), sorted_len) as u32;
        let head = self.head();
        head.len = num_distinct;
        head.sorted_len = num_distinct;
    }

    /// Moves the state into an allocation of `bytes` bytes, head included; the list of hashes gets
    /// the rest. Fails with 54000 if the list would have more hashes than can be counted.
    fn resize(&mut self, bytes: usize) -> Result<()> {
        if bytes / size_of::<u64>() > u32::MAX as usize {
            return Err(too_many_elements());
        }
        assert!(bytes >= bytes_with_room(self.len), "the hashes in the list must fit");
        // SAFETY: the hashes in the list fit, as was just checked.
        unsafe { self.reallocate(bytes) };
        self.head().room = room_in(bytes);
        Ok(())
    }

    /// Makes the state dense: sets the bits of all of its hashes in a new payload, the bits of a
    /// filter with this header, which replaces the list and the temporary file. A state that is
    /// dense already gets a larger payload, whose blocks must be a multiple of those that it has
    /// now.
    ///
    /// Fails with 54000 if the filter would be too large, and with 58030 if the file can't be read.
    fn become_dense(&mut self, call: &Call, header: &Header<'_>) -> Result<()> {
        // A build without a capacity is folded in the end. Until then it may be larger than a
        // filter may be.
        let most_bytes = if header.is_to_be_sized() {
            MAX_STORED_BYTES
        } else {
            settings::max_filter_bytes()
        };
        header.check_size(most_bytes)?;

        let payload_bytes = header.payload_bytes() as usize;
        let mut payload = Payload::zeroed_in(aggregate_memory(call)?, payload_bytes);
        if self.is_dense() {
            or_into(&mut payload, header.blocks, &self.dense_view());
        } else {
            self.set_bits(header, &mut payload)?;
        }

        let beyond_list_before =
            std::mem::replace(&mut self.head().beyond_list, BeyondList::Bits(payload));
        self.empty_list();
        if let BeyondList::Bits(old_payload) = beyond_list_before {
            old_payload.free();
        } else {
            // The list may have been long: its memory is returned.
            self.resize(size_of::<BloomHead>())?;
        }
        Ok(())
    }

    /// Returns the filter of a dense state, read in place.
    fn dense_view(&mut self) -> View<'_> {
        View { header: *self.header, body: Body::Dense(self.flush_batch()) }
    }
}

/// Returns how many bytes of hashes a build without a capacity keeps in memory: half of `work_mem`,
/// which is what one operation of a query may use. Sorting and merging need the other half.
fn most_bytes_in_memory() -> usize {
    // SAFETY: this is a setting of the process, which only the process itself changes.
    let kilobytes = unsafe { pg_sys::work_mem as usize };
    (kilobytes * 1024 / 2).max(MIN_BYTES_IN_MEMORY)
}

/// Returns how many hashes fit in a state of `bytes` bytes.
fn room_in(bytes: usize) -> u32 {
    ((bytes - size_of::<BloomHead>()) / size_of::<u64>()) as u32
}

/// Returns the bytes of a state with room for `room` hashes.
fn bytes_with_room(room: u32) -> usize {
    size_of::<BloomHead>() + room as usize * size_of::<u64>()
}

/// Returns the error 54000 for more elements than a build without a capacity can have.
fn too_many_elements() -> Error {
    Error::new(
        SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "too many elements for a bloom filter without a capacity",
    )
    .hint("Give the aggregate a capacity: bloom_agg(element, capacity).")
}

/// Adds the element of one row to the state, as the transition function does, in the most frequent
/// case: the element can be hashed in place, without calling PostgreSQL, and the state has room for
/// the hash. Returns the state. `None` leaves the row to the transition function, and nothing is
/// changed.
///
/// Neither calls PostgreSQL nor fails or panics, so it can run without the guard that catches
/// PostgreSQL's errors, which would take a good part of its time.
#[inline(always)]
fn add_row_in_place(call: &Call) -> Option<Datum> {
    let site = call.recalled::<ElementSite>()?;
    // SAFETY: the transition function is declared with the state as argument 0. Nothing else in
    // this call uses it, unless this function returns `None`, and then it has not been moved.
    let mut state = unsafe { BloomState::argument_without_check(call, 0)? };
    let hash = site.hash_in_place(call, state.header())?;
    state.add_if_room(hash).then(|| state.into_datum())
}

/// Implements the combine function of `bloom_agg`: merges the state in argument 1, which another
/// process has sent as bytes, into the state in argument 0; into a new one for NULL.
///
/// Fails with 22023 if the parameters of both differ, with 42804 if the kinds of their elements do,
/// with 54000 if the result would be too large, with 58030 if a temporary file can't be read or
/// written, and with 55000 outside an aggregate.
fn combine_states(call: &Call) -> Outcome {
    pointer::combine(call, |own: Option<BloomState>, bytes| {
        let header_cache = HeaderCache::of_site(call)?;
        let other = View::parse_partial(bytes)?;
        let mut state = match own {
            Some(state) => state,
            None => AggregateState::with_header(call, header_cache, &other.header)?,
        };
        let own_parameters = parameters_of(state.header());
        require_same_parameters::<BloomHead>(own_parameters, parameters_of(&other.header))?;
        state.absorb(call, header_cache, &other)?;
        Ok(state)
    })
}

/// Returns a state as bytes, for another process.
fn serialise(call: &Call) -> Outcome {
    let bytes = with_state(call, |state: &mut BloomState| state.serialise())?;
    Ok(bytes.map(PgBuffer::into_datum))
}

/// A filter, and whether it can hold more elements than it was made for.
struct FinishedFilter {
    filter: PgBuffer,
    may_be_overfull: bool,
}

/// Implements the final function of `bloom_agg`: returns the filter of the state in argument 0, or
/// an empty filter for NULL, as without rows. Raises a warning, or an error as `pg_bloom.overfill`
/// says, if the filter is overfull. Fails with 54000 if the filter would be too large, and with
/// 58030 if a temporary file can't be read.
fn finish(call: &Call) -> Outcome {
    let finished = with_state(call, |state: &mut BloomState| {
        let filter = state.finish()?;
        // A filter that got its size from the number of its elements is not overfull, except where
        // that number was estimated, for a dense state.
        let was_sized_exactly = state.present_header().is_to_be_sized() && !state.is_dense();
        Ok(FinishedFilter { filter, may_be_overfull: !was_sized_exactly })
    })?;

    let Some(FinishedFilter { filter, may_be_overfull }) = finished else {
        return empty_bloom().map(Some);
    };
    if may_be_overfull {
        overfull::finish(call, overfull::BUILT, filter)
    } else {
        Ok(Some(filter.into_datum()))
    }
}

pg_functions! {
    // SAFETY: the function neither calls PostgreSQL nor panics, as its comment says.
    bloom_agg_transition => transition::<BloomHead>, first unsafe add_row_in_place;
    bloom_agg_combine => combine_states;
    bloom_agg_serialise => serialise;
    bloom_agg_deserialise => deserialise::<BloomHead>;
    bloom_agg_final => finish;
}
