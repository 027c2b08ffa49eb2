//! The state of `bloom_agg` and `bloom_union_agg`, in the aggregate's own memory.
//!
//! ```text
//! small:  | params | -    | … | len | sorted | room |  h0 h1 h2 …          |      64, 128, 256 … bytes
//! dense:  | params | bits | … | len | -      | 507  |  batch               |      bits ──▶ | stored header | payload |
//! large:  | params | bits | … | -   | -      | room |  128 lengths, 128 × batch |      for bits that exceed the cache
//! ```
//!
//! A group starts with room for three hashes and doubles it as it grows, dropping repeated hashes; once the distinct ones
//! take more bytes than the dense payload, it goes dense. From then on the hashes are a batch: the memory that a hash needs is
//! asked for when it arrives, its bits are set with those of the others. Payloads larger than the cache have a batch for
//! each of 128 ranges of hashes, whose blocks are neighbours: a full one is set with few misses of cache and page table. Without a capacity there is no dense payload to
//! compare with, and hashes beyond half of `work_mem` go to temporary files ([`super::spill`]). The parameters are shared by
//! all groups of a call site.
//!
//! This file is how a state grows; [`super::merge_state`] is how states merge and end.

use super::call::Call;
use super::spill::Spill;
use super::varlena::{PgBuffer, Value};
use crate::error::Failure;
use crate::settings;
use pg_bloom_core::merge::or_into;
use pg_bloom_core::{Body, Buffer, Code, Error, Header, Kind, Layout, MAX_STORED_BYTES, View, estimate, sparse};
use pgrx::pg_sys;

/// Bytes of a new state.
const FIRST_BYTES: usize = 64;
/// Bytes of a dense state, without its bits.
const BATCH_BYTES: usize = 4096;
/// Ranges of hashes of a large dense state, by their highest bits.
const PARTS: usize = 128;
/// Payloads from this many bytes on get a batch for each range.
const LARGE_BYTES: u64 = 1 << 20;
/// The most hashes of a range's batch.
const MOST_OF_PART: u64 = 8192;
/// From this many hashes on, a state that grows doesn't sort them when there are few repetitions to drop.
const MANY: u32 = 8192;

/// What the states of a call site have in common.
pub struct Params {
    /// The header of the filter being built; its kind is that of the elements, even if there are none yet.
    pub header: Header<'static>,
}

impl Params {
    /// Parameters that live as long as `context`.
    pub(super) fn allocate(context: pg_sys::MemoryContext, header: &Header<'_>) -> *const Params {
        let name = header.kind.name;
        // SAFETY: the allocation has room for the parameters and the name after them, which is valid UTF-8.
        unsafe {
            let params: *mut Params = pg_sys::MemoryContextAlloc(context, size_of::<Params>() + name.len()).cast();
            let copy: *mut u8 = params.add(1).cast();
            std::ptr::copy_nonoverlapping(name.as_ptr(), copy, name.len());
            let name = std::str::from_utf8_unchecked(std::slice::from_raw_parts(copy, name.len()));
            params.write(Params { header: Header { kind: Kind { name, ..header.kind }, ..*header } });
            params
        }
    }
}

/// The parameters that a call site used first, kept as long as the site; others are kept with the state that needs them.
pub struct Shared {
    first: *const Params,
    /// States are made for the caller to read at once, in the memory of the call.
    short_lived: bool,
}

impl Shared {
    /// For the functions of an aggregate that keep states.
    pub fn new() -> Self {
        Shared { first: std::ptr::null(), short_lived: false }
    }

    /// For functions whose states are read at once.
    pub fn short_lived() -> Self {
        Shared { first: std::ptr::null(), short_lived: true }
    }

    /// Parameters with this header.
    pub(super) fn params(&mut self, call: &Call, header: &Header<'_>) -> Result<*const Params, Failure> {
        if !call.is_prepared() {
            return Ok(Params::allocate(self.context(call)?, header));
        }
        if self.first.is_null() {
            self.first = Params::allocate(call.site_context()?, header);
        }
        // SAFETY: allocated here or before, in memory that lives as long as the site.
        if unsafe { &(*self.first).header } == header {
            return Ok(self.first);
        }
        Ok(Params::allocate(self.context(call)?, header))
    }

