//! The state of `bloom_agg`, in the aggregate's own memory.
//!
//! ```text
//! small:  | params | -     | … | len | sorted | room |  h0 h1 h2 …  |      64, 128, 256 … bytes
//! dense:  | params | dense | … | len | -      | room |  batch        |     dense ──▶ | payload |
//! ```
//!
//! A group starts with room for three hashes and doubles it as it grows, dropping repeated hashes; once the distinct
//! ones take more bytes than the dense payload, it goes dense. From then on the hashes are a batch: the memory that
//! one needs is prefetched when it arrives, long before its bits are set with those of the others. (On an Intel Xeon a
//! large filter would be built 12 % faster with a batch for each range of its blocks, on an AMD EPYC more slowly.)
//! Without a capacity there is no dense payload to compare with, and hashes beyond half of `work_mem` go to a
//! temporary file ([`super::spill`]). The parameters are shared by all groups of a call site.
//!
//! This file is how a state grows; [`merge`] is how states merge and end.

mod merge;

use super::memory::Payload;
use super::site::{ElementHead, Params, allocate};
use super::spill::{Spill, with_entries};
use super::tag::{Group, Head, Tag, nothing_of_its_own};
use crate::arguments::{Arguments, request};
use crate::pg::call::{Call, Error, Result, SqlState};
use crate::pg::memory::Context;
use crate::pg::value::varlena::Value;
use crate::settings;
use pg_bloom_core::filter::merge::or_into;
use pg_bloom_core::filter::sparse;
use pg_bloom_core::{Body, Header, Kind, MAX_STORED_BYTES, View};
use pgrx::pg_sys;

const FIRST_BYTES: usize = 64;
/// Bytes of a dense state, without its bits: what was prefetched for so few hashes is in the fastest cache still.
const BATCH_BYTES: usize = 1024;
/// The fewest bytes of hashes that are worth a file.
const WORTH_A_FILE: usize = 128 << 10;
/// From this many hashes on, a state that grows doesn't sort them when there are few repetitions to drop.
const MANY: u32 = 8192;

#[repr(C)]
pub struct BloomHead {
    tag: Tag,
    /// Hashes there is room for.
    room: u32,
    params: Params,
    others: Others,
    /// Hashes in memory.
    len: u32,
    /// How many of them, from the first, ascend strictly.
    sorted: u32,
}

/// Where elements are besides those whose hashes are in memory.
enum Others {
    None,
    /// In a file, which lives as long as the aggregate: those of an unsized build.
    Spilled(*mut Spill),
    /// In the bits that are being built.
    Dense(Payload),
    /// In a value of variable length, dense or sparse, that is only read, and outlives the state.
    Borrowed(*mut pg_sys::varlena),
}

// SAFETY: it begins with its tag.
unsafe impl Head for BloomHead {
    const TAG: Tag = Tag::Bloom;
    const BYTES: usize = FIRST_BYTES;
}

pub type BloomState<'c> = Group<'c, BloomHead>;

impl ElementHead for BloomHead {
    const NAME: &'static str = "bloom_agg";

    fn requested(arguments: &Arguments) -> Result<Header<'static>> {
        Ok(request(arguments)?.header(settings::max_filter_bytes())?)
    }

    unsafe fn new(params: Params) -> BloomHead {
        let (tag, room) = (Tag::Bloom, room_of(FIRST_BYTES));
        BloomHead { tag, room, params, others: Others::None, len: 0, sorted: 0 }
    }

    #[inline(always)]
    fn params(&self) -> &Header<'_> {
        self.own_params()
    }

    #[inline(always)]
    fn push(state: &mut BloomState<'_>, call: &Call, hash: u64) -> Result<()> {
        if state.len == state.room {
            state.make_room(call)?;
            assert!(state.len < state.room, "there is room");
        }
        // SAFETY: there is room now.
        unsafe { state.push_to_batch(hash) };
        Ok(())
    }
}

impl BloomHead {
    /// The parameters, which must not be shown to others without the lifetime of the state.
    #[inline(always)]
    fn own_params(&self) -> &Header<'static> {
        // SAFETY: as was promised when they became those of the state.
        unsafe { &*self.params }
    }
}

