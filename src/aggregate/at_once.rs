//! How a state takes an element when nothing but memory that is there must be written: without PostgreSQL, and without
//! a way to fail.
//!
//! That is so for nearly all elements of a large group, and the guard that every call of PostgreSQL needs would take as
//! long as the rest. A text of a dense state waits for seven others, to be hashed with them; a small state hashes each
//! at once, because waiting took as long there:
//!
//! ```text
//! text ──▶ texts ──eight of them──▶ hashes ──▶ batch, whose memory is prefetched ──full──▶ bits
//! ```

use super::state::{Head, Owner, State};
use super::tag::Tag;
use crate::pg::call::Call;
use pg_bloom_core::hash;
use pg_bloom_core::simd::Texts;

/// Texts that are hashed together.
const TEXTS: u32 = Texts::ROOM as u32;

impl State {
    /// Argument `i` of a support function, if it is a state of this aggregate.
    #[inline(always)]
    pub fn argument_at_once(call: &Call, i: usize) -> Option<State> {
        let head: *mut Head = call.internal(i)?;
        // SAFETY: the argument is the state of an aggregate, which is never empty.
        (unsafe { *head.cast::<u8>() } == Tag::Bloom as u8).then_some(State { head })
    }

    /// Adds an element, if that can be done at once. Says whether it did.
    #[inline(always)]
    pub fn push_at_once(&mut self, hash: u64) -> bool {
        let has_room = self.has_room_for(1);
        if has_room {
            self.push_to_batch(hash);
        }
        has_room
    }

    /// The same for a text.
    #[inline(always)]
    pub fn push_text_at_once(&mut self, text: &[u8]) -> bool {
        let Some(texts) = self.texts() else { return self.push_at_once(hash::hash(text)) };
        // It may be too long, or have to wait until there is room for the hashes of those before.
        if !texts.push(text) {
            return self.push_at_once(hash::hash(text));
        }
        if texts.room() == 0 && self.has_room_for(TEXTS) {
            self.push_texts();
        }
        true
    }

    /// Whether so many hashes can be added to those in memory.
    #[inline(always)]
    fn has_room_for(&self, hashes: u32) -> bool {
        let head = self.head();
        !head.in_parts && head.room - head.len >= hashes && head.owner != Owner::Borrowed
    }

    /// Adds an element to the hashes, for another one of which there is room.
    #[inline(always)]
    pub fn push_to_batch(&mut self, hash: u64) {
        if self.is_dense() {
            self.prefetch(hash);
        }
        let len = self.head().len;
        // SAFETY: there is room for another hash after `len` ones.
        unsafe { self.head.add(1).cast::<u64>().add(len as usize).write(hash) };
        self.head_mut().len = len + 1;
    }

    /// The texts that wait for others, if this CPU hashes many of them faster.
    #[inline(always)]
    fn texts(&mut self) -> Option<&mut Texts> {
        let head = self.head();
        let has_batch = self.is_dense() && head.owner != Owner::Borrowed && head.room > 0;
        if !has_batch || !Texts::are_faster() {
            return None;
        }
        // SAFETY: `make_batch` has put them behind the hashes, and they are in no other use.
        Some(unsafe { &mut *self.behind_batch().cast() })
    }

    /// Adds the texts that wait for others.
    #[inline(always)]
    pub fn push_texts(&mut self) {
        let Some(hashes) = self.texts().map(Texts::take) else { return };
        for hash in hashes {
            if self.has_room_for(1) {
                self.push_to_batch(hash);
            } else {
                self.push_to_full_batch(hash);
            }
        }
    }

    #[inline(never)]
    fn push_to_full_batch(&mut self, hash: u64) {
        if self.head().in_parts {
            return self.push_to_part(hash);
        }
        self.flush_batch();
        self.push_to_batch(hash);
    }
}