    /// The memory of new states.
    pub(super) fn context(&self, call: &Call) -> Result<pg_sys::MemoryContext, Failure> {
        let aggregate = call.require_aggregate()?;
        // SAFETY: reading a global that is always set.
        Ok(if self.short_lived { unsafe { pg_sys::CurrentMemoryContext } } else { aggregate })
    }
}

impl Default for Shared {
    fn default() -> Self {
        Shared::new()
    }
}

#[repr(C)]
pub(super) struct Head {
    pub(super) params: *const Params,
    /// The stored value being built, once dense.
    pub(super) dense: *mut pg_sys::varlena,
    /// More hashes of an unsized build, in files.
    pub(super) spill: *mut Spill,
    /// Hashes there are.
    pub(super) len: u32,
    /// How many of them, from the first, ascend strictly.
    sorted: u32,
    /// Hashes there is room for.
    room: u32,
    /// Whether the parameters' kind is that of the filter even without an element.
    pub(super) has_kind: bool,
    /// Whether there is a batch for each range of hashes.
    in_parts: bool,
    /// Whether `dense` is a value of someone else's, dense or sparse, which is to be read only.
    is_borrowed: bool,
}

/// The state of one group.
pub struct State {
    head: *mut Head,
}

impl State {
    /// Argument `i` of a support function.
    #[inline(always)]
    pub fn argument(call: &Call, i: usize) -> Option<State> {
        call.internal(i).map(|head| State { head })
    }

    /// A state without elements, with this header.
    ///
    /// # Errors
    /// 55000 for a call by hand.
    pub fn new(call: &Call, shared: &mut Shared, header: &Header<'_>) -> Result<State, Failure> {
        let context = shared.context(call)?;
        let params = shared.params(call, header)?;
        // SAFETY: the allocation has room for the head, which is written whole.
        unsafe {
            let head: *mut Head = pg_sys::MemoryContextAlloc(context, FIRST_BYTES).cast();
            let room = room_of(FIRST_BYTES);
            head.write(Head {
                params,
                dense: std::ptr::null_mut(),
                spill: std::ptr::null_mut(),
                len: 0,
                sorted: 0,
                room,
                has_kind: false,
                in_parts: false,
                is_borrowed: false,
            });
            Ok(State { head })
        }
    }

    /// A state that another process serialised, to be read while `value` is there.
    ///
    /// # Errors
    /// 22P03 for bytes that are no state; 55000 for a call by hand.
    pub fn borrowed(call: &Call, shared: &mut Shared, value: Value<'_>) -> Result<State, Failure> {
        let view = View::parse_state(&value)?;
        let mut state = State::new(call, shared, &view.header)?;
        let head = state.head_mut();
        (head.dense, head.is_borrowed) = (value.into_datum().cast_mut_ptr(), true);
        Ok(state)
    }

    #[inline(always)]
    pub(super) fn head(&self) -> &Head {
        // SAFETY: the state is alive, and borrowed.
        unsafe { &*self.head }
    }

    #[inline(always)]
    pub(super) fn head_mut(&mut self) -> &mut Head {
        // SAFETY: the state is alive, and borrowed for writing.
        unsafe { &mut *self.head }
    }

    /// The parameters.
    #[inline(always)]
    pub fn params(&self) -> &Params {
        // SAFETY: parameters live at least as long as the states that have them.
        unsafe { &*self.head().params }
    }

    pub(super) fn hashes(&mut self) -> &mut [u64] {
        let len = self.head().len as usize;
        // SAFETY: `len` hashes were written after the head.
        unsafe { std::slice::from_raw_parts_mut(self.head.add(1).cast(), len) }
    }

    /// Whether there is no element yet, nor bits that may be of one.
    pub(super) fn is_empty(&self) -> bool {
        self.head().len == 0 && !self.is_dense() && self.head().spill.is_null()
    }

    pub(super) fn is_dense(&self) -> bool {
        !self.head().dense.is_null()
    }