impl<'c> BloomState<'c> {
    /// A state that another process serialised, read in place. Errors: 22P03 for bytes that are not a state.
    pub fn deserialised(call: &'c Call, value: Value<'c>) -> Result<BloomState<'c>> {
        let header = View::parse_partial(&value)?.header;
        let context = call.context();
        // SAFETY: the parameters are in the same memory.
        let head = unsafe { BloomHead::new(allocate(context, &header)) };
        let others = Others::Borrowed(value.into_datum().cast_mut_ptr());
        Ok(Group::new(context, BloomHead { others, ..head }))
    }

    #[inline(always)]
    fn head(&mut self) -> &mut BloomHead {
        // SAFETY: only this file and that below it have it, and set nothing but what is there.
        unsafe { self.head_mut() }
    }

    fn hashes(&mut self) -> &mut [u64] {
        let len = self.len as usize;
        // SAFETY: `len` hashes were written after the head.
        unsafe { std::slice::from_raw_parts_mut(self.behind_head().cast(), len) }
    }

    /// Whether there are no elements yet, nor bits that may belong to one.
    fn is_empty(&self) -> bool {
        self.len == 0 && matches!(self.others, Others::None)
    }

    fn is_dense(&self) -> bool {
        matches!(self.others, Others::Dense(_) | Others::Borrowed(_))
    }

    /// The hashes in a file, and those in memory, which ascend.
    fn spilled(&mut self) -> Option<(&mut Spill, &[u64])> {
        let Others::Spilled(spill) = self.others else { return None };
        self.sort();
        // SAFETY: it is there; the hashes are no part of it.
        Some((unsafe { &mut *spill }, self.hashes()))
    }

    /// The number of hashes of a state that is not dense, in memory and in the file, repetitions included.
    fn count(&self) -> usize {
        let in_file = match self.others {
            // SAFETY: it is there.
            Others::Spilled(spill) => unsafe { &*spill }.written(),
            _ => 0,
        };
        in_file + self.len as usize
    }

    /// The header of the filter as it is: without a kind as long as there are no elements.
    fn header(&self) -> Header<'static> {
        let header = *self.own_params();
        if self.is_empty() { Header { kind: Kind::NONE, ..header } } else { header }
    }

    /// Adds an element, and returns whether it did, if nothing but memory that is there must be written: without
    /// PostgreSQL, and without a way to fail. That is so for nearly all elements of a large group.
    #[inline(always)]
    pub fn push_at_once(&mut self, hash: u64) -> bool {
        let has_room = self.room > self.len && !matches!(self.others, Others::Borrowed(_));
        if has_room {
            // SAFETY: as was just asked.
            unsafe { self.push_to_batch(hash) };
        }
        has_room
    }

    /// # Safety
    /// There must be room for another hash.
    #[inline(always)]
    unsafe fn push_to_batch(&mut self, hash: u64) {
        if self.is_dense() {
            self.params().shape().prefetch(self.payload(), hash);
        }
        let len = self.len;
        // SAFETY: promised by the caller: there is room for another hash after `len` ones.
        unsafe { self.behind_head().cast::<u64>().add(len as usize).write(hash) };
        self.head().len = len + 1;
    }

    /// The payload that a dense state builds.
    #[inline(always)]
    fn payload(&self) -> &[u8] {
        let Others::Dense(payload) = &self.others else { nothing_of_its_own() };
        payload
    }

    #[inline(always)]
    fn payload_mut(&mut self) -> &mut [u8] {
        let Others::Dense(payload) = &mut self.head().others else { nothing_of_its_own() };
        payload
    }

    /// Sets the bits of the batch of a dense state.
    fn flush(&mut self) {
        let (shape, hashes): (_, *const [u64]) = (self.params().shape(), self.hashes());
        // SAFETY: the hashes are there, behind the head and no part of the payload.
        shape.insert_all(self.payload_mut(), unsafe { &*hashes });
        self.head().len = 0;
    }

    #[inline(never)]
    fn make_room(&mut self, call: &Call) -> Result<()> {
        if self.is_dense() {
            self.flush();
        } else if self.params().is_unsized() {
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
        if self.len as usize > most {
            self.sort();
            if self.len as usize > most {
                self.go_dense(call.require_aggregate()?, header.blocks)?;
            }
        } else if self.still_full_without_repetitions() {
            // An eighth above the limit, so that repetitions are not looked for with each element there.
            let most = u32::try_from(most + most / 8 + 64).unwrap_or(u32::MAX);
            self.resize((bytes_of(self.room) * 2).min(bytes_of(most)))?;
        }
        Ok(())
    }

    /// Makes room for more hashes of a build without a capacity, in memory or in a file.
    fn grow_unsized(&mut self, call: &Call) -> Result<()> {
        let bytes = bytes_of(self.room) * 2;
        if !self.still_full_without_repetitions() {
            Ok(())
        } else if bytes <= most_in_memory() {
            self.resize(bytes)
        } else {
            self.spill_hashes(call)
        }
    }

    /// Drops repeated hashes, unless there are many hashes and few repeated ones; says whether to make room for more.
    fn still_full_without_repetitions(&mut self) -> bool {
        if self.room < MANY || !sparse::has_few_repetitions(self.hashes()) {
            self.sort();
        }
        self.len > self.room / 2
    }

    fn spill_hashes(&mut self, call: &Call) -> Result<()> {
        if self.sorted < self.len {
            Spill::group(self.hashes());
        }
        let spill: *mut Spill = self.spill_to(call)?;
        // SAFETY: it is there; the hashes are no part of it.
        with_entries(self.hashes(), |entries| unsafe { &mut *spill }.write(entries))?;
        self.forget_hashes();
        Ok(())
    }

    /// Forgets the hashes in memory, which are in the file or in bits.
    fn forget_hashes(&mut self) {
        let head = self.head();
        (head.len, head.sorted) = (0, 0);
    }

    /// The file of a state that is not dense.
    fn spill_to(&mut self, call: &Call) -> Result<&mut Spill> {
        let spill = match self.others {
            Others::Spilled(spill) => spill,
            _ => Spill::new(call)?,
        };
        self.head().others = Others::Spilled(spill);
        // SAFETY: it is there, and the state has the only pointer.
        Ok(unsafe { &mut *spill })
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
        let before = std::mem::replace(&mut self.head().others, Others::Dense(payload));
        self.forget_hashes();
        match before {
            Others::Dense(old) => old.free(),
            Others::Borrowed(_) => nothing_of_its_own(),
            Others::None | Others::Spilled(_) => self.resize(size_of::<BloomHead>())?,
        }
        Ok(())
    }

    /// Shows the state as a filter, which may have hashes without a size. Hashes in a file are not included.
    fn with_view<T>(&mut self, use_view: impl FnOnce(&View<'_>) -> T) -> T {
        if let Others::Borrowed(value) = self.others {
            // SAFETY: a value of variable length, which outlives the state.
            let value = unsafe { Value::detoast(value.into()) };
            let view = View::parse_trusted_partial(&value).expect("the bytes were checked when the state was made");
            return use_view(&view);
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
