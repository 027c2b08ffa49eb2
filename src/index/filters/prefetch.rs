//! Pages that a lookup will read, on their way before they are asked.
//!
//! ```text
//! announced ──▶ coming: reads are started while pages are found to be on disk
//!                 └──▶ near: pinned, and fetched from memory while others are asked ──▶ asked
//! ```
//!
//! A lookup for an absent key reads a page of each tile, which lie far from each other: one at a time it would wait
//! for each of them, for the disk or at least for the memory.

use crate::index::page::{Failure, IndexPages};
use crate::pg::call::interrupt;
use crate::pg::storage::buffer::{self, Pin};
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::page::Pages;
use std::collections::VecDeque;

/// Pages that are pinned before they are asked.
const NEAR: usize = 3;

/// The pages of an index, in an order that is announced.
pub struct Ahead<'a> {
    relation: Relation<'a>,
    pages: IndexPages<'a>,
    /// Pages of the file. Those behind are read as nothing, if they are not there by then.
    end: u32,
    coming: VecDeque<u32>,
    near: VecDeque<(u32, Pin<'a>)>,
    /// Reads that are started after a page that was on disk.
    started: u32,
    to_start: u32,
}

impl<'a> Ahead<'a> {
    pub fn new(relation: Relation<'a>, pages: IndexPages<'a>) -> Ahead<'a> {
        let end = relation.pages();
        let started = buffer::io_concurrency(relation);
        Ahead { relation, pages, end, coming: VecDeque::new(), near: VecDeque::new(), started, to_start: 0 }
    }

    fn start_reading(&mut self, page: u32) {
        if self.to_start > 0 {
            self.to_start -= 1;
            buffer::prefetch(self.relation, page);
        }
    }

    /// Pins the next pages.
    fn draw_near(&mut self) {
        while self.near.len() < NEAR {
            let Some(next) = self.coming.pop_front() else { break };
            let before = buffer::pages_from_disk();
            let pin = Pin::read(self.relation, next);
            pin.approach();
            self.near.push_back((next, pin));
            if buffer::pages_from_disk() > before {
                let others_were_started = self.to_start > 0;
                self.to_start = self.started;
                if !others_were_started {
                    (0..self.coming.len()).for_each(|i| self.start_reading(self.coming[i]));
                }
            }
        }
    }
}

impl Pages for Ahead<'_> {
    type Error = Failure;

    fn with<R>(&mut self, page: u32, f: impl FnOnce(Option<&[u8]>) -> R) -> Result<R, Failure> {
        interrupt::check_for_interrupts();
        self.draw_near();
        match self.near.pop_front_if(|(next, _)| *next == page) {
            Some((_, pin)) => Ok(f(Some(&pin.shared()))),
            None => self.pages.with(page, f),
        }
    }

    fn prefetch(&mut self, page: u32) {
        if page < self.end {
            self.start_reading(page);
            self.coming.push_back(page);
        }
    }
}
