//! `bloom_agg`, and its state, in the aggregate's own memory.
//!
//! ```text
//! rows ──transition──▶ state ──serialise──▶ bytes ──combine──▶ state ──final──▶ bloom
//!
//! small:  | params | -     | … | len | sorted | room |  h0 h1 h2 …  |      64, 128, 256 … bytes
//! dense:  | params | dense | … | len | -      | room |  batch        |     dense ──▶ | payload |
//! ```
//!
//! A group starts with room for three hashes and doubles it as it grows, dropping repeated hashes;
//! once the distinct ones take more bytes than the dense payload, it goes dense. From then on the
//! hashes are a batch: the memory that one needs is prefetched when it arrives, long before its
//! bits are set with those of the others. Without a capacity there is no dense payload to compare
//! with, and hashes beyond half of `work_mem` go to a temporary file ([`super::spill`]). The
//! parameters are shared by all groups of a call site.
//!
//! This file has the functions of SQL, and how a state grows; [`merge`] is how states merge and
//! end.

mod merge;

use super::memory::{Payload, aggregate_memory};
use super::site::{
    CallSite, ElementHead, Params, SharedParams, require_same_parameters, transition,
};
use super::spill::{Spill, with_entries};
use super::tag::{Group, Head, Tag, combine, deserialise, with_state};
use crate::arguments::{Arguments, empty_bloom, request};
use crate::pg::call::{Call, Error, Outcome, Result, SqlState};
use crate::pg::value::varlena::PgBuffer;
use crate::{overfull, settings};
use pg_bloom_core::filter::merge::or_into;
use pg_bloom_core::filter::sparse;
use pg_bloom_core::{Body, Header, Kind, MAX_STORED_BYTES, View};
use pgrx::pg_sys::{self, Datum};

const FIRST_BYTES: usize = 64;
/// Bytes of a dense state, without its bits: what was prefetched for so few hashes is in the
/// fastest cache still.
const BATCH_BYTES: usize = 1024;
const WORTH_A_FILE: usize = 128 << 10;

#[repr(C)]
struct BloomHead {
    tag: Tag,
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
}

// SAFETY: it begins with its tag.
unsafe impl Head for BloomHead {
    const TAG: Tag = Tag::Bloom;
    const BYTES: usize = FIRST_BYTES;
}

type BloomState<'c> = Group<'c, BloomHead>;

impl ElementHead for BloomHead {
    const NAME: &'static str = "bloom_agg";

    fn requested(arguments: &Arguments) -> Result<Header<'static>> {
        Ok(request(arguments)?.header(settings::max_filter_bytes())?)
    }

    fn new(params: Params) -> BloomHead {
        let (tag, room) = (Tag::Bloom, room_of(FIRST_BYTES));
        BloomHead { tag, room, params, others: Others::None, len: 0, sorted: 0 }
    }

    #[inline(always)]
    fn params(&self) -> &Header<'_> {
        self.params
    }

    #[inline(always)]
    fn push(state: &mut BloomState<'_>, call: &Call, hash: u64) -> Result<()> {
        if !state.push_at_once(hash) {
            state.make_room(call)?;
            assert!(state.push_at_once(hash), "there is room");
        }
        Ok(())
    }
}