    /// The value being built, of a dense state.
    #[inline(always)]
    pub(super) fn dense(&self) -> PgBuffer {
        debug_assert!(self.is_dense());
        // SAFETY: the buffer is this state's own, and lives as long.
        unsafe { PgBuffer::from_pointer(self.head().dense) }
    }

    /// The hashes in files.
    pub(super) fn spill(&mut self) -> Option<&mut Spill> {
        // SAFETY: null, or files that live as long as the aggregate.
        unsafe { self.head_mut().spill.as_mut() }
    }

    /// The header of the filter as it is: without a kind as long as there are no elements.
    pub(super) fn header(&self) -> Header<'static> {
        let header = self.params().header;
        let without_kind = self.is_empty() && !self.head().has_kind;
        if without_kind { Header { kind: Kind::NONE, ..header } } else { header }
    }

    /// Adds an element.
    ///
    /// # Errors
    /// 54000 when there is no room for more.
    #[inline(always)]
    pub fn push(&mut self, call: &Call, hash: u64) -> Result<(), Failure> {
        if self.head().in_parts {
            self.push_to_part(hash);
            return Ok(());
        }
        if self.head().len == self.head().room {
            self.make_room(call)?;
            if self.head().in_parts {
                self.push_to_part(hash);
                return Ok(());
            }
        }
        if self.is_dense() {
            self.prefetch(hash);
        }
        let len = self.head().len;
        // SAFETY: there is room for another hash after `len` ones.
        unsafe { self.head.add(1).cast::<u64>().add(len as usize).write(hash) };
        self.head_mut().len = len + 1;
        Ok(())
    }

    /// The length of a range's batch, and its first hash.
    #[inline(always)]
    fn part(&mut self, part: usize) -> (*mut u32, *mut u64) {
        debug_assert!(self.head().in_parts && part < PARTS);
        let room = self.head().room as usize;
        // SAFETY: after the head there are the lengths of all batches, then `room` hashes for each.
        unsafe {
            let lengths: *mut u32 = self.head.add(1).cast();
            (lengths.add(part), lengths.add(PARTS).cast::<u64>().add(part * room))
        }
    }

    #[inline(always)]
    fn push_to_part(&mut self, hash: u64) {
        let part = (hash >> (u64::BITS - PARTS.trailing_zeros())) as usize;
        let (len, hashes) = self.part(part);
        // SAFETY: a batch is emptied when it is full, so there is room for another hash.
        let is_full = unsafe {
            hashes.add(*len as usize).write(hash);
            *len += 1;
            *len == self.head().room
        };
        if is_full {
            self.flush_part(part);
        }
    }

    #[inline(never)]
    fn flush_part(&mut self, part: usize) {
        let header = self.params().header;
        let (len, hashes) = self.part(part);
        // SAFETY: that many hashes were written to the batch.
        let hashes = unsafe { std::slice::from_raw_parts(hashes, std::mem::take(&mut *len) as usize) };
        let mut dense = self.dense();
        let payload = &mut dense.bytes_mut()[header.prefix_bytes()..];
        header.layout.insert_all(payload, header.hashes, header.blocks, hashes);
    }

    /// Asks for the memory that setting the bits of a hash needs, long before they are set with the rest of the batch.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let header = &self.params().header;
        header.layout.prefetch(&self.dense().bytes()[header.prefix_bytes()..], header.blocks, hash);
    }

    #[inline(never)]
    fn make_room(&mut self, call: &Call) -> Result<(), Failure> {
        if self.is_dense() {
            self.flush();
        } else if self.params().header.is_unsized() {
            self.grow_unsized(call)?;
        } else {
            self.grow_sized(call)?;
        }
        // What became dense keeps no memory for hashes before there is one.
        if self.head().room == 0 { self.make_batch() } else { Ok(()) }
    }

    /// Makes room for more hashes of a build with a capacity, or goes dense.
    fn grow_sized(&mut self, call: &Call) -> Result<(), Failure> {
        let header = self.params().header;
        let most = header.payload_bytes() as usize / 8;
        let (len, room) = (self.head().len, self.head().room);
        if len as usize > most {
            let mostly_new = self.head().sorted < len / 2;
            if mostly_new && self.go_dense_if_surely_more_than(call, most)? {
                return Ok(());
            }
            self.sort();
            if self.head().len as usize > most {
                self.go_dense(call.require_aggregate()?, header.blocks)?;
            }
            return Ok(());
        }
        if self.still_full_without_repetitions(room) {
            // An eighth above the limit is enough to be sure of having passed it.
            self.resize((bytes_of(room) * 2).min(bytes_of((most + most / 8 + 64) as u32)))?;
        }
        Ok(())
    }

    /// Makes room for more hashes of a build without a capacity, in memory or in files.
    fn grow_unsized(&mut self, call: &Call) -> Result<(), Failure> {
        let room = self.head().room;
        if !self.still_full_without_repetitions(room) {
            return Ok(());
        }
        if bytes_of(room) * 2 <= work_mem() / 2 {
            return self.resize(bytes_of(room) * 2);
        }
        self.spill_hashes(call)
    }

    /// Drops repeated hashes, unless there are many hashes and few repeated ones; says whether to make room for more.
    fn still_full_without_repetitions(&mut self, room: u32) -> bool {
        if room < MANY || !sparse::has_few_repetitions(self.hashes()) {
            self.sort();
        }
        self.head().len > room / 2
    }

    /// Moves the hashes to the files.
    pub(super) fn spill_hashes(&mut self, call: &Call) -> Result<(), Failure> {
        if self.head().sorted < self.head().len {
            Spill::group(self.hashes());
        }
        if self.head().spill.is_null() {
            self.head_mut().spill = Spill::new(call)?;
        }
        // SAFETY: files that live as long as the aggregate; the hashes are no part of them.
        unsafe { &mut *self.head().spill }.write(self.hashes())?;
        let head = self.head_mut();
        (head.len, head.sorted) = (0, 0);
        Ok(())
    }

    /// Goes dense if the bits of the hashes prove, without sorting them, that more than `most` are distinct: an element sets
    /// no more than k bits.
    fn go_dense_if_surely_more_than(&mut self, call: &Call, most: usize) -> Result<bool, Failure> {
        let header = self.params().header;
        header.check_size(settings::max_filter_bytes())?;
        let mut dense = PgBuffer::zeroed_in(call.require_aggregate()?, header.dense_bytes() as usize);
        let payload = &mut dense.bytes_mut()[header.prefix_bytes()..];
        header.layout.insert_all(payload, header.hashes, header.blocks, self.hashes());
        if estimate::count_ones(payload) > most as u64 * u64::from(header.hashes) {
            self.become_dense(dense)?;
            return Ok(true);
        }
        dense.free();
        Ok(false)
    }

    /// Sorts the hashes and drops repeated ones.
    pub(super) fn sort(&mut self) {
        let sorted = self.head().sorted as usize;
        let distinct = sparse::sort_distinct(self.hashes(), sorted) as u32;
        let head = self.head_mut();
        (head.len, head.sorted) = (distinct, distinct);
    }

    fn resize(&mut self, bytes: usize) -> Result<(), Failure> {
        if bytes / 8 > u32::MAX as usize {
            return Err(too_many());
        }
        // SAFETY: the state came from palloc, which keeps its memory context; its hashes fit the new size.
        self.head = unsafe { pg_sys::repalloc_huge(self.head.cast(), bytes).cast() };
        self.head_mut().room = room_of(bytes);
        Ok(())
    }

    /// Sets the bits of the batch.
    pub(super) fn flush(&mut self) {
        if self.head().in_parts {
            (0..PARTS).for_each(|part| self.flush_part(part));
            return;
        }
        let header = self.params().header;
        let mut dense = self.dense();
        let payload = &mut dense.bytes_mut()[header.prefix_bytes()..];
        header.layout.insert_all(payload, header.hashes, header.blocks, self.hashes());
        self.head_mut().len = 0;
    }

    /// Makes the state dense with `blocks` blocks, a multiple of those it has.
    pub(super) fn go_dense(&mut self, context: pg_sys::MemoryContext, blocks: u64) -> Result<(), Failure> {
        let own = self.params().header;
        if self.is_dense() && own.blocks == blocks {
            return Ok(());
        }
        let header = Header { blocks, ..own };
        // What will be folded in the end may be larger until then.
        header.check_size(if own.is_to_be_sized() { MAX_STORED_BYTES } else { settings::max_filter_bytes() })?;
        let mut dense = PgBuffer::zeroed_in(context, header.dense_bytes() as usize);
        self.with_view(|view| or_into(&mut dense.bytes_mut()[header.prefix_bytes()..], blocks, view));
        self.become_dense(dense)
    }

    /// Takes a dense value that has the bits of all elements.
    pub(super) fn become_dense(&mut self, dense: PgBuffer) -> Result<(), Failure> {
        let was_dense = self.is_dense().then(|| self.dense());
        let head = self.head_mut();
        head.dense = dense.into_pointer();
        (head.len, head.sorted) = (0, 0);
        match was_dense {
            Some(old) => old.free(),
            None => self.resize(size_of::<Head>())?,
        }
        Ok(())
    }

    /// Makes room for a batch of hashes, or one for each range of them if the payload is large.
    fn make_batch(&mut self) -> Result<(), Failure> {
        let payload_bytes = self.dense().bytes().len() as u64;
        if payload_bytes < LARGE_BYTES || self.params().header.layout == Layout::Classic {
            return self.resize(BATCH_BYTES);
        }
        let room = (payload_bytes / 2 / 8 / PARTS as u64).min(MOST_OF_PART) as usize;
        self.resize(size_of::<Head>() + PARTS * (size_of::<u32>() + room * 8))?;
        (self.head_mut().room, self.head_mut().in_parts) = (room as u32, true);
        for part in 0..PARTS {
            // SAFETY: there is room for the lengths of all batches.
            unsafe { *self.part(part).0 = 0 };
        }
        Ok(())
    }

    /// Shows the state as a filter, which may have no size and hashes nevertheless. Hashes in files are not shown.
    pub fn with_view<T>(&mut self, use_view: impl FnOnce(&View<'_>) -> T) -> T {
        if self.head().is_borrowed {
            // SAFETY: a value of variable length, which is there as long as the state.
            let value = unsafe { Value::detoast(self.head().dense.into()) };
            let view = View::parse_trusted(&value).expect("the bytes were checked when the state was made");
            return use_view(&view);
        }
        if self.is_dense() {
            self.flush();
            let header = self.params().header;
            let dense = self.dense();
            return use_view(&View { header, body: Body::Dense(&dense.bytes()[header.prefix_bytes()..]) });
        }
        self.sort();
        let header = self.header();
        with_entries(self.hashes(), |entries| use_view(&View { header, body: Body::Sparse(entries) }))
    }

    /// The state as the result of a support function.
    #[inline(always)]
    pub fn into_datum(self) -> pg_sys::Datum {
        pg_sys::Datum::from(self.head)
    }
}

