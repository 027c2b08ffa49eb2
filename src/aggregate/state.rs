//! The state of `bloom_agg`, in the aggregate's own memory.
//!
//! ```text
//! small:  | params | -     | … | len | sorted | room |  h0 h1 h2 …  |      64, 128, 256 … bytes
//! dense:  | params | dense | … | len | -      | room |  batch        |     dense ──▶ | payload |
//! ```
//!
//! A group starts with room for three hashes and doubles it as it grows, dropping repeated hashes; once the distinct
//! ones take more bytes than the dense payload, it goes dense. From then on the hashes are a batch whose bits are to be
//! set ([`batch`]). Without a capacity there is no dense payload to compare with, and hashes beyond half of
//! `work_mem` go to a temporary file ([`super::spill`]). The parameters are shared by all groups of a call site.
//!
//! This file is how a state grows; [`merge`] is how states merge and end. What its head says, only these and
//! [`batch`] change.

mod batch;
mod merge;

use super::memory::Payload;
use super::parameters::{Params, allocate};
use super::site::ElementState;
use super::spill::{Spill, with_entries};
use super::tag::{Group, Head, Tag};
use crate::arguments::empty_bloom;
use crate::pg::call::Call;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::memory::Context;
use crate::pg::value::varlena::Value;
use crate::settings;
use pg_bloom_core::filter::merge::or_into;
use pg_bloom_core::filter::sparse;
use pg_bloom_core::{Body, Header, Kind, MAX_STORED_BYTES, Partial, View};
use pgrx::pg_sys;

const FIRST_BYTES: usize = 64;
/// Bytes of a dense state, without its bits: few enough hashes that what was prefetched for them is in the fastest
/// cache still.
const BATCH_BYTES: usize = 1024;
/// The fewest bytes of hashes that are worth a file.
const WORTH_A_FILE: usize = 128 << 10;
/// From this many hashes on, a state that grows doesn't sort them when there are few repetitions to drop.
const MANY: u32 = 8192;

#[repr(C)]
pub struct BloomHead {
    tag: Tag,
    /// Whether the parameters' kind is that of the filter even without an element.
    has_kind: bool,
    /// Whether the elements are borrowed: a value, dense or sparse, that is only read.
    is_borrowed: bool,
    /// Hashes there is room for.
    room: u32,
    params: Params,
    /// The payload being built, once dense; or a borrowed value, of variable length.
    dense: *mut u8,
    /// Further hashes of an unsized build, in a file.
    spill: *mut Spill,
    /// Hashes in memory.
    len: u32,
    /// How many of them, from the first, ascend strictly.
    sorted: u32,
}

// SAFETY: it begins with its tag.
unsafe impl Head for BloomHead {
    const TAG: Tag = Tag::Bloom;
}

pub type BloomState<'c> = Group<'c, BloomHead>;

impl<'c> ElementState<'c> for BloomState<'c> {
    unsafe fn new(context: Context<'c>, params: Params) -> BloomState<'c> {
        let head = BloomHead {
            tag: Tag::Bloom,
            params,
            dense: std::ptr::null_mut(),
            spill: std::ptr::null_mut(),
            len: 0,
            sorted: 0,
            room: room_of(FIRST_BYTES),
            has_kind: false,
            is_borrowed: false,
        };
        Group::allocate(context, FIRST_BYTES, head)
    }

    #[inline(always)]
    fn params(&self) -> &Header<'_> {
        self.own_params()
    }

    #[inline(always)]
    fn push(&mut self, call: &Call, hash: u64) -> Result<()> {
        if self.len == self.room {
            self.make_room(call)?;
            assert!(self.len < self.room, "there is room");
        }
        // SAFETY: there is room now.
        unsafe { self.push_to_batch(hash) };
        Ok(())
    }

    fn deserialised(call: &'c Call, value: Value<'c>) -> Result<BloomState<'c>> {
        let partial = Partial::parse(&value)?;
        let context = call.context();
        // SAFETY: the parameters are in the same memory.
        let mut state = unsafe { BloomState::new(context, allocate(context, &partial.view().header)) };
        let head = state.head();
        (head.dense, head.is_borrowed) = (value.into_datum().cast_mut_ptr(), true);
        Ok(state)
    }

    fn finish(&mut self, call: &Call) -> Result<pg_sys::Datum> {
        self.finished(call)
    }

    fn empty() -> Result<pg_sys::Datum> {
        empty_bloom()
    }
}