impl BloomState<'_> {
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

    fn is_dense(&self) -> bool {
        matches!(self.others, Others::Dense(_))
    }

    /// The hashes in a file, and those in memory, which ascend.
    fn spilled(&mut self) -> Option<(&mut Spill, &[u64])> {
        let Others::Spilled(spill) = self.others else {
            return None;
        };
        self.sort();
        // SAFETY: it is there; the hashes are no part of it.
        Some((unsafe { &mut *spill }, self.hashes()))
    }

    /// The number of hashes of a state that is not dense, in memory and in the file, repetitions
    /// included.
    fn count(&self) -> usize {
        let in_file = match self.others {
            // SAFETY: it is there.
            Others::Spilled(spill) => unsafe { &*spill }.written(),
            _ => 0,
        };
        in_file + self.len as usize
    }

    /// The header of the filter as it is: without a kind as long as there are no elements, nor bits
    /// that may belong to one.
    fn header(&self) -> Header<'static> {
        let is_empty = self.len == 0 && matches!(self.others, Others::None);
        if is_empty {
            Header { kind: Kind::NONE, ..*self.params }
        } else {
            *self.params
        }
    }

    /// Adds an element, and returns whether it did, if there is room: without PostgreSQL, and
    /// without a way to fail.
    #[inline(always)]
    fn push_at_once(&mut self, hash: u64) -> bool {
        let len = self.len;
        if len >= self.room {
            return false;
        }
        if let Others::Dense(payload) = &self.others {
            self.params.shape().prefetch(payload, hash);
        }
        // SAFETY: there is room for another hash after `len` ones.
        unsafe { self.behind_head().cast::<u64>().add(len as usize).write(hash) };
        self.head().len = len + 1;
        true
    }

    /// Sets the bits of the batch of a dense state. Returns all its bits.
    fn flush(&mut self) -> &mut [u8] {
        let (shape, hashes): (_, *const [u64]) = (self.params.shape(), self.hashes());
        let head = self.head();
        head.len = 0;
        let Others::Dense(payload) = &mut head.others else {
            unreachable!("a dense state")
        };
        // SAFETY: the hashes are there, behind the head and no part of the payload.
        shape.insert_all(payload, unsafe { &*hashes });
        payload
    }

    #[inline(never)]
    fn make_room(&mut self, call: &Call) -> Result<()> {
        if self.is_dense() {
            self.flush();
        } else if self.params.is_unsized() {
            self.grow_unsized(call)?;
        } else {
            self.grow_sized(call)?;
        }
        // A state that became dense allocates its batch with the first hash after that.
        if self.room == 0 { self.resize(BATCH_BYTES) } else { Ok(()) }
    }

    /// Makes room for more hashes of a build with a capacity, or goes dense.
    fn grow_sized(&mut self, call: &Call) -> Result<()> {
        let most = self.params.payload_bytes() as usize / 8;
        if self.len as usize > most {
            self.sort();
            if self.len as usize > most {
                self.go_dense(call, self.params)?;
            }
        } else if self.still_full_without_repetitions() {
            // An eighth above the limit, so that repetitions are not looked for with each element
            // there.
            let most = u32::try_from(most + most / 8 + 64).unwrap_or(u32::MAX);
            self.resize((bytes_of(self.room) * 2).min(bytes_of(most)))?;
        }
        Ok(())
    }

    /// Makes room for more hashes of a build without a capacity, in memory or in a file.
    fn grow_unsized(&mut self, call: &Call) -> Result<()> {
        let bytes = bytes_of(self.room) * 2;
        if !self.still_full_without_repetitions() {
            return Ok(());
        }
        if bytes <= most_in_memory() {
            return self.resize(bytes);
        }
        let spill: *mut Spill = self.spill_to(call)?;
        // SAFETY: it is there; the hashes are no part of it.
        with_entries(self.hashes(), |entries| unsafe { &mut *spill }.write(entries))?;
        self.forget_hashes();
        Ok(())
    }

    /// Drops repeated hashes, and says whether to make room for more.
    fn still_full_without_repetitions(&mut self) -> bool {
        self.sort();
        self.len > self.room / 2
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

    /// Makes the state dense with as many blocks as this header has, a multiple of those it has.
    fn go_dense(&mut self, call: &Call, header: &Header<'_>) -> Result<()> {
        // What will be folded in the end may be larger until then.
        header.check_size(if header.is_to_be_sized() {
            MAX_STORED_BYTES
        } else {
            settings::max_filter_bytes()
        })?;
        let mut payload =
            Payload::zeroed_in(aggregate_memory(call)?, header.payload_bytes() as usize);
        if self.is_dense() {
            or_into(&mut payload, header.blocks, &self.dense_view());
        } else {
            self.set_bits(header, &mut payload)?;
        }
        let before = std::mem::replace(&mut self.head().others, Others::Dense(payload));
        self.forget_hashes();
        match before {
            Others::Dense(old) => old.free(),
            Others::None | Others::Spilled(_) => self.resize(size_of::<BloomHead>())?,
        }
        Ok(())
    }

    fn dense_view(&mut self) -> View<'_> {
        View { header: *self.params, body: Body::Dense(self.flush()) }
    }
}

/// Bytes of an unsized build's hashes that stay in memory: half of what an operation of a query may
/// use, but never so few that the file and its buffer of 8 kB would cost more than they save.
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

fn too_many() -> Error {
    Error::new(
        SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "too many elements for a bloom filter without a capacity",
    )
    .hint("Give the aggregate a capacity: bloom_agg(element, capacity).")
}

/// The transition function for most rows: what needs nothing of PostgreSQL and can't fail.
#[inline(always)]
fn another_row(call: &Call) -> Option<Datum> {
    let site = call.recalled::<CallSite>()?;
    // SAFETY: argument 0 is the state.
    let mut state = unsafe { BloomState::argument_at_once(call, 0)? };
    let hash = site.hash_at_once(call, state.params())?;
    state.push_at_once(hash).then(|| state.into_datum())
}

fn combine_states(call: &Call) -> Outcome {
    combine(call, |first: Option<BloomState>, bytes| {
        let (shared, view) = (SharedParams::of(call)?, View::parse_partial(bytes)?);
        let mut state = first.map_or_else(|| Group::with_header(call, shared, &view.header), Ok)?;
        require_same_parameters::<BloomHead>(state.params(), &view.header)?;
        state.absorb(call, shared, &view)?;
        Ok(state)
    })
}

fn serialise(call: &Call) -> Outcome {
    Ok(with_state(call, |state: &mut BloomState| state.serialise())?.map(PgBuffer::into_datum))
}

fn finish(call: &Call) -> Outcome {
    let finished = with_state(call, |state: &mut BloomState| {
        // A list that was sized for its elements is overfull by chance at most.
        Ok((state.finish()?, !state.header().is_to_be_sized() || state.is_dense()))
    })?;
    match finished {
        Some((filter, true)) => overfull::finish(call, overfull::BUILT, filter),
        Some((filter, false)) => Ok(Some(filter.into_datum())),
        None => empty_bloom().map(Some),
    }
}

pg_functions! {
    // SAFETY: what it uses needs nothing of PostgreSQL, and can't fail.
    bloom_agg_transition => transition::<BloomHead>, first unsafe another_row;
    bloom_agg_combine => combine_states;
    bloom_agg_serialise => serialise;
    bloom_agg_deserialise => deserialise::<BloomHead>;
    bloom_agg_final => finish;
}
