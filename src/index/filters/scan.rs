//! Bitmap scans: the rows whose filters may have a key. The pages that a lookup will read are on their way before they
//! are asked:
//!
//! ```text
//! announced ──▶ coming: reads are started while pages are found to be on disk
//!                 └──▶ near: pinned, and fetched from memory while others are asked ──▶ asked
//! ```
//!
//! A lookup for an absent key reads a page of each tile, which lie far from each other: one at a time it would wait
//! for each of them, for the disk or at least for the memory.

use super::column::{Index, check_rows};
use crate::element::{ElementType, ProbeKey};
use crate::error::unsupported;
use crate::index::page::IndexPages;
use crate::pg::call::{Element, Result, interrupt};
use crate::pg::catalog;
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::buffer::{self, Pin};
use crate::pg::storage::relation::{Opened, Relation};
use crate::pg::value::varlena::Value;
use pg_bloom_core::index::filters::{FilterCondition, Group, Sought};
use pg_bloom_core::index::page::{Damage, Pages, RowId};
use pg_bloom_core::memory;
use pgrx::pg_sys;
use std::collections::VecDeque;

/// Errors: 0A000 also for a collation that does not compare bytes.
///
/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn bitmap(relation: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let index = Index::of(relation)?;
    // A nested loop asks again and again.
    // SAFETY: promised by the caller; what is returned is in Rust's memory.
    let sought = unsafe { in_scratch(|| memory::try_collect(keys.iter().map(|key| alternatives(&index, key))))? };
    // PostgreSQL evaluates what `@=>` stands for on all rows that are found: see `cost`.
    let is_own = keys.iter().any(|key| key.asked_type != index.kind().key);
    let directory = index.directory()?;
    // The row on the highest page, and one that no page has.
    let (mut highest, mut wrong): (Option<RowId>, Option<RowId>) = (None, None);
    let mut add = |row: RowId, again| {
        highest = highest.max(Some(row));
        if !rows.add(row, again && is_own) {
            wrong = Some(row);
        }
    };
    let mut pages = Ahead::new(index.pages());
    index.checked(directory.search(&mut pages, |group| conditions(&sought, group), &mut add))?;
    let Some(highest) = highest else { return Ok(()) };
    // Others may have made the table longer, but no row was found before it was there.
    let table = Opened::table_of(relation);
    check_rows(relation, table.relation(), [wrong.unwrap_or(highest)].into_iter())
}

/// What a condition of a scan looks for: at least one of these. Errors: as [`bitmap`].
///
/// # Safety
/// The key must be one of a scan of the index.
unsafe fn alternatives(index: &Index, key: &Key) -> Result<Vec<ProbeKey>> {
    let (asked, elements) = (key.asked_type, key.sought());
    if asked == index.kind().key {
        // SAFETY: the elements are of that type, which is of variable length.
        let parse = |element: Element| ProbeKey::parse(unsafe { Value::detoast(element.datum) }.bytes());
        return memory::try_collect(elements.into_iter().map(parse));
    }
    if asked != pg_sys::TEXTOID && asked != pg_sys::CHAROID {
        let message = format!("an index over filters can't be asked for type {}", catalog::display_name(asked));
        return Err(unsupported(message, "Use the operator class bloom_ops."));
    }
    let element_type = ElementType::of_key(index.relation().handler(), asked, key.collation)?;
    // SAFETY: what is looked for is of the type that the key says.
    Ok(memory::collect(elements.into_iter().map(|element| unsafe { element_type.probe_key(Some(element)) })))
}

fn conditions(keys: &[Vec<ProbeKey>], group: &Group) -> Vec<FilterCondition> {
    let asked = |key: &ProbeKey| match key.hash_of_kind(group.kind()) {
        Some(hash) if !group.kind().is_none() => hash.map(Sought::Hash),
        _ => Some(Sought::OtherKind),
    };
    memory::collect(keys.iter().map(|alternatives| memory::collect(alternatives.iter().filter_map(asked))))
}

/// Pages that are pinned before they are asked.
const NEAR: usize = 3;

/// The pages of an index, in an order that is announced.
struct Ahead<'a> {
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
    fn new(pages: IndexPages<'a>) -> Ahead<'a> {
        let (end, started) = (pages.relation.pages(), buffer::io_concurrency(pages.relation));
        Ahead { pages, end, coming: VecDeque::new(), near: VecDeque::new(), started, to_start: 0 }
    }

    fn start_reading(&mut self, page: u32) {
        if self.to_start > 0 {
            self.to_start -= 1;
            buffer::prefetch(self.pages.relation, page);
        }
    }

    /// Pins the next pages.
    fn draw_near(&mut self) {
        while self.near.len() < NEAR {
            let Some(next) = self.coming.pop_front() else { break };
            let before = buffer::pages_from_disk();
            let pin = Pin::read(self.pages.relation, next);
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
    type Error = Damage;

    fn with<R>(&mut self, page: u32, f: impl FnOnce(Option<&[u8]>) -> R) -> std::result::Result<R, Damage> {
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