impl BloomState<'_> {
    /// The parameters, which live at least as long as the state, and are not shown to others without its lifetime.
    #[inline(always)]
    fn own_params(&self) -> &Header<'static> {
        // SAFETY: as was promised when they became those of the state.
        unsafe { &*self.params }
    }

    #[inline(always)]
    fn head(&mut self) -> &mut BloomHead {
        // SAFETY: only this file and those below it have it, and set nothing but what is there.
        unsafe { self.head_mut() }
    }

    fn hashes(&mut self) -> &mut [u64] {
        let len = self.len as usize;
        // SAFETY: `len` hashes were written after the head.
        unsafe { std::slice::from_raw_parts_mut(self.behind_head().cast(), len) }
    }

    /// Whether there are no elements yet, nor bits that may belong to one.
    fn is_empty(&self) -> bool {
        self.len == 0 && !self.is_dense() && self.spill.is_null()
    }

    fn is_dense(&self) -> bool {
        !self.dense.is_null()
    }

    /// The hashes in a file, and those in memory, which ascend.
    fn spilled(&mut self) -> Option<(&mut Spill, &[u64])> {
        if self.spill.is_null() {
            return None;
        }
        self.sort();
        // SAFETY: a file that lives as long as the aggregate; the hashes are no part of it.
        let spill = unsafe { &mut *self.spill };
        Some((spill, self.hashes()))
    }

    /// The number of hashes of a state that is not dense, in memory and in the file, repetitions included.
    fn count(&self) -> usize {
        // SAFETY: null, or a file that lives as long as the aggregate.
        let in_file = unsafe { self.spill.as_ref() }.map_or(0, Spill::written);
        in_file + self.len as usize
    }

    /// The header of the filter as it is: without a kind as long as there are no elements.
    fn header(&self) -> Header<'static> {
        let header = *self.own_params();
        let without_kind = self.is_empty() && !self.has_kind;
        if without_kind { Header { kind: Kind::NONE, ..header } } else { header }
    }

    #[inline(never)]
    fn make_room(&mut self, call: &Call) -> Result<()> {
        if self.is_dense() {
            self.flush();
        } else if self.own_params().is_unsized() {
            self.grow_unsized(call)?;
        } else {
            self.grow_sized(call)?;
        }
        // A state that became dense allocates its batch with the first hash after that.
        if self.room == 0 { self.resize(BATCH_BYTES) } else { Ok(()) }
    }

    /// Makes room for more hashes of a build with a capacity, or goes dense.
    fn grow_sized(&mut self, call: &Call) -> Result<()> {
        let header = *self.own_params();
        let most = header.payload_bytes() as usize / 8;
        let (len, room) = (self.len, self.room);
        if len as usize > most {
            self.sort();
            if self.len as usize > most {
                self.go_dense(call.require_aggregate()?, header.blocks)?;
            }
            return Ok(());
        }
        if self.still_full_without_repetitions(room) {
            // An eighth above the limit, so that repetitions are not looked for with each element there.
            let most = u32::try_from(most + most / 8 + 64).unwrap_or(u32::MAX);
            self.resize((bytes_of(room) * 2).min(bytes_of(most)))?;
        }
        Ok(())
    }

    /// Makes room for more hashes of a build without a capacity, in memory or in a file.
    fn grow_unsized(&mut self, call: &Call) -> Result<()> {
        let room = self.room;
        if !self.still_full_without_repetitions(room) {
            return Ok(());
        }
        if bytes_of(room) * 2 <= most_in_memory() {
            return self.resize(bytes_of(room) * 2);
        }
        self.spill_hashes(call)
    }

    /// Drops repeated hashes, unless there are many hashes and few repeated ones; says whether to make room for more.
    fn still_full_without_repetitions(&mut self, room: u32) -> bool {
        if room < MANY || !sparse::has_few_repetitions(self.hashes()) {
            self.sort();
        }
        self.len > room / 2
    }

    fn spill_hashes(&mut self, call: &Call) -> Result<()> {
        if self.sorted < self.len {
            Spill::group(self.hashes());
        }
        let spill: *mut Spill = self.spill_to(call)?;
        // SAFETY: a file that lives as long as the aggregate; the hashes are no part of it.
        with_entries(self.hashes(), |entries| unsafe { &mut *spill }.write(entries))?;
        self.forget_hashes();
        Ok(())
    }

    /// Forgets the hashes in memory, which are in the file or in bits.
    fn forget_hashes(&mut self) {
        let head = self.head();
        (head.len, head.sorted) = (0, 0);
    }

    fn spill_to(&mut self, call: &Call) -> Result<&mut Spill> {
        if self.spill.is_null() {
            self.head().spill = Spill::new(call)?;
        }
        // SAFETY: a file that lives as long as the aggregate, and of which the state has the only pointer.
        Ok(unsafe { &mut *self.spill })
    }

    /// Sorts the hashes and drops repeated ones.
    fn sort(&mut self) {
        let sorted = self.sorted as usize;
        let distinct = sparse::sort_distinct(self.hashes(), sorted) as u32;
        let head = self.head();
        (head.len, head.sorted) = (distinct, distinct);
    }

    fn resize(&mut self, bytes: usize) -> Result<()> {
        if bytes / 8 > u32::MAX as usize {
            return Err(too_many());
        }
        assert!(bytes >= bytes_of(self.len), "room for the hashes that are there");
        // SAFETY: there is room for these.
        unsafe { self.reallocate(bytes) };
        self.head().room = room_of(bytes);
        Ok(())
    }

    /// Makes the state dense with `blocks` blocks, a multiple of those it has.
    fn go_dense(&mut self, context: Context<'_>, blocks: u64) -> Result<()> {
        let own = *self.own_params();
        if self.is_dense() && own.blocks == blocks {
            return Ok(());
        }
        let header = Header { blocks, ..own };
        // What will be folded in the end may be larger until then.
        header.check_size(if own.is_to_be_sized() { MAX_STORED_BYTES } else { settings::max_filter_bytes() })?;
        // SAFETY: kept with the state, in the aggregate's memory.
        let mut payload = unsafe { Payload::zeroed_in(context, header.payload_bytes() as usize) };
        self.with_view(|view| or_into(&mut payload, blocks, view));
        self.become_dense(payload)
    }

    /// Takes a payload that has the bits of all elements.
    fn become_dense(&mut self, payload: Payload) -> Result<()> {
        let was_dense = self.take_payload();
        self.head().dense = payload.into_pointer();
        self.forget_hashes();
        match was_dense {
            Some(old) => old.free(),
            None => self.resize(size_of::<BloomHead>())?,
        }
        Ok(())
    }

    /// Shows the state as a filter, which may have hashes without a size. Hashes in a file are not included.
    fn with_view<T>(&mut self, use_view: impl FnOnce(&View<'_>) -> T) -> T {
        if self.is_borrowed {
            // SAFETY: a value of variable length, which outlives the state.
            let value = unsafe { Value::detoast(self.dense.into()) };
            let partial = Partial::parse_trusted(&value).expect("the bytes were checked when the state was made");
            return use_view(partial.view());
        }
        if self.is_dense() {
            self.flush();
            let header = *self.own_params();
            return use_view(&View { header, body: Body::Dense(self.payload()) });
        }
        self.sort();
        let header = self.header();
        with_entries(self.hashes(), |entries| use_view(&View { header, body: Body::Sparse(entries) }))
    }
}

/// Bytes of an unsized build's hashes that stay in memory: half of what an operation of a query may use, but never so
/// few that the file and its buffer of 8 kB would cost more than they save.
fn most_in_memory() -> usize {
    // SAFETY: reading a setting of the process.
    (unsafe { pg_sys::work_mem as usize } * 1024 / 2).max(WORTH_A_FILE)
}

fn room_of(bytes: usize) -> u32 {
    ((bytes - size_of::<BloomHead>()) / 8) as u32
}

fn bytes_of(room: u32) -> usize {
    room as usize * 8 + size_of::<BloomHead>()
}

/// Refuses a state that would outgrow any filter.
fn too_many() -> Error {
    Error::new(SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED, "too many elements for a bloom filter without a capacity")
        .hint("Give the aggregate a capacity: bloom_agg(element, capacity).")
}