/// Shows hashes as the entries of a sparse filter.
pub(super) fn with_entries<T>(hashes: &[u64], use_entries: impl FnOnce(&[[u8; 8]]) -> T) -> T {
    if cfg!(target_endian = "little") {
        // SAFETY: on this CPU a u64 lies in memory as its eight little-endian bytes.
        use_entries(unsafe { std::slice::from_raw_parts(hashes.as_ptr().cast::<[u8; 8]>(), hashes.len()) })
    } else {
        use_entries(&hashes.iter().map(|h| h.to_le_bytes()).collect::<Vec<_>>())
    }
}

/// The memory that an operation of a query may use, in bytes.
pub(super) fn work_mem() -> usize {
    // SAFETY: reading a setting of the process.
    unsafe { pg_sys::work_mem as usize * 1024 }
}

fn room_of(bytes: usize) -> u32 {
    ((bytes - size_of::<Head>()) / 8) as u32
}

fn bytes_of(room: u32) -> usize {
    room as usize * 8 + size_of::<Head>()
}

/// Refuses a state that would outgrow any filter.
pub(super) fn too_many() -> Failure {
    Error::new(Code::TooLarge, "too many elements for a bloom filter without a capacity")
        .hint("Give the aggregate a capacity: bloom_agg(element, capacity).")
        .into()
}
